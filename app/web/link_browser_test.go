//go:build browser

package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// refreshAll makes the live parts of a page fetch themselves, as a signal does.
func refreshAll(b *browser.Browser) {
	browser.Get(b, "refresh what lives", chromedp.Evaluate[string](`document.querySelectorAll('[data-live]').forEach(e => e.dispatchEvent(new CustomEvent('loom:live'))); ""`))
}

func hears(b *browser.Browser) string {
	return browser.Get(b, "read what is said", chromedp.Evaluate[string](`document.querySelector('#cluster-said [role=status], #operation-head [role=status]')?.textContent ?? ''`))
}

// TestOpenPagesTell follows an operation by the title of the window and by what is read
// aloud, and loses the server and its database on the way.
func TestOpenPagesTell(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 3)
	w.runSome(op, 1, 1)
	var trouble atomic.Int32
	real := w.handler
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case trouble.Load() == 1 && !strings.HasPrefix(r.URL.Path, "/static/"):
			panic(http.ErrAbortHandler)
		case trouble.Load() == 2 && !strings.HasPrefix(r.URL.Path, "/static/"):
			http.Error(rw, "no database", http.StatusServiceUnavailable)
		default:
			real.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(server.Close)
	b := w.browseAt(t, server.URL, "ana", browser.Options{})
	title := func(want string) {
		t.Helper()
		b.Wait("the title "+want, func() bool { return strings.HasPrefix(b.Page().Title, want) })
	}
	b.Open(server.URL + route.Cluster(op.Cluster) + "/nodes")
	b.WaitFor("#live[data-ready]")
	title("(1/")
	w.db.MustExec(`UPDATE tasks SET status = 'complete', ended_at = now() WHERE cluster_id = $1 AND NOT gate AND number <= 5`, int64(op.Cluster))
	refreshAll(b)
	title("(5/")
	if said := hears(b); !strings.HasPrefix(said, "Create of shop") {
		t.Errorf("what is said: %q", said)
	}

	trouble.Store(1)
	refreshAll(b)
	b.WaitText("Loom does not answer.")
	b.WaitFor("#live[data-state=lost]")
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("without a server: %q", faults)
	}
	trouble.Store(2)
	refreshAll(b)
	b.WaitText("Loom cannot reach its database.")
	if b.Has(".c-toast") {
		t.Error("a part that could not be fetched again raised a toast")
	}
	trouble.Store(0)
	w.finish(op, loom.ClusterActive)
	refreshAll(b)
	b.WaitGone("#link-lost")
	title("(complete)")
	b.Wait("the end is said", func() bool { return hears(b) == "Create of shop is complete." })

	b.Open(server.URL + route.OperationTasks(op))
	title("(complete) Create shop")
	w.db.MustExec(`UPDATE operations SET ended_at = now() - interval '1 hour' WHERE cluster_id = $1`, int64(op.Cluster))
	refreshAll(b)
	title("Create shop")
}

// TestLostRefreshComesAgain loses the answer to the last refresh a page asks for, as a
// browser does when the network of its computer changes; no signal follows.
func TestLostRefreshComesAgain(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 3)
	w.runSome(op, 1, 1)
	var lose atomic.Bool
	real := w.handler
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/events"):
			<-r.Context().Done() // a stream that says nothing
			return
		case r.Header.Get("HX-Request") == "true" && lose.Load():
			panic(http.ErrAbortHandler)
		}
		real.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	b := w.browseAt(t, server.URL, "ana", browser.Options{})
	b.Open(server.URL + route.Cluster(op.Cluster) + "/nodes")
	b.WaitFor("#live[data-ready]")
	lose.Store(true)
	w.db.MustExec(`UPDATE tasks SET status = 'complete', ended_at = now() WHERE cluster_id = $1 AND NOT gate AND number <= 5`, int64(op.Cluster))
	refreshAll(b)
	b.WaitFor("#live[data-state=lost]")
	b.WaitGone("[data-live].htmx-request")
	lose.Store(false)
	b.WaitFor("#live:not([data-state=lost])")
	b.WaitGone("#link-lost")
	b.Wait("the title (5/", func() bool { return strings.HasPrefix(b.Page().Title, "(5/") })
}
