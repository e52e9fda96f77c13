package page

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"loom/app/httpx"
	"loom/app/loom"
)

// TestOpenRoutesTakeTurns: while strangers take all turns, another one waits, and what is
// for those who are signed in goes on.
func TestOpenRoutesTakeTurns(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	s := &Shared{Deps: Deps{Log: log, Sessions: httpx.NewSessions(nil, false)}}
	inside, leave := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/login", s.openTo(httpx.AddressCaller, func(http.ResponseWriter, *http.Request) error {
		inside <- struct{}{}
		<-leave
		return nil
	}))
	mux.Handle("/gone", s.openTo(httpx.AddressCaller, func(http.ResponseWriter, *http.Request) error { t.Error("one too many"); return nil }))
	mux.Handle("/read", s.openTo(httpx.FileCaller, func(http.ResponseWriter, *http.Request) error { t.Error("one too many"); return nil }))
	mux.Handle("/clusters", s.page(s.Sessions.Actor, loom.See, nil))
	h := httpx.Chain(log, false, http.NewCrossOriginProtection(), s.renderError, mux)
	ask := func(ctx context.Context, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		return w
	}
	var away sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		away.Go(func() { ask(t.Context(), "/login") })
		<-inside
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	ask(gone, "/gone")
	ask(gone, "/read")
	if w := ask(t.Context(), "/clusters"); w.Code != http.StatusSeeOther { // to the sign-in page
		t.Errorf("a page: %d", w.Code)
	}
	close(leave)
	away.Wait()
}

// TestErrorsReachThoseWhoAreSlow: whoever sends a body too slowly is told so, and none who
// leaves makes an error in the log.
func TestErrorsReachThoseWhoAreSlow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &Shared{Deps: Deps{Log: slog.New(slog.NewTextHandler(&out, nil))}}
	ended, end := context.WithCancel(t.Context())
	end()
	w := httptest.NewRecorder()
	s.renderError(w, httptest.NewRequestWithContext(ended, http.MethodPost, "/login", nil), loom.NewError(loom.Invalid, "The body came too slowly."))
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "too slowly") {
		t.Errorf("%d %.200q", w.Code, w.Body)
	}
	s.renderError(refusing{httptest.NewRecorder()}, httptest.NewRequestWithContext(ended, http.MethodPost, "/login", nil), loom.NewError(loom.Invalid, "Nobody reads this."))
	if out.Len() > 0 {
		t.Errorf("the log has %s", out.String())
	}
}

// refusing is the connection of a client who left.
type refusing struct{ *httptest.ResponseRecorder }

func (refusing) Write([]byte) (int, error) { return 0, syscall.EPIPE }
