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
		forwarded          string
	}{
		{"127.0.0.1:8080", "", "", true, ""},
		{"10.1.2.3", "", "", true, ""},
		{"[::1]:8080", "", "", true, ""},
		{"[fe80::1%25eth0]:8080", "", "", true, ""},
		{"localhost:8080", "", "", true, ""},
		{"LOCALHOST.", "", "", true, ""},
		{"loom.example", "", "", true, ""},
		{"loom.example.:443", "", "", true, ""},
		{name + ":8080", "", "", true, ""},
		{"", "", "", true, ""},
		{"rebind.evil.example:8080", "", "", false, ""},
		{"localhost.evil.example", "", "", false, ""},
		{"127.0.0.1.evil.example", "", "", false, ""},
		{"loom.example.evil.example", "", "", false, ""},
		{name + ".evil.example", "", "", false, ""},
		{"127.0.0.1:8080", "http://127.0.0.1:8080", "same-origin", true, ""},
		{"127.0.0.1:8080", "https://loom.example:8443", "", true, ""},
		{"127.0.0.1:8080", "", "none", true, ""},
		{"127.0.0.1:8080", "http://127.0.0.1:9090", "", false, ""},
		{"127.0.0.1:8080", "https://ui.example", "same-origin", true, ""},      // behind a proxy that rewrites Host
		{"127.0.0.1:8080", "https://front.example", "", true, "front.example"}, // one that says so
		{"127.0.0.1:8080", "https://front.example", "cross-site", false, "front.example"},
		{"127.0.0.1:8080", "https://front.example", "", false, ""},
		{"127.0.0.1:8080", "https://front.example", "", false, "evil.example"},
		{"127.0.0.1:8080", "https://evil.example", "", false, "front.example"},
		{"127.0.0.1:8080", "https://loom.example:8443", "", true, "loom.example:8443"},
		{"127.0.0.1:8080", "", "", true, "loom.example"},
		{"127.0.0.1:8080", "", "same-origin", true, "front.example"},
		{"127.0.0.1:8080", "http://rebind.evil.example", "", false, "rebind.evil.example"}, // its name leads to the proxy
		{"127.0.0.1:8080", "", "", false, "rebind.evil.example"},
		{"127.0.0.1:8080", "", "", false, "localhost, rebind.evil.example"},
		{"rebind.evil.example", "https://front.example", "", false, "front.example"},
		{"rebind.evil.example", "http://rebind.evil.example", "same-origin", false, ""},
		{"127.0.0.1:8080", "null", "", false, ""},
		{"127.0.0.1:8080", "http://evil.example", "", false, ""},
		{"127.0.0.1:8080", "", "cross-site", false, ""},
		{"127.0.0.1:8080", "", "same-site", false, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		for header, value := range map[string]string{"X-Forwarded-Host": c.forwarded, "Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		if got := hosts.Names(r); got != c.own {
			t.Errorf("host %q, forwarded host %q, origin %q, site %q: %v", c.host, c.forwarded, c.origin, c.site, got)
		}
	}
}

// TestCheckSite: what changes something comes from Loom's own pages, by whichever name a proxy was called.
func TestCheckSite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, origin, site, forwarded string
		want                            bool
	}{
		{"PUT", "", "", "", true}, // no browser
		{"PUT", "http://127.0.0.1:8080", "", "", true},
		{"PUT", "https://front.example", "", "front.example", true},
		{"PUT", "https://front.example", "same-origin", "", true},
		{"PUT", "https://front.example", "cross-site", "front.example", false},
		{"PUT", "https://front.example", "same-site", "front.example", false},
		{"PUT", "https://front.example", "", "", false},
		{"PUT", "http://front.example", "", "front.example", false},
		{"PUT", "https://evil.example", "", "front.example", false},
		{"PUT", "null", "", "front.example", false},
		{"GET", "https://evil.example", "cross-site", "front.example", true},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.Host = "127.0.0.1:8080"
		for header, value := range map[string]string{"X-Forwarded-Host": c.forwarded, "Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		if err := CheckSite(http.NewCrossOriginProtection(), r); (err == nil) != c.want {
			t.Errorf("%s, forwarded host %q, origin %q, site %q: %v", c.method, c.forwarded, c.origin, c.site, err)
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
