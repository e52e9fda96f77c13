package httpx

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
)

// TestHalfSentBodiesHoldNoPlace: a long answer to a request whose body does not come is sent
// at once, whoever the request counts for; a connection whose body came is used again.
func TestHalfSentBodiesHoldNoPlace(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	answered := make(chan bool, 1)
	server := httptest.NewServer(Chain(log, false, http.NewCrossOriginProtection(), WriteProblem, Wrap(log, WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
		callers := map[string]Caller{"/stranger": AddressCaller(r), "/file": FileCaller(r), "/known": {User: "ana", Session: "1"}}
		if caller, ok := callers[r.URL.Path]; ok {
			if err := Claim(r, caller); err != nil {
				return err
			}
		}
		if r.URL.RawQuery == "read" {
			if _, err := io.ReadAll(r.Body); err != nil {
				return err
			}
		}
		w.WriteHeader(http.StatusConflict)
		_, err := w.Write(make([]byte, 16<<10))
		answered <- err == nil
		return err
	})))
	t.Cleanup(server.Close)
	c := dial(t, server)
	fmt.Fprint(c, "POST /known HTTP/1.1\r\nHost: loom\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n") //nolint:errcheck // the answer tells
	if a, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || a.StatusCode != http.StatusConflict || !a.Close || !<-answered {
		t.Errorf("one who asks before he sends: %v, %v", a, err)
	}
	for _, path := range []string{"/nobody", "/stranger", "/file", "/known"} {
		c := dial(t, server)
		c.SetDeadline(time.Now().Add(bodyPatience.time / 2)) //nolint:errcheck // it fails below
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: loom\r\nContent-Length: 1000\r\n\r\na", path)
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if body, err := io.ReadAll(a.Body); err != nil || len(body) != 16<<10 || a.StatusCode != http.StatusConflict || !a.Close || !<-answered {
			t.Errorf("%s: %s, %d bytes, %v, the connection closes: %v", path, a.Status, len(body), err, a.Close)
		}

		c = dial(t, server)
		in := bufio.NewReader(c)
		for range 2 {
			fmt.Fprintf(c, "POST %s?read HTTP/1.1\r\nHost: loom\r\nContent-Length: 3\r\n\r\nabc", path)
			a, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if body, err := io.ReadAll(a.Body); err != nil || len(body) != 16<<10 || a.Close || !<-answered {
				t.Errorf("%s, with its body: %s, %d bytes, %v, the connection closes: %v", path, a.Status, len(body), err, a.Close)
			}
		}
	}
}

// stuck is the connection of a client who takes nothing until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	at    chan<- struct{}
	leave <-chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	s.at <- struct{}{}
	<-s.leave
	return len(p), nil
}

// TestUnreadAnswersHoldNoPlace: whoever takes nothing of a short answer has left his place
// before it is sent, where nobody claimed the request as where a stranger did.
func TestUnreadAnswersHoldNoPlace(t *testing.T) {
	t.Parallel()
	h := limited(WriteProblem, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			io.WriteString(w, "short") //nolint:errcheck // the client tells
		})
		if r.URL.Path == "/claimed" {
			if err := Claim(r, AddressCaller(r)); err != nil {
				WriteProblem(w, r, loom.AsError(err))
				return
			}
			if err := InTurn(w, r, "", answer); err != nil {
				t.Error(err)
			}
			return
		}
		answer(w, r)
	}))
	at, leave := make(chan struct{}), make(chan struct{})
	var away sync.WaitGroup
	for _, path := range []string{"/", "/claimed"} {
		for range maxRequestsEach {
			away.Go(func() {
				h.ServeHTTP(stuck{httptest.NewRecorder(), at, leave}, httptest.NewRequest(http.MethodGet, path, nil))
			})
		}
		for range maxRequestsEach {
			<-at
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != http.StatusTeapot || w.Body.String() != "short" {
			t.Errorf("%s: one more of the address: %d %q", path, w.Code, w.Body)
		}
	}
	close(leave)
	away.Wait()
}

// TestCrossSiteRequestsCount: what protection keeps out has a place as a stranger's request,
// and takes its turn.
func TestCrossSiteRequestsCount(t *testing.T) {
	t.Parallel()
	refused := false
	render := func(w http.ResponseWriter, r *http.Request, e *loom.Error) {
		refused = true
		p, ok := r.Context().Value(placeKey{}).(*place)
		if group, _ := p.caller.group(); !ok || group != strangers || p.limits.requests != 1 || p.limits.turns.busy != 1 {
			t.Errorf("it has the place %+v", p)
		}
		WriteProblem(w, r, e)
	}
	h := Chain(slog.New(slog.DiscardHandler), false, http.NewCrossOriginProtection(), render, http.NotFoundHandler())
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusForbidden || !refused || !strings.Contains(w.Body.String(), "another site") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRequestsOfStrangersAreLoggedForDebugging, those of who is known as they were.
func TestRequestsOfStrangersAreLoggedForDebugging(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who    string
		site   string
		method string
		status int
		told   bool
	}{
		{"ana", "", http.MethodPost, 200, true}, {"ana", "", http.MethodDelete, 403, true}, {"ana", "", http.MethodGet, 500, true},
		{"ana", "", http.MethodGet, 200, false}, {"ana", "", http.MethodPost, 404, false},
		{"", "", http.MethodPost, 401, false}, {"", "", http.MethodGet, 500, false}, {"address 192.0.2.1", "", http.MethodPost, 204, false},
		{"files 192.0.2.1", "", http.MethodPost, 503, false}, {"ana", "cross-site", http.MethodPost, 200, false},
	} {
		for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
			h := Chain(log, false, http.NewCrossOriginProtection(), WriteProblem, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.who != "" {
					if err := Claim(r, Caller{User: c.who, Session: c.who}); err != nil {
						t.Error(err)
					}
				}
				w.WriteHeader(c.status)
			}))
			r := httptest.NewRequest(c.method, "/x", nil)
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			if told := strings.Contains(out.String(), "msg=request "); told != (c.told || level == slog.LevelDebug) {
				t.Errorf("%+v, from %s on: %q", c, level, out.String())
			}
		}
	}
}

// TestEventsLeaveAtOnce through all that holds or compresses other answers.
func TestEventsLeaveAtOnce(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	server := httptest.NewServer(Chain(log, false, http.NewCrossOriginProtection(), WriteProblem, Wrap(log, WriteProblem, func(w http.ResponseWriter, r *http.Request) error {
		if err := Claim(r, Caller{User: "ana", Session: "1"}); err != nil {
			return err
		}
		s, err := NewStream(w, r)
		if err == nil {
			err = s.SendText("", "hello", "now")
		}
		<-r.Context().Done()
		return err
	})))
	t.Cleanup(server.Close)
	c := dial(t, server)
	t.Cleanup(func() { c.Close() })                                                      // before the server waits for it
	c.SetDeadline(time.Now().Add(20 * time.Second))                                      //nolint:errcheck // it fails below
	fmt.Fprint(c, "GET /stream HTTP/1.1\r\nHost: loom\r\nAccept-Encoding: gzip\r\n\r\n") //nolint:errcheck // the answer tells
	for lines := bufio.NewScanner(c); ; {
		if !lines.Scan() {
			t.Fatalf("no event came: %v", lines.Err())
		}
		if lines.Text() == "event: hello" {
			return
		}
	}
}
