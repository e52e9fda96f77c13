package web_test

import (
	"fmt"
	"testing"
	"time"
)

// TestHooksListTellsDeliveries shows the last delivery of each hook and what failed today.
func TestHooksListTellsDeliveries(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	for _, name := range []string{"ci", "quiet"} {
		v.post("/admin/hooks", "name", name, "url", "http://127.0.0.1:9/x", "actions", "cluster_expand", "enabled", "true").shows(t, 200, "Hook "+name+" was created")
	}
	list := v.get("/admin/hooks").shows(t, 200, "Scale up", "Start, Success, Failure", "Last delivery", "Failures, 24 h").hides(t, "cluster_expand", "result=failed")
	hook := cut(list.body, `href="/admin/hooks/`, `">ci`)
	cluster := r.past(r.tenantID("demo"), "ana", "web", "small", 1, time.Hour, time.Minute)
	deliver := func(status, problem, ago string) {
		r.exec(fmt.Sprintf(`INSERT INTO hook_deliveries (hook_id, tenant_id, cluster_id, event, notice, status, error, ended_at)
			SELECT id, tenant_id, %d, 'health', '{}', '%s', '%s', now() - interval '%s' FROM hooks WHERE id = %s`, cluster, status, problem, ago, hook))
	}
	deliver("failed", "long ago", "2 days")
	deliver("failed", "connection refused", "1 hour")
	v.get("/admin/hooks").shows(t, 200, "connection refused", `href="/admin/hooks/`+hook+`?result=failed">1</a>`, "–")
	deliver("delivered", "", "1 minute")
	v.get("/admin/hooks").shows(t, 200, "Delivered", `?result=failed">1</a>`).hides(t, "connection refused")
	v.get("/admin/hooks/new").shows(t, 200, "<summary>Advanced</summary>", "Legacy payload", "Scale up").hides(t, ">cluster_expand<")
	v.get("/admin/hooks/"+hook).shows(t, 200, "Scale up").hides(t, "cluster_expand")
}
