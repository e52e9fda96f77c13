package httpx

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestHostsOfOurOwn: a name that somebody else gave to our address is none of ours, and a
// page of another site speaks for nobody.
func TestHostsOfOurOwn(t *testing.T) {
	t.Parallel()
	hosts := OwnHosts("https://Loom.Example:8443/")
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, origin, site string
		own                bool
	}{
		{"127.0.0.1:8080", "", "", true},
		{"10.1.2.3", "", "", true},
		{"[::1]:8080", "", "", true},
		{"[fe80::1%25eth0]:8080", "", "", true},
		{"localhost:8080", "", "", true},
		{"LOCALHOST.", "", "", true},
		{"loom.example", "", "", true},
		{"loom.example.:443", "", "", true},
		{name + ":8080", "", "", true},
		{"", "", "", true},
		{"rebind.evil.example:8080", "", "", false},
		{"localhost.evil.example", "", "", false},
		{"127.0.0.1.evil.example", "", "", false},
		{"loom.example.evil.example", "", "", false},
		{name + ".evil.example", "", "", false},
		{"127.0.0.1:8080", "http://127.0.0.1:8080", "same-origin", true},
		{"127.0.0.1:8080", "https://loom.example:8443", "", true},
		{"127.0.0.1:8080", "", "none", true},
		{"127.0.0.1:8080", "http://127.0.0.1:9090", "", false},
		{"127.0.0.1:8080", "https://ui.example", "same-origin", true}, // behind a proxy that rewrites Host
		{"127.0.0.1:8080", "https://front.example", "", true},         // one that says so
		{"127.0.0.1:8080", "https://front.example", "cross-site", false},
		{"rebind.evil.example", "http://rebind.evil.example", "same-origin", false},
		{"127.0.0.1:8080", "null", "", false},
		{"127.0.0.1:8080", "http://evil.example", "", false},
		{"127.0.0.1:8080", "", "cross-site", false},
		{"127.0.0.1:8080", "", "same-site", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		r.Header.Set("X-Forwarded-Host", "front.example")
		for header, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		if got := hosts.Names(r); got != c.own {
			t.Errorf("host %q, origin %q, site %q: %v", c.host, c.origin, c.site, got)
		}
	}
}

// TestHostsAreNames: what is no name, address or port is refused before anything repeats it.
func TestHostsAreNames(t *testing.T) {
	t.Parallel()
	h := Chain(slog.New(slog.DiscardHandler), false, http.NewCrossOriginProtection(), WriteProblem, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"": 200, "localhost:8080": 200, "[fe80::1%25eth0]:8080": 200, "my_loom.example.": 200, "XN--LM-FKA.example:80": 200, strings.Repeat("a", 255) + ":65535": 200,
		strings.Repeat("a", 262): 400, strings.Repeat("a", 60_000): 400, "a<b": 400, "a b": 400, "loom.example/": 400, "user@loom.example": 400, "lööm": 400, "a\"b": 400, "a,b": 400,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want || w.Body.Len() > 200 {
			t.Errorf("%.40q: %d %.300s", host, w.Code, w.Body)
		}
	}
}
