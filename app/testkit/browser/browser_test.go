//go:build browser

package browser_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"loom/app/testkit/browser"
)

func page(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<!doctype html><title>t</title><link rel="icon" href="data:,"><p id="p">plain</p>
			<script>document.getElementById("p").textContent = "scripted"; missing();</script>`)) //nolint:errcheck // a test page
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestScriptsAndTheirErrorsAreSeen(t *testing.T) {
	t.Parallel()
	b := browser.New(t, browser.Options{})
	b.Do("open", chromedp.Navigate(page(t)))
	b.WaitText("scripted")
	b.Wait("a complaint", func() bool { return len(b.Complaints()) > 0 })
}

func TestNoScript(t *testing.T) {
	t.Parallel()
	b := browser.New(t, browser.Options{NoScript: true})
	b.Do("open", chromedp.Navigate(page(t)))
	b.WaitText("plain")
	if c := b.Complaints(); len(c) > 0 {
		t.Errorf("complaints without scripts: %v", c)
	}
}
