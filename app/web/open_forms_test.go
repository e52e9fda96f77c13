package web_test

import (
	"strings"
	"testing"
)

// TestOpenFormsAreSmall: whoever is not known sends small forms, and gets nothing large
// back for them.
func TestOpenFormsAreSmall(t *testing.T) {
	t.Parallel()
	v := newRooms(t).visitor()
	large, long := strings.Repeat(`"`, 20<<10), strings.Repeat(`"`, 256)
	for _, path := range []string{"/login", "/login/dialog", "/account/preferences"} {
		v.post(path, "next", large).shows(t, 422, "larger than 16 KiB").hides(t, "&#34;&#34;")
		a := v.post(path, "tenant", long, "user", long, "password", "x", "theme", "dark", "next", "/"+strings.Repeat("x", 2<<10)).hides(t, "&#34;&#34;")
		if at := a.header.Get("Location"); len(at) > 100 || strings.Contains(a.body, "xxxx") {
			t.Errorf("%s leads to %q", path, at)
		}
		if path != "/account/preferences" {
			a.shows(t, 401, "The user name, password or tenant is wrong.")
		}
	}
	v.get("/login?tenant="+strings.Repeat("%22", 256)).shows(t, 200, "Sign in").hides(t, "&#34;&#34;")
	v.get("/login/dialog?user="+strings.Repeat("%22", 256), "HX-Request", "true").shows(t, 200, "Sign in").hides(t, "&#34;&#34;")
	v.get("/login?other=1&next=/"+strings.Repeat("x", 3<<10)).shows(t, 200, "Sign in").hides(t, "xxxx")
	if at := v.get("/clusters?q=" + strings.Repeat("x", 3<<10)).header.Get("Location"); at != "/login" {
		t.Errorf("a long address leads to %.100q", at)
	}
}
