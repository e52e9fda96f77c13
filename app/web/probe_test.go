package web_test

import (
	"net/http"
	"testing"
)

// Interactive clients of the predecessor ask for / without credentials first, and
// take 401 for a way of signing in that Loom does not have (rest-api.md 1.4).
func TestProbeOfOldClientsIsNot401(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	for _, headers := range [][]string{nil, {"Accept", "*/*"}, {"Authorization", "Bearer: nonsense"}, {"Coopr-UserID", "admin", "Coopr-TenantID", "superadmin"}} {
		a := r.visitor().get("/", headers...)
		if a.status != http.StatusSeeOther || a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("GET / with %v: %d", headers, a.status)
		}
	}
}
