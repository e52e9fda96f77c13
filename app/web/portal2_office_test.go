package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"loom/app/testkit"
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

// TestAuditLogTellsDeeds lists one line for each entry and offers what there is to choose.
func TestAuditLogTellsDeeds(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/users", "id", "eve", "role", "user").shows(t, 200, "User eve was created")
	v.post("/admin/hooks", "name", "ci", "url", "http://127.0.0.1:9/x").shows(t, 200)
	r.exec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, after)
		SELECT tenant_id, 'user', via, 'create', 'cluster', '00000042', 'ok', '{"name": "ww-web"}' FROM audit WHERE kind = 'hook'`)
	log := v.get("/admin/audit").shows(t, 200, "Audit log", "<strong>user</strong>", `created cluster <span class="u-mono">ww-web</span>`, `created user <span class="u-mono">eve</span>`,
		`<option value="hook">`, `<option value="create">`, "Signed in", ">24 h</a>")
	noSnakes(t, "the audit log", log.body)
	v.get("/admin/audit?kind=cluster&verb=create").shows(t, 200, "ww-web").hides(t, "created user")
	v.get("/admin/audit?kind=ghost").shows(t, 200, `<option value="ghost" selected`, "No entry matches")
	r.exec(`ALTER TABLE audit DISABLE TRIGGER ALL`)
	r.exec(`UPDATE audit SET created_at = now() - interval '2 days' WHERE kind = 'cluster'`)
	v.get("/admin/audit?period=24h").shows(t, 200, "eve").hides(t, "ww-web")
	v.get("/admin/audit?period=7d").shows(t, 200, "ww-web")
	v.get("/admin/audit?period=24h&as=csv").shows(t, 200, "eve").hides(t, "ww-web")
	v.get("/admin/audit?period=1y").shows(t, 422, "The range is 1h, 24h or 7d.")
	r.signedIn("demo", "user").get("/account/activity").shows(t, 200, "<strong>You</strong>").hides(t, "eve")
}

// TestDisableUsers disables several users by forms alone; those who stay are named.
func TestDisableUsers(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/new-user").shows(t, 200, "New user", `name="id"`, "Create user")
	v.post("/admin/users", "id", "").shows(t, 422, "The user was not created.", "<h1>")
	for _, id := range []string{"eve", "new"} {
		v.post("/admin/users", "id", id, "role", "user").shows(t, 200)
	}
	v.get("/admin/users/new").shows(t, 200, "new")
	v.get("/admin/users").shows(t, 200, `name="id" value="eve" form="bulk"`, `formaction="/admin/bulk/users/disable"`).hides(t, "Create user")
	v.get("/admin/bulk/users/disable").shows(t, 200, "Nothing is selected.")
	ask := v.get("/admin/bulk/users/disable?id=eve&id=new&id=admin&id=ghost&q=e").shows(t, 200, "Disable 2 users", "You can&#39;t disable yourself.", `value="/admin/users?q=e"`).hides(t, ">ghost<")
	fields := testkit.FormValues(t, ask.body, "bulk-form")
	fields["id"] = append(fields["id"], "admin")
	v.send("/admin/bulk/users/disable", fields).shows(t, 200, "Disabled 2 users.", "Not done: 1.")
	v.get("/admin/users?state=disabled").shows(t, 200, `href="/admin/users/eve"`, `href="/admin/users/new"`).hides(t, `href="/admin/users/admin"`)
	r.signedIn("demo", "user").get("/admin/bulk/users/disable?id=eve").shows(t, 403)
}

// TestOfficeSpeaksWords: names of the wire are in code style or not there.
func TestOfficeSpeaksWords(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/hooks", "name", "ci", "url", "http://127.0.0.1:9/x", "actions", "cluster_configure_with_restart", "actions", "cluster_expand").shows(t, 200)
	hook := "/admin/hooks/" + cut(v.get("/admin/hooks").body, `href="/admin/hooks/`, `">ci`)
	for _, page := range []string{"/admin/hooks", "/admin/hooks/new", hook, hook + "/edit", "/admin/audit", "/admin/users", "/admin/new-user", "/admin/users/user", "/admin/settings"} {
		noSnakes(t, page, v.get(page).shows(t, 200).body)
	}
}

var (
	inCode  = regexp.MustCompile(`(?s)<(code|pre|script|style|textarea|details)\b.*?</(code|pre|script|style|textarea|details)>|<span class="[^"]*u-mono[^"]*">[^<]*</span>|<dd class="[^"]*u-mono[^"]*">[^<]*</dd>`)
	markup  = regexp.MustCompile(`<[^>]*>`)
	snakeIn = regexp.MustCompile(`\b[a-z]+(_[a-z]+)+\b`)
)

// noSnakes fails where a page shows a name with underscores outside code style.
func noSnakes(t *testing.T, what, body string) {
	t.Helper()
	text := body[strings.Index(body, "<main"):]
	text = markup.ReplaceAllString(inCode.ReplaceAllString(text, " "), " ")
	if found := snakeIn.FindAllString(text, -1); len(found) > 0 {
		t.Errorf("%s shows %q", what, found)
	}
}
