package httpx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"loom/app/loom"
)

// TestWrap: what went wrong inside is logged and answered, unless the client is gone
// and its statements were cancelled for that.
func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		gone             bool
		err              error
		answered, logged bool
	}{
		{"well", false, nil, false, false},
		{"refused", false, loom.NewError(loom.Conflict, "no"), true, false},
		{"broken", false, errors.New("x"), true, true},
		{"away", false, loom.NewError(loom.Unavailable, "later"), true, true},
		{"a limit of our own", false, context.DeadlineExceeded, true, true},
		{"cancelled", true, fmt.Errorf("read: %w", context.Canceled), false, false},
		{"cancelled in the database", true, loom.NewError(loom.Unavailable, "later"), false, false},
		{"broken, for nobody", true, errors.New("x"), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			answered := false
			h := Wrap(slog.New(slog.NewTextHandler(&log, nil)), func(http.ResponseWriter, *http.Request, *loom.Error) { answered = true },
				func(http.ResponseWriter, *http.Request) error { return c.err })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.gone {
				cancel()
			}
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			if answered != c.answered || (log.Len() > 0) != c.logged {
				t.Errorf("answered %v, logged %q", answered, log.String())
			}
		})
	}
}

// TestClientsThatLeaveAreNoErrors: an answer that nobody takes is no error of Loom's, one of
// another connection is.
func TestClientsThatLeaveAreNoErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gone bool
		err  error
		want bool // an error in the log
	}{
		{true, fmt.Errorf("write: %w", syscall.ECONNRESET), false}, {true, syscall.EPIPE, false}, {true, os.ErrDeadlineExceeded, false}, {true, context.Canceled, false},
		{true, errors.New("a mistake"), true}, {false, syscall.ECONNRESET, true},
	} {
		var out bytes.Buffer
		ctx, leave := context.WithCancel(t.Context())
		if c.gone {
			leave()
		}
		h := Wrap(slog.New(slog.NewTextHandler(&out, nil)), WriteProblem, func(http.ResponseWriter, *http.Request) error { return c.err })
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		leave()
		if strings.Contains(out.String(), "level=ERROR") != c.want {
			t.Errorf("gone %v, %v: %q", c.gone, c.err, out.String())
		}
	}
}
