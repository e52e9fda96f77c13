package web_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"loom/app/httpx"
	"loom/app/web"
)

// TestLongPathsAreNotRepeated: who asks for a page that is not there gets little back.
func TestLongPathsAreNotRepeated(t *testing.T) {
	t.Parallel()
	h := web.New(web.Deps{Sessions: httpx.NewSessions(nil, false), Log: slog.New(slog.DiscardHandler), APIDocument: []byte("{}")})
	for _, path := range []string{"/x", "/docs/api/x"} {
		for _, fragment := range []string{"", "true"} {
			r := httptest.NewRequest(http.MethodGet, path+strings.Repeat("%80", 15_000), nil)
			r.Header.Set("HX-Request", fragment)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if said := w.Header().Get("HX-Trigger"); w.Code != http.StatusNotFound || len(said) > 2000 || w.Body.Len() > 20_000 || (fragment == "") != (said == "") {
				t.Errorf("%s, fragment %q: %d, a header of %d bytes, %d bytes", path, fragment, w.Code, len(said), w.Body.Len())
			}
		}
	}
}
