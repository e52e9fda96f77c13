//go:build browser

package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
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

func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	b := browser.New(t, browser.Options{})
	b.Open(page(t))
	if faults := strings.Join(b.Faults(), "\n"); !strings.Contains(faults, "html-has-lang") {
		t.Errorf("a page without language has the faults %q", faults)
	}
}

func TestKeyboardReachesAndTypes(t *testing.T) {
	t.Parallel()
	b := browser.New(t, browser.Options{})
	b.Open("data:text/html,<a href='%23x'>link</a><label><input type=radio name=r checked>one</label><label><input type=radio name=r id=two>two</label><input id=f value=old>")
	hands := b.Keyboard()
	hands.Choose("the second", "#two")
	hands.Fill("the field", "#f", "new text")
	if got := browser.Get(b, "read", chromedp.Value(chromedp.CSS("#f"))); got != "new text" {
		t.Errorf("the field holds %q", got)
	}
	if !b.Has("#two:checked") {
		t.Error("the second is not chosen")
	}
}
