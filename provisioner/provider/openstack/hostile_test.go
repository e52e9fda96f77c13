package openstack_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// TestHostileAnswers: clouds that answer four probes at once with as many objects as they
// like cost little memory, at the sign-in and in lists of any number of pages.
func TestHostileAnswers(t *testing.T) { // not parallel: it measures what is allocated
	l, _ := lab(t, false)
	flood := func(w io.Writer, beginning, each string, bytes int) {
		_, _ = io.WriteString(w, beginning)
		chunk := strings.Repeat(each, 1+4096/len(each))
		for sent := 0; sent < bytes; sent += len(chunk) {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
	var front *httptest.Server
	front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		services := strings.HasPrefix(r.URL.Path, "/fair")
		w.Header().Set("X-Subject-Token", "t")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/auth/tokens") && services:
			w.WriteHeader(http.StatusCreated)
			at := func(kind string) string {
				return fmt.Sprintf(`{"type":%q,"name":"x","endpoints":[{"interface":"public","region":"RegionOne","region_id":"RegionOne","url":%q}]}`, kind, front.URL+"/fair/"+kind)
			}
			fmt.Fprintf(w, `{"token":{"expires_at":"2099-01-01T00:00:00.000000Z","catalog":[%s,%s,%s]}}`, at("compute"), at("network"), at("image"))
		case strings.HasSuffix(r.URL.Path, "/auth/tokens"):
			w.WriteHeader(http.StatusCreated)
			flood(w, `{"token":{"catalog":[`, `{"endpoints":[{}]},`, 60<<20)
		case strings.Contains(r.URL.Path, "flavors"): // pages without end, each within its limits
			fmt.Fprintf(w, `{"flavors":[%s{}],"flavors_links":[{"rel":"next","href":%q}]}`, strings.Repeat("{},", 90_000), front.URL+r.URL.Path)
		default:
			fmt.Fprintf(w, `{"images":[%s{}],"next":%q,"keypairs":[]}`, strings.Repeat("{},", 90_000), r.URL.Path)
		}
	}))
	t.Cleanup(front.Close)
	for _, path := range []string{"/flood", "/fair"} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		probes := make([]loom.Probe, 4)
		for i := range probes {
			call := l.Call()
			call.Reach, call.Provider = loom.Anywhere(), l.Spec(0).Provider
			call.Provider.Fields[provider.EndpointField] = front.URL + path
			all.Go(func() {
				var err error
				if probes[i], err = l.Provider.(provider.Prober).Probe(l.Context(), call); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		runtime.ReadMemStats(&after)
		taken := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: 4 probes allocated %d MB in all; the process has %d MB of the system", path, taken, after.Sys>>20)
		for _, probe := range probes {
			if said := fmt.Sprint(probe.Checks); probe.OK || !strings.Contains(said, "more than") && !strings.Contains(said, "longer than") {
				t.Errorf("%s: %s", path, said)
			}
		}
		if path == "/flood" && taken > 500 {
			t.Errorf("4 probes allocated %d MB", taken)
		}
	}
}
