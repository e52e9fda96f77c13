//go:build browser

package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestOneTabTooManyPolls opens as many streams as a session may have. The next page says
// that it updates every 5 s, and does; when a stream can be had, it takes that.
func TestOneTabTooManyPolls(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ctx, stop := context.WithCancel(w.ctx)
	hub := make(chan error, 1)
	go func() { hub <- w.hub.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-hub
	})
	op := w.create("shop", 3)
	w.runSome(op, 1, 1)
	var cookie atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if given := r.Header.Get("Cookie"); given != "" {
			cookie.Store(given)
		}
		w.handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	b := w.browseAt(t, server.URL, "ana", browser.Options{})
	b.WaitFor("#live[data-state=live]")
	mine := cookie.Load().(string)
	b.Open("about:blank")

	tabs, closeTabs := context.WithCancel(w.ctx)
	t.Cleanup(closeTabs)
	for open := 0; ; {
		r, err := http.NewRequestWithContext(tabs, http.MethodGet, server.URL+"/events?topics=clusters", nil)
		w.must(err)
		r.Header.Set("Cookie", mine)
		answer, err := http.DefaultTransport.RoundTrip(r)
		w.must(err)
		t.Cleanup(func() { answer.Body.Close() })
		if answer.StatusCode == http.StatusOK {
			open++
			continue
		}
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Content-Type") != "application/problem+json" || answer.Header.Get("Retry-After") == "" {
			t.Fatalf("the stream too many: %s %v", answer.Status, answer.Header)
		}
		if open == 20 {
			break // before, the page that was left still had its own
		}
		answer.Body.Close()
	}

	b.Open(server.URL + route.Cluster(op.Cluster) + "/nodes")
	b.WaitFor("#live[data-state=polling]")
	b.WaitText("Updating every 5 s")
	w.db.MustExec(`UPDATE tasks SET status = 'complete', ended_at = now() WHERE cluster_id = $1 AND NOT gate AND number <= 5`, int64(op.Cluster))
	b.Wait("the new count in the title", func() bool { return strings.HasPrefix(b.Page().Title, "(5/") })
	if b.Has(".c-toast") {
		t.Error("a stream that was refused raised a toast")
	}
	closeTabs()
	b.WaitFor("#live[data-state=live]")
}
