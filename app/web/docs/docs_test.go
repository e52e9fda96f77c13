package docs

import (
	"compress/gzip"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/httpx"
	"loom/app/web/page"
)

func docServer(t testing.TB, publicURL string) http.Handler {
	t.Helper()
	document, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	shared := page.New(page.Deps{Sessions: httpx.NewSessions(nil, false), Log: slog.New(slog.DiscardHandler), APIDocument: document, PublicURL: publicURL})
	mux := http.NewServeMux()
	for _, rt := range slices.Concat(New(shared).Routes(), shared.CommonRoutes()) {
		mux.Handle(rt.Pattern(), shared.Handler(rt))
	}
	return mux
}

func getPage(t testing.TB, h http.Handler, path string, status int) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != status {
		t.Fatalf("GET %s: %d", path, w.Code)
	}
	return w.Body.String()
}

// Every operation, parameter and member of the document is on the page of its
// chapter, and all links within the pages lead somewhere.
func TestAPIPagesShowTheWholeDocument(t *testing.T) {
	t.Parallel()
	h := docServer(t, "https://loom.example")
	document, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := readAPIDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	index := getPage(t, h, "/docs/api", http.StatusOK)
	pages := map[string]string{}
	for _, tag := range doc.Tags {
		pages["/docs/api/"+tag.Name] = getPage(t, h, "/docs/api/"+tag.Name, http.StatusOK)
	}
	shown := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if len(op.Tags) != 1 {
				t.Fatalf("%s %s has the chapters %v", method, path, op.Tags)
			}
			page := pages["/docs/api/"+op.Tags[0]]
			want := []string{fmt.Sprintf("id=%q", op.OperationID), html.EscapeString(path), html.EscapeString(op.Summary)}
			for _, p := range op.Parameters {
				want = append(want, "<code>"+p.Name+"</code>", html.EscapeString(p.Description))
			}
			for _, text := range want {
				if !strings.Contains(page, text) {
					t.Errorf("%s %s: the page of %s lacks %s", method, path, op.Tags[0], text)
				}
			}
			if !strings.Contains(index, fmt.Sprintf("/docs/api/%s#%s", op.Tags[0], op.OperationID)) {
				t.Errorf("%s %s is not in the overview", method, path)
			}
			shown++
		}
	}
	if shown < 100 {
		t.Errorf("only %d operations", shown)
	}
	fragment := regexp.MustCompile(`href="#([^"]+)"`)
	for path, page := range pages {
		for _, m := range fragment.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(page, `id="`+m[1]+`"`) {
				t.Errorf("%s: #%s leads nowhere", path, m[1])
			}
		}
	}
	getPage(t, h, "/docs/api/nothing", http.StatusNotFound)
}

// Anybody may read these pages, so they are made once: from then on nothing is read of the
// document. They tell the address at which they are read, and show the theme.
func TestAPIPagesTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	p := apiPages{zipped: map[apiKey][]byte{}}
	for i := range 100 {
		page := make([]byte, 1<<20)
		for range 2 {
			got, err := p.compressed(apiKey{origin: fmt.Sprint("http://", i)}, func() ([]byte, error) { return page, nil })
			if err != nil || len(got) != len(page) {
				t.Fatal(len(got), err)
			}
		}
		kept := 0
		for _, body := range p.zipped {
			kept += len(body)
		}
		if kept > apiZippedMost || kept != p.size {
			t.Fatalf("%d bytes are kept, %d are counted", kept, p.size)
		}
	}
}

func TestAPIPagesAreMadeOnce(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	h := docServer(t, "http://0.0.0.0:8080")
	ask := func(host, theme, encoding, fragment string) (body string) {
		r := httptest.NewRequest(http.MethodGet, "/docs/api/clusters?x="+theme, nil)
		r.Host = host
		r.Header.Set("Cookie", "loom-theme="+theme)
		r.Header.Set("Accept-Encoding", encoding)
		r.Header.Set("HX-Request", fragment)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != encoding {
			t.Fatalf("%s, %s: %d %v", host, theme, w.Code, w.Header())
		}
		if encoding == "" {
			return w.Body.String()
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(plain)
	}
	first := ask("a.example", "dark", "", "")
	clear(document)
	for _, fragment := range []string{"", "true"} {
		for _, host := range []string{"a.example", "b.example"} {
			for _, theme := range []string{"dark", "light"} {
				plain := ask(host, theme, "", fragment)
				if !strings.Contains(plain, "http://"+host+"/v2/clusters") || strings.Contains(plain, "loom.invalid") || strings.Contains(plain, "x="+theme) {
					t.Errorf("for %s: %.100q", host, plain)
				}
				for range 2 {
					if ask(host, theme, "gzip", fragment) != plain {
						t.Errorf("for %s in %s, fragment %q: compressed it is another page", host, theme, fragment)
					}
				}
			}
		}
	}
	if got := ask("a.example", "dark", "", ""); got != first {
		t.Error("the page changed")
	}
}

// BenchmarkOpenPages is what a stranger makes Loom do.
func BenchmarkOpenPages(b *testing.B) {
	h := docServer(b, "https://loom.example")
	for _, encoding := range []string{"gzip", ""} {
		b.Run("clusters/"+encoding, func(b *testing.B) {
			getPage(b, h, "/docs/api", http.StatusOK)
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, "/docs/api/clusters", nil)
				r.Header.Set("Accept-Encoding", encoding)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
