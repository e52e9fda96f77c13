package page

import (
	"net/http/httptest"
	"testing"
)

func TestOrigin(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://loom.example":   "https://loom.example",
		"http://127.0.0.1:8080":  "http://127.0.0.1:8080",
		"http://[::]:8080":       "http://desk.example:8080",
		"http://0.0.0.0:8080":    "http://desk.example:8080",
		"":                       "http://desk.example:8080",
		"https://loom.example/x": "https://loom.example/x",
	} {
		s := &Shared{Deps: Deps{PublicURL: public}}
		r := httptest.NewRequest("GET", "http://desk.example:8080/admin/users", nil)
		if got := s.Origin(r); got != want {
			t.Errorf("with the public address %q the origin is %q, not %q", public, got, want)
		}
	}
	s := &Shared{Deps: Deps{PublicURL: "https://loom.example"}}
	if got, want := s.signInAddress(httptest.NewRequest("GET", "/", nil), "a b"), "https://loom.example/login?tenant=a+b"; got != want {
		t.Errorf("one signs in at %q, not %q", got, want)
	}
}
