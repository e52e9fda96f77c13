//go:build browser

package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"loom/app/testkit/browser"
)

// recorder is a test that notes its failures instead of failing.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// What the policy of a page refuses makes a test fail by itself, scripts or not, and
// what it allows does not.
func TestRefusedContentFailsTheTest(t *testing.T) {
	t.Parallel()
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		switch r.URL.Path {
		case "/bad":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>t</title><link rel="icon" href="data:,"><p style="color: red">red</p><script>document.title = "x"</script>`)
		case "/good":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>t</title><link rel="icon" href="data:,"><script src="/good.js"></script><p>plain</p>`)
		case "/good.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `document.title = "y"`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	for name, c := range map[string]struct {
		path, shows string
		options     browser.Options
		fails       bool
	}{
		"refused":                 {"/bad", "red", browser.Options{}, true},
		"refused without scripts": {"/bad", "red", browser.Options{NoScript: true}, true},
		"allowed":                 {"/good", "plain", browser.Options{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			t.Cleanup(func() {
				if failed := strings.Contains(strings.Join(r.errors, "\n"), "style-src"); failed != c.fails {
					t.Errorf("the test failed %v: %q", failed, r.errors)
				}
			})
			b := browser.New(r, c.options)
			b.Open(s.URL + c.path)
			b.WaitText(c.shows)
			if c.fails {
				b.Wait("a refusal", func() bool { return len(b.Refused()) > 0 })
			}
		})
	}
}
