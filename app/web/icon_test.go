package web_test

import (
	"encoding/base64"
	"fmt"
	"testing"
)

// TestOwnIcons: a service brings a picture, which tiles show by its address and which does nothing
// when somebody opens it; what is no picture is refused where it is written.
func TestOwnIcons(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, user := r.signedIn("demo", "admin"), r.signedIn("demo", "user")
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	entry := func(icon string) string {
		return fmt.Sprintf(`{"name":"pictured","label":"Pictured","icon":%q}`, icon)
	}
	of := func(mediaType, content string) string {
		return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString([]byte(content))
	}
	admin.post("/admin/services", "body", entry(of("image/svg+xml", svg))).goes(t, "/admin/services/pictured")
	user.get("/services").shows(t, 200, `<img src="/icons/services/pictured/1" alt=""`).hides(t, "data:image")
	got := user.get("/icons/services/pictured/1").shows(t, 200, svg)
	for name, want := range map[string]string{"Content-Type": "image/svg+xml", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Cache-Control": "private, max-age=31536000, immutable"} {
		if is := got.header.Get(name); is != want {
			t.Errorf("%s is %q, want %q", name, is, want)
		}
	}
	for _, path := range []string{"/icons/services/pictured/2", "/icons/services/nginx/1", "/icons/services/pictured/x", "/icons/things/pictured/1", "/icons/services/pictured/-1"} {
		user.get(path).shows(t, 404)
	}
	r.signedIn("superadmin", "admin").get("/icons/services/pictured/1").shows(t, 404)

	for name, icon := range map[string]string{
		"too large": of("image/png", "\x89PNG\r\n\x1a\n"+string(make([]byte, 32<<10))), "no picture": of("image/png", "<html>"), "another type": of("text/html", "<svg"),
		"not base64": "data:image/svg+xml,<svg/>", "a script": "javascript:alert(1)",
	} {
		t.Log(name)
		admin.post("/admin/services/pictured", "expected", "1", "body", entry(icon)).shows(t, 422, "icon")
	}
	admin.post("/admin/services/pictured", "expected", "1", "body", entry(of("image/png", "\x89PNG\r\n\x1a\n"))).goes(t, "/admin/services/pictured")
	user.get("/services").shows(t, 200, "/icons/services/pictured/2")
	user.get("/icons/services/pictured/1").shows(t, 200, svg) // a version stays what it was
}
