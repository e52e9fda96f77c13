package web_test

import (
	"strings"
	"testing"
)

// A name that is taken is told at its field, to which the summary links, and what was
// typed stays.
func TestTakenNamesAreToldAtTheirField(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	for what, page := range map[string]answer{
		"tenant": super.post("/system/tenants", "name", "demo", "workers", "0", "description", "typed before"),
		"user":   admin.post("/admin/users", "id", "user", "role", "user", "displayName", "typed before"),
	} {
		field := map[string]string{"tenant": "f-name", "user": "f-id"}[what]
		page.shows(t, 409, `href="#`+field+`"`, `id="`+field+`-error"`, "exists already", `value="typed before"`)
		if n := strings.Count(page.body, `aria-invalid="true"`); n != 1 {
			t.Errorf("%s: %d fields are marked, want the one with the name", what, n)
		}
	}
}
