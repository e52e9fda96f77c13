package web_test

import (
	"net/http"
	"testing"
)

// Interactive clients of the predecessor ask for / without credentials first, and
// take 401 for a way of signing in that Loom does not have.
func TestProbeOfOldClientsIsNot401(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	for _, headers := range [][]string{nil, {"Accept", "*/*"}, {"Authorization", "Bearer: nonsense"}, {"Coopr-UserID", "admin", "Coopr-TenantID", "superadmin"}} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			req, err := http.NewRequestWithContext(r.ctx, method, r.server.URL+"/", nil)
			check(t, err)
			for i := 0; i+1 < len(headers); i += 2 {
				req.Header.Set(headers[i], headers[i+1])
			}
			a := r.visitor().do(req)
			if a.status != http.StatusSeeOther || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s / with %v: %d", method, headers, a.status)
			}
		}
	}
}
