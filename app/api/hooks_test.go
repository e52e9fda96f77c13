package api

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestHookMembers: a slip in a member is refused; what a GET gave can be put back.
func TestHookMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.call(w.admin, post, "/v2/hooks", `{"name":"ci","url":"https://ci.example/","blocking":true}`).want(200).object()["id"].(string)
	one := "/v2/hooks/" + id
	w.call(w.admin, put, one, w.call(w.admin, get, one, "").want(200).body).want(200)
	for _, c := range []struct{ method, path string }{{post, "/v2/hooks"}, {put, one}} {
		w.call(w.admin, c.method, c.path, `{"name":"x","url":"https://x.example/","onTimeOut":"go"}`).fails(400, "onTimeOut", "there are name, url, events")
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const secret = "0123456789abcdef-secret"
	made := w.call(w.admin, post, "/v2/hooks", `{"name":"ci","url":"https://ci.example/","actions":["CLUSTER_CREATE"]}`, "Idempotency-Key", "k").want(200).object()
	id := made["id"].(string)
	if len(made["secret"].(string)) != 43 || made["enabled"] != true || made["onTimeout"] != "refuse" || len(made["events"].([]any)) != 3 || made["actions"].([]any)[0] != "cluster_create" {
		t.Errorf("made %v", made)
	}
	again := w.call(w.admin, post, "/v2/hooks", `{"name":"ci","url":"https://ci.example/","actions":["CLUSTER_CREATE"]}`, "Idempotency-Key", "k").want(200).object()
	if again["id"] != id || again["secret"] != nil {
		t.Errorf("the second answer is %v", again)
	}
	own := w.call(w.admin, post, "/v2/hooks", `{"name":"own","url":"https://own.example/","secret":"`+secret+`"}`).want(200).object()
	if own["secret"] != nil {
		t.Error("a secret that was sent is shown")
	}
	sealed := func() string {
		var s string
		w.must(w.db.Get(&s, `SELECT encode(sealed, 'hex') FROM secrets WHERE entity = $1 AND field = 'secret'`, "hook:"+id))
		return s
	}
	before := sealed()
	put := w.call(w.admin, "PUT", "/v2/hooks/"+id, `{"name":"ci 2","url":"https://ci.example/2","enabled":false,"blocking":true,"onTimeout":"go"}`).want(200).object()
	if put["name"] != "ci 2" || put["enabled"] != false || put["blocking"] != true || len(put["actions"].([]any)) != 0 || put["createTime"] != made["createTime"] || sealed() != before {
		t.Errorf("put gave %v", put)
	}
	w.call(w.admin, "PUT", "/v2/hooks/"+id, `{"name":"ci 2","url":"https://ci.example/2","secret":"`+secret+`"}`).want(200)
	if sealed() == before {
		t.Error("the new secret was not stored")
	}
	if list := w.call(w.admin, get, "/v2/hooks?q=OWN.example", "").want(200).array(); len(list) != 1 || list[0]["name"] != "own" {
		t.Errorf("found %v", list)
	}
	page := w.call(w.admin, get, "/v2/hooks?limit=1", "").want(200)
	if len(page.array()) != 1 || !strings.Contains(page.header.Get("Link"), "after=") {
		t.Errorf("a page is %s, %s", page.body, page.header.Get("Link"))
	}
	for _, token := range []string{w.foreign, w.super} {
		if list := w.call(token, get, "/v2/hooks", "").want(200).array(); len(list) != 0 {
			t.Errorf("another tenant sees %v", list)
		}
		w.call(token, get, "/v2/hooks/"+id, "").want(404)
		w.call(token, del, "/v2/hooks/"+id, "").want(404)
		w.call(token, get, "/v2/hooks/"+id+"/deliveries", "").want(404)
	}
	w.call(w.user, get, "/v2/hooks", "").want(403)
	w.call(w.admin, post, "/v2/hooks", `{"name":"x","url":"https://x.example/","global":true}`).fails(403, "global", "superadmin")
	w.call(w.super, post, "/v2/hooks", `{"name":"x","url":"https://x.example/","global":true}`).want(200)
	w.call(w.admin, post, "/v2/hooks", `{"name":"x","url":"http://10.0.0.1/"}`).fails(400, "url", "LOOM_HOOK_NETWORKS")
	w.call(w.admin, post, "/v2/hooks", `{"name":"x","url":"https://x.example/","events":["never"]}`).fails(400, "events[0]", "never")
	w.call(w.admin, get, "/v2/hooks?nonsense=1", "").fails(400, "nonsense", "takes q")
	w.call(w.admin, get, "/v2/hooks/x", "").want(404)
	w.call(w.admin, del, "/v2/hooks/"+id, "").want(200)
	w.call(w.admin, get, "/v2/hooks/"+id, "").want(404)
	var audit string
	w.must(w.db.Get(&audit, `SELECT string_agg(concat(verb, before, after), ' ' ORDER BY id) FROM audit WHERE kind = 'hook'`))
	if strings.Contains(audit, secret) || strings.Contains(audit, made["secret"].(string)) || !strings.Contains(audit, "https://ci.example/2") || strings.Count(audit, "update{") != 2 {
		t.Errorf("the audit is %s", audit)
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.call(w.admin, post, "/v2/hooks", `{"name":"ci","url":"https://ci.example/"}`).want(200).object()["id"].(string)
	log := "/v2/hooks/" + id + "/deliveries"
	cluster := w.cluster(w.user, "shop")
	w.exec(`UPDATE hook_deliveries SET status = 'delivered', tries = 1, code = 204, ended_at = now()`)
	w.exec(`INSERT INTO hook_deliveries (hook_id, tenant_id, operation_id, event, notice, event_at)
		SELECT hook_id, tenant_id, operation_id, event, notice, event_at - make_interval(hours => i) FROM hook_deliveries, generate_series(1, 4) AS i`)
	all := w.call(w.admin, get, log, "").want(200).array()
	if len(all) != 5 || all[4]["status"] != "delivered" || all[4]["code"] != 204.0 || all[4]["durationMs"] != 0.0 || all[4]["operationId"] != cluster+"-001" ||
		all[0]["nextTime"] == nil || all[0]["tries"] != 0.0 || all[4]["nextTime"] != nil {
		t.Errorf("the log is %v", all)
	}
	if list := w.call(w.admin, get, log+"?result=delivered,failed", "").want(200).array(); len(list) != 1 || list[0]["id"] != all[4]["id"] {
		t.Errorf("delivered are %v", list)
	}
	since := fmt.Sprintf("?since=%.0f", all[1]["time"].(float64)) // three hours ago
	if list := w.call(w.admin, get, log+since, "").want(200).array(); len(list) != 4 {
		t.Errorf("since then %d", len(list))
	}
	// Forth and back through pages of two.
	var seen []any
	next := log + "?limit=2"
	for next != "" {
		page := w.call(w.admin, get, next, "").want(200)
		for _, d := range page.array() {
			seen = append(seen, d["id"])
		}
		link := page.header.Get("Link")
		if next = ""; strings.Contains(link, `rel="next"`) {
			next = strings.TrimPrefix(link[:strings.Index(link, ">")], "<")
		}
	}
	if len(seen) != 5 || seen[0] != all[0]["id"] || seen[4] != all[4]["id"] {
		t.Errorf("pages gave %v", seen)
	}
	page := w.call(w.admin, get, log+"?limit=2", "").want(200)
	cursor := page.header.Get("Link")
	cursor = cursor[strings.Index(cursor, "after=")+6 : strings.Index(cursor, ">")]
	cursor, _, _ = strings.Cut(cursor, "&")
	if back := w.call(w.admin, get, log+"?limit=2&before="+cursor, "").want(200).array(); len(back) != 1 || back[0]["id"] != all[0]["id"] {
		t.Errorf("before the second there is %v", back)
	}
	w.call(w.admin, get, log+"?result=failed&after="+cursor, "").fails(400, "after", "another")
	w.call(w.admin, get, log+"?result=gone", "").fails(400, "result", "delivered")
	w.call(w.admin, get, log+"?since=soon", "").fails(400, "since", "milliseconds")
	w.call(w.admin, get, log+"?status=failed", "").fails(400, "status", "result")

	replay := log + "/" + all[4]["id"].(string) + "/replay"
	made := w.call(w.admin, post, replay, "", "Idempotency-Key", "again").want(200).object()
	if made["id"] == all[4]["id"] || made["status"] != "waiting" || made["event"] != all[4]["event"] {
		t.Errorf("the replay is %v", made)
	}
	if twice := w.call(w.admin, post, replay, "", "Idempotency-Key", "again").want(200).object(); twice["id"] != made["id"] {
		t.Error("the same key replayed twice")
	}
	w.call(w.foreign, post, replay, "").want(404)
	w.call(w.user, post, replay, "").want(403)
	w.call(w.admin, post, log+"/99999999/replay", "").want(404)
	w.call(w.token("acme", "admin", loom.ScopeRead), post, replay, "").want(403)
}
