package web_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// TestServicePage shows actions as what they run, parameters, and how many clusters have each version.
func TestServicePage(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/services/nginx").shows(t, 200, ">nginx.sh configure</td>", "web.title", "No cluster has this service.")
	for n := 1; n <= 8; n++ {
		v.post("/admin/services/nginx", "expected", strconv.Itoa(n), "body", fmt.Sprintf(`{"name":"nginx","description":"%d"}`, n)).goes(t, "/admin/services/nginx")
	}
	for n, clusters := range map[int]int{1: 1, 2: 2, 3: 3, 4: 1, 5: 0, 6: 1, 7: 1, 8: 1} {
		for range clusters {
			id := r.past(r.tenantID("demo"), "user", "web-cluster", "local-small", 0, time.Hour, 0)
			r.exec(`UPDATE clusters SET services = jsonb_build_object('nginx', jsonb_build_object('name', 'nginx', 'version', $2::int)) WHERE id = $1`, id, n)
		}
	}
	gone := r.past(r.tenantID("demo"), "user", "web-cluster", "local-small", 0, time.Hour, 0)
	r.exec(`UPDATE clusters SET status = 'terminated', services = '{"nginx": {"name": "nginx", "version": 5}}' WHERE id = $1`, gone)
	bar := func(label string, n int) string {
		return fmt.Sprintf(`<progress value="%d" max="10" aria-label="%s">`, n, label)
	}
	v.get("/admin/services/nginx").shows(t, 200, bar("v9", 0), bar("v8", 1), bar("v7", 1), bar("v6", 1), bar("v4", 1), bar("v3", 3), bar("Older", 3), `href="/clusters?q=uses%3Anginx%403">3 clusters</a>`).
		hides(t, "No cluster has this service.", `aria-label="v5"`, `aria-label="v2"`, `aria-label="v1"`, "nginx%409")
}
