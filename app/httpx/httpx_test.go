package httpx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
