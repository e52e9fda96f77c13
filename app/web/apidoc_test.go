package web

import (
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"loom/app/httpx"
)

func docServer(t *testing.T) http.Handler {
	t.Helper()
	document, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	return New(Deps{Sessions: httpx.NewSessions(nil, false), Log: slog.New(slog.DiscardHandler), APIDocument: document, PublicURL: "https://loom.example"})
}

func getPage(t *testing.T, h http.Handler, path string, status int) string {
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
	h := docServer(t)
	document, err := os.ReadFile("../api/openapi.json")
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
