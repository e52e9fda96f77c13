package api

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"loom/app/httpx"
	"loom/app/loom"
)

// TestEveryKindHasAStatus holds the mapping of kinds to statuses complete; 503
// exists on new routes only, because old clients do not know it.
func TestEveryKindHasAStatus(t *testing.T) {
	t.Parallel()
	want := map[loom.Kind][2]int{
		loom.Invalid: {400, 400}, loom.Unsolvable: {400, 400}, loom.Unauthenticated: {401, 401}, loom.Forbidden: {403, 403},
		loom.NotFound: {404, 404}, loom.Conflict: {409, 409}, loom.Exhausted: {409, 409}, loom.Throttled: {429, 429},
		loom.Unavailable: {500, 503}, loom.Internal: {500, 500},
	}
	for _, kind := range loom.Kinds {
		for i, render := range []httpx.ErrorRenderer{Problem, newProblem} {
			rec := httptest.NewRecorder()
			render(rec, httptest.NewRequest(http.MethodGet, "/v2/clusters", nil), loom.NewError(kind, "Words."))
			if rec.Code != want[kind][i] || rec.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: %d %v", kind, rec.Code, rec.Header())
			}
			if httpx.Title(kind) == "" {
				t.Errorf("%s has no title", kind)
			}
			if kind == loom.Unauthenticated && rec.Header().Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		}
	}
}
