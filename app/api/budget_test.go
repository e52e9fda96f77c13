package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"loom/app/loom"
)

// TestBodiesWithTooManyValues: a text of 4 MiB that would take gigabytes is refused, and
// named, before it is decoded.
func TestBodiesWithTooManyValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, body := range map[string]string{
		"/v2/previews": `{"kind":"create","request":{"name":"x","config":{"a":[{"":0}` + strings.Repeat(`,{"":0}`, 590_000) + `]}}}`,
		"/v2/clusters": `{"name":"x","config":{"a":[1` + strings.Repeat(",1", 200_000) + `]}}`,
	} {
		a := w.call(w.user, http.MethodPost, path, body)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "more than 100000 values") {
			t.Errorf("%s: %d %.300s", path, a.status, a.body)
		}
	}
}

// TestBodiesAreDecodedFewAtOnce: what requests decode at once has a weight, most of it that
// of small values. Who waits in vain is told to come back, and who was answered makes room.
func TestBodiesAreDecodedFewAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := semaphore.NewWeighted(maxDecoding)
		body := []byte("[" + strings.Repeat(`{"":0},`, 49_000) + "1]")
		var releases []func()
		take := func(ctx context.Context, body []byte) error {
			ctx, release := shared(ctx, budget)
			releases = append(releases, release)
			err := takeShare(ctx, body, time.Second)
			if again := takeShare(ctx, body, time.Second); err == nil && again != nil {
				t.Errorf("a body that is read again: %v", again)
			}
			return err
		}
		for i := range 6 {
			if err := take(t.Context(), body); i < 5 && err != nil || i == 5 && !errors.Is(err, loom.Throttled) {
				t.Errorf("body %d: %v", i, err)
			}
		}
		large := make([]byte, 2*maxDecoding) // alone it passes
		err := take(t.Context(), large)
		if !errors.Is(err, loom.Throttled) || loom.AsError(err).RetryAfter == 0 {
			t.Errorf("a large one: %v", err)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := take(gone, large); !errors.Is(err, context.Canceled) {
			t.Errorf("of a client who is gone: %v", err)
		}
		if err := take(t.Context(), []byte(`{}`)); err != nil {
			t.Errorf("a small one: %v", err)
		}
		for _, release := range releases {
			release()
		}
		if err := take(t.Context(), large); err != nil {
			t.Errorf("a large one alone: %v", err)
		}
	})
}
