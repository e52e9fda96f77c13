package web_test

import (
	"net/http"
	"testing"
)

// TestAuditFoldsItsFilters opens the fold of the filters used less where one of them is
// set, since it decides what is shown.
func TestAuditFoldsItsFilters(t *testing.T) {
	t.Parallel()
	v := newRooms(t).signedIn("demo", "admin")
	v.get("/admin/audit?actor=admin").shows(t, http.StatusOK, "<details><summary>More filters</summary>", `name="actor"`, `name="object"`)
	for _, query := range []string{"since=2026-01-02", "object=admin", "from=10.0.0.1", "request=none"} {
		v.get("/admin/audit?"+query).shows(t, http.StatusOK, "<details open><summary>More filters</summary>")
	}
}
