package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// auditOf lists entries as "actor verb kind object result".
func (w *world) auditOf(token, query string) []string {
	w.t.Helper()
	lines := []string{}
	for _, e := range w.call(token, get, "/v2/audit"+query, "").want(200).array() {
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", e["actor"], e["verb"], e["kind"], e["object"], e["result"]))
	}
	return lines
}

func TestAuditShowsEveryoneWhatIsHis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DELETE FROM audit`)
	w.call(w.admin, put, "/v2/services/web", service("web", "")).want(200)
	w.call(w.user, post, "/v2/clusters", `{"name":"shop","clusterTemplate":"site","numMachines":3,"config":{"db":{"password":"planted-1"}}}`).want(200)
	w.call(w.foreign, put, "/v2/services/web", service("web", "")).want(200)
	both := []string{"ana create cluster 00000001 ok", "admin update service web ok"}
	if got := w.auditOf(w.admin, ""); !slices.Equal(got, both) {
		t.Errorf("administrator: %q", got)
	}
	if got := w.auditOf(w.user, ""); !slices.Equal(got, both[:1]) {
		t.Errorf("user: %q", got)
	}
	for _, query := range []string{"?actor=admin", "?kind=service", "?object=web"} {
		if got := w.auditOf(w.user, query); len(got) != 0 {
			t.Errorf("user with %s: %q", query, got)
		}
	}
	if got := w.auditOf(w.second, ""); len(got) != 0 {
		t.Errorf("second user: %q", got)
	}
	if got := w.auditOf(w.super, "?tenant=acme"); !slices.Equal(got, both) {
		t.Errorf("superadmin: %q", got)
	}
	all := w.call(w.super, get, "/v2/audit?tenant=*", "").want(200).array()
	if len(all) != 3 || all[0]["tenant"] != "other" || all[1]["tenant"] != "acme" {
		t.Errorf("all tenants: %v", all)
	}
	for _, token := range []string{w.admin, w.user} {
		w.call(token, get, "/v2/audit?tenant=*", "").fails(403, "", "superadmin")
		w.call(token, get, "/v2/audit?tenant=other", "").fails(403, "", "superadmin")
		w.call(token, get, "/v2/audit?tenant=acme", "").want(200)
	}
	w.call(w.super, get, "/v2/audit?tenant=nobody", "").want(404)
	a := w.call(w.admin, get, "/v2/audit?kind=cluster", "").want(200)
	if strings.Contains(a.body, "planted-1") || !strings.Contains(a.body, "[redacted]") {
		t.Errorf("a config's password: %s", a.body)
	}
	entry := a.array()[0]
	if entry["via"] != "token:test" || entry["requestId"] == "" || entry["after"] == nil || entry["tenant"] != nil {
		t.Errorf("%v", entry)
	}
}

func TestAuditFiltersAndPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DELETE FROM audit`)
	now := time.Now().UnixMilli()
	w.exec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, created_at)
		SELECT (SELECT id FROM tenants WHERE name = 'acme'), (ARRAY['ana','ben','admin'])[1 + i % 3], 'session', (ARRAY['create','update'])[1 + i % 2],
		       (ARRAY['service','template','image type','cluster'])[1 + i % 4], 'o' || i % 5, (ARRAY['ok','ok','refused','failed'])[1 + i % 4], to_timestamp($1 / 1000.0) + make_interval(secs => i)
		FROM generate_series(0, 59) AS i`, now)
	for query, want := range map[string]int{
		"": 60, "?actor=ana": 20, "?actor=ana,ben": 40, "?verb=update": 30, "?kind=service,cluster": 30, "?kind=image%20type": 15, "?object=o3": 12,
		"?result=refused": 15, "?result=refused,failed": 30, "?actor=ana&verb=create&kind=service": 5,
		"?since=" + strconv.FormatInt(now+50_000, 10): 10, "?until=" + strconv.FormatInt(now+50_000, 10): 50,
		"?since=" + strconv.FormatInt(now+10_000, 10) + "&until=" + strconv.FormatInt(now+20_000, 10): 10, "?actor=nobody": 0,
	} {
		if got := w.auditOf(w.admin, query); len(got) != want {
			t.Errorf("%s: %d entries, want %d", query, len(got), want)
		}
	}
	// Forwards and back again each entry comes once, whatever is written meanwhile.
	whole := w.call(w.admin, get, "/v2/audit?actor=ana,ben", "").want(200).array()
	var seen []map[string]any
	path, last := "/v2/audit?actor=ana,ben&limit=7", ""
	for path != "" {
		a := w.call(w.admin, get, path, "").want(200)
		seen = append(seen, a.array()...)
		last, path = path, linkOf(a.header.Get("Link"), "next")
		w.exec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result) SELECT id, 'ana', 'session', 'create', 'cluster', 'new', 'ok' FROM tenants WHERE name = 'acme'`)
	}
	if fmt.Sprint(seen) != fmt.Sprint(whole) {
		t.Errorf("pages give %d entries, the list %d", len(seen), len(whole))
	}
	back := w.call(w.admin, get, linkOf(w.call(w.admin, get, last, "").want(200).header.Get("Link"), "prev"), "").want(200).array()
	if len(back) != 7 || fmt.Sprint(back) != fmt.Sprint(whole[28:35]) {
		t.Errorf("back: %v", back)
	}
	cursor := last[strings.Index(last, "after="):]
	for query, field := range map[string]string{
		"?result=good": "result", "?since=yesterday": "since", "?until=-1": "until", "?limit=0": "limit", "?sort=actor": "sort", "?who=me": "who",
		"?after=x": "after", "?" + cursor: "after", "?actor=ben&" + cursor: "after",
	} {
		w.call(w.admin, get, "/v2/audit"+query, "").fails(400, field, "")
	}
}

func linkOf(header, rel string) string {
	for _, link := range strings.Split(header, ", ") {
		if target, ok := strings.CutSuffix(link, `>; rel="`+rel+`"`); ok {
			return strings.TrimPrefix(target, "<")
		}
	}
	return ""
}

// TestRefusalsAreRecordedOnce: who is refused is on record, but cannot fill the
// record by asking again.
func TestRefusalsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.admin, "hers")
	var nodes []string
	w.must(w.db.Select(&nodes, `SELECT id FROM nodes`))
	w.exec(`DELETE FROM audit`)
	for range 3 {
		for _, kind := range []string{"services", "providers"} {
			w.call(w.user, put, "/v2/"+kind+"/web", `{"name":"web"}`).want(403)
		}
		w.call(w.user, post, "/v2/tenants", `{"name":"mine"}`).want(403)
		for _, node := range nodes {
			w.call(w.user, post, "/v2/clusters/"+id+"/nodes/"+node+"/reveal", "").want(404)
		}
		// Reading, and what is wrong but not forbidden, is none.
		w.call(w.user, get, "/v2/tenants", "").want(403)
		w.call(w.admin, put, "/v2/services/web", `{`).want(400)
		w.call("", put, "/v2/services/web", `{}`).want(401)
	}
	want := []string{
		"ana reveal node clusters/" + id + "/nodes/" + nodes[0] + "/reveal refused", "ana create tenant tenants refused",
		"ana update provider providers/web refused", "ana update service services/web refused",
	}
	if got := w.auditOf(w.admin, ""); !slices.Equal(got, want) {
		t.Errorf("recorded\n%s", strings.Join(got, "\n"))
	}
	w.exec(`UPDATE audit SET created_at = now() - interval '11 minutes'`)
	w.call(w.user, put, "/v2/services/web", `{"name":"web"}`).want(403)
	if got := w.auditOf(w.admin, "?result=refused"); len(got) != len(want)+1 {
		t.Errorf("after a while: %q", got)
	}
}
