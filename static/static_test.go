package static_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"loom/static"
)

func get(t *testing.T, method, url, encoding string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, url, nil)
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	w := httptest.NewRecorder()
	static.Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestHashedURLIsServedForEver(t *testing.T) {
	t.Parallel()
	url := static.URL("css/loom.css")
	if !regexp.MustCompile(`^/static/[0-9a-f]{12}/css/loom\.css$`).MatchString(url) {
		t.Fatalf("URL is %s", url)
	}
	want, err := os.ReadFile("css/loom.css")
	if err != nil {
		t.Fatal(err)
	}
	plain := get(t, http.MethodGet, url, "gzip;q=0")
	body, _ := io.ReadAll(plain.Body)
	if plain.StatusCode != 200 || !bytes.Equal(body, want) {
		t.Errorf("plain: status %d, %d bytes of %d", plain.StatusCode, len(body), len(want))
	}
	for header, value := range map[string]string{
		"Cache-Control": "public, max-age=31536000, immutable", "Content-Type": "text/css; charset=utf-8",
		"X-Content-Type-Options": "nosniff", "Vary": "Accept-Encoding", "Content-Encoding": "",
	} {
		if got := plain.Header.Get(header); got != value {
			t.Errorf("%s is %q, want %q", header, got, value)
		}
	}

	zipped := get(t, http.MethodGet, url, "br, gzip;q=0.8")
	if zipped.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("not compressed for a browser that takes gzip")
	}
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(z); !bytes.Equal(body, want) {
		t.Errorf("compressed body differs")
	}

	head := get(t, http.MethodHead, url, "")
	if body, _ := io.ReadAll(head.Body); head.StatusCode != 200 || len(body) != 0 {
		t.Errorf("HEAD: status %d, %d bytes", head.StatusCode, len(body))
	}
}

func TestWrongRequestsAreRefused(t *testing.T) {
	t.Parallel()
	url := static.URL("js/loom.js")
	for _, test := range []struct {
		method, url string
		status      int
	}{
		{http.MethodGet, "/static/000000000000/js/loom.js", 404},
		{http.MethodGet, "/static/js/loom.js", 404},
		{http.MethodGet, "/static/", 404},
		{http.MethodGet, strings.Replace(url, "loom.js", "../static.go", 1), 404},
		{http.MethodGet, static.URL("css/loom.css") + "/", 404},
		{http.MethodPost, url, 405},
	} {
		got := get(t, test.method, test.url, "")
		if got.StatusCode != test.status {
			t.Errorf("%s %s: status %d, want %d", test.method, test.url, got.StatusCode, test.status)
		}
		if strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s %s: a refusal must not be kept", test.method, test.url)
		}
	}
}

func TestUnknownNamePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("URL of a file that does not exist did not panic")
		}
	}()
	static.URL("css/none.css")
}

// What a first visit loads, compressed, stays within the budget of the design
// system; so do the line limits that keep these files readable.
func TestBudget(t *testing.T) {
	t.Parallel()
	total := 0
	for _, name := range []string{
		"css/loom.css", "js/loom.js", "js/log.js", "js/picker.js", "js/code-field.js",
		"vendor/htmx-2.0.11.min.js", "vendor/idiomorph-ext-0.8.0.min.js",
	} {
		body, err := io.ReadAll(get(t, http.MethodGet, static.URL(name), "gzip").Body)
		if err != nil {
			t.Fatal(err)
		}
		total += len(body)
	}
	if total > 60*1024 {
		t.Errorf("styles and scripts are %d bytes compressed, more than 60 KiB", total)
	}
	t.Logf("styles and scripts: %d bytes compressed", total)
	for name, limit := range map[string]int{"css/loom.css": 1700, "js/loom.js": 400} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > limit {
			t.Errorf("%s has %d lines, more than %d", name, lines, limit)
		}
	}
}
