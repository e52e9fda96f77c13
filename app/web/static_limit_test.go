package web_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
)

// slowReader is a client who takes nothing of an answer until it is let go.
type slowReader struct {
	*httptest.ResponseRecorder
	inside chan<- struct{}
	leave  <-chan struct{}
}

func (s slowReader) Write(p []byte) (int, error) {
	select {
	case s.inside <- struct{}{}:
	case <-s.leave: // a later piece
	}
	<-s.leave
	return len(p), nil
}

// TestStaticFilesCountForTheirAddress: whoever reads them slowly takes the places that his
// address has for them; those who sign in there go on, and those who are signed in have files.
func TestStaticFilesCountForTheirAddress(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "user")
	file := regexp.MustCompile(`/static/[^"]+\.css`).FindString(r.visitor().get("/login").body)
	inside, leave := make(chan struct{}), make(chan struct{})
	var away sync.WaitGroup
	for range 200 {
		away.Go(func() {
			req := httptest.NewRequest(http.MethodGet, file, nil)
			req.RemoteAddr = "127.0.0.1:7"
			r.server.Config.Handler.ServeHTTP(slowReader{httptest.NewRecorder(), inside, leave}, req)
		})
	}
	for range 200 {
		<-inside
	}
	if a := r.visitor().get(file); a.status != http.StatusTooManyRequests {
		t.Errorf("one more of %q: %d", file, a.status)
	}
	v.get("/account").shows(t, http.StatusOK)
	v.get(file).shows(t, http.StatusOK) // as his own
	r.visitor().get("/login").shows(t, http.StatusOK)
	close(leave)
	away.Wait()
	r.visitor().get(file).shows(t, http.StatusOK)
}
