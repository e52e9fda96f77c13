package api

import (
	"testing"
)

// TestQueues: superadmins list queues, pause and resume them, and read River jobs, the
// clusters of all tenants and the nodes of one.
func TestQueues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/v2/queues", "/v2/riverjobs", "/v2/riverjobs/1", "/v2/system/clusters", "/v2/tenants/superadmin/nodes"} {
		w.call(w.admin, get, path, "").want(403)
	}
	w.call(w.admin, post, "/v2/queues/hook/pause", "").want(403)
	all := w.call(w.super, get, "/v2/queues", "").want(200).array()
	if len(all) != 5 || all[0]["queue"] != "control" || all[0]["pausedTime"] != nil {
		t.Errorf("the queues are %v", all)
	}
	held := w.call(w.super, post, "/v2/queues/hook/pause", "").want(200).object()
	if held["queue"] != "hook" || held["pausedTime"] == nil {
		t.Errorf("the paused queue is %v", held)
	}
	w.call(w.super, post, "/v2/queues/hook/pause", "").want(200)
	if gone := w.call(w.super, post, "/v2/queues/hook/resume", "").want(200).object(); gone["pausedTime"] != nil {
		t.Errorf("the queue that goes on is %v", gone)
	}
	w.call(w.super, post, "/v2/queues/nothing/pause", "").want(404)
	w.call(w.super, get, "/v2/queues?sort=color", "").fails(400, "sort", "queue")

	if _, err := w.db.Exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) SELECT 'available', 'control', 'trim_events', '{"n": 7}', 25 FROM generate_series(1, 3)`); err != nil {
		t.Fatal(err)
	}
	page := w.call(w.super, get, "/v2/riverjobs?limit=2&kind=trim_events", "").want(200)
	found := page.array()
	if len(found) != 2 || found[0]["kind"] != "trim_events" || found[0]["args"].(map[string]any)["n"] != float64(7) || page.header.Get("Link") == "" {
		t.Fatalf("River jobs are %v", found)
	}
	w.call(w.super, get, "/v2/riverjobs/"+found[0]["id"].(string), "").want(200)
	w.call(w.super, get, "/v2/riverjobs/424242", "").want(404)
	w.call(w.super, get, "/v2/riverjobs/x", "").want(404)
	w.call(w.super, get, "/v2/riverjobs?id=x", "").fails(400, "id", "number")
	w.call(w.super, get, "/v2/riverjobs?state=asleep", "").fails(400, "state", "none of")
	w.call(w.super, get, "/v2/system/clusters?status=odd", "").fails(400, "status", "pending")
	w.call(w.super, get, "/v2/system/clusters?tenant=nowhere", "").want(200)
	w.call(w.super, get, "/v2/tenants/nowhere/nodes", "").want(404)
	w.call(w.super, get, "/v2/tenants/superadmin/nodes", "").want(200)
}
