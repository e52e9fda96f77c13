//go:build browser

package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"loom/app/testkit"
	"loom/app/testkit/browser"
)

// TestNetworksThatChangeAreNotSeen loads pages with more scripts than a browser asks for at
// once; while they are on the way, a bridge with an address comes and goes on the host, as
// local machines make them. Those that wait for a connection then would be lost.
func TestNetworksThatChangeAreNotSeen(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("lmtest%d", os.Getpid())
	ip := func(args ...string) error {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %q: %w: %s", args, err, out)
		}
		return nil
	}
	comeAndGo := func() error {
		for _, args := range [][]string{{"link", "add", name, "type", "bridge"}, {"addr", "add", "198.51.100.1/24", "dev", name}, {"link", "set", name, "up"}, {"link", "del", name}} {
			if err := ip(args...); err != nil {
				return err
			}
		}
		return nil
	}
	t.Cleanup(func() { ip("link", "del", name) }) //nolint:errcheck // it is gone unless something failed
	if err := comeAndGo(); err != nil {
		testkit.Skip(t, "%v", err)
	}
	const scripts = 12
	var turn sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>loaded</title><link rel="icon" href="data:,">`)
			for i := range scripts {
				fmt.Fprintf(w, `<script defer src="/%d.js"></script>`, i)
			}
			return
		}
		turn.Lock()
		defer turn.Unlock()
		if err := comeAndGo(); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `document.title += "x"`)
	}))
	t.Cleanup(s.Close)
	b := browser.New(t, browser.Options{})
	for range 5 {
		b.Open(s.URL)
		b.WaitLoaded()
		if title := b.Page().Title; title != "loaded"+strings.Repeat("x", scripts) {
			t.Errorf("the page has the title %q", title)
		}
	}
	for _, c := range b.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}
