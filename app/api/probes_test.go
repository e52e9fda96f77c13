package api

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
)

// answering works requests to providers as a provisioner would, with answers of
// the test.
type answering struct {
	probe    loom.Probe
	machines []loom.TaggedMachine
	refuse   atomic.Pointer[loom.Error]
	// wait, if set, is closed when lists may be answered.
	wait atomic.Pointer[chan struct{}]
}

func (a *answering) Probe(context.Context, *loom.ProviderCall) (loom.Probe, error) {
	return a.probe, nil
}

func (a *answering) Machines(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, bool, error) {
	if gate := a.wait.Load(); gate != nil {
		<-*gate
	}
	return a.machines, true, nil
}

func (a *answering) Remove(context.Context, *loom.ProviderCall, loom.TaggedMachine, bool) error {
	if e := a.refuse.Load(); e != nil {
		return e
	}
	return nil
}

// provisioner starts one that ends with the test.
func (w *world) provisioner(asker processes.Asker) {
	w.t.Helper()
	f := processes.New(w.db.DB, processes.Options{Ring: w.ring, Lease: time.Hour})
	process, err := f.Register(w.t.Context(), processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-over })
	notices, err := store.Listen(ctx, w.db.DSN, "public.river_insert")
	w.must(err)
	go func() {
		defer close(over)
		for range notices {
			for {
				var id int64
				if err := w.db.GetContext(ctx, &id, `DELETE FROM river_job WHERE id = (SELECT min(id) FROM river_job WHERE kind = 'probe_provider')
					RETURNING (args->>'request_id')::bigint`); err != nil {
					break
				}
				if err := f.WorkRequest(ctx, process, id, asker); err != nil && ctx.Err() == nil {
					w.t.Errorf("request %d: %v", id, err)
				}
			}
		}
	}()
}

func TestProviderProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provisioner(&answering{probe: loom.Probe{OK: false, Checks: []loom.ProbeCheck{{Name: "root", Message: "Start it as root."}},
		Flavors: []loom.ProbeFlavor{{ID: "mem=1g", Name: "1 GB", RAM: 1024}}, Images: []loom.ProbeImage{{ID: "bookworm", Name: "Debian"}}}})
	const path = "/v2/providers/lab/probe"
	w.call(w.admin, get, path, "").fails(404, "", "never probed")
	w.call(w.admin, get, "/v2/providers/moon/probe", "").fails(404, "", "moon")
	w.call(w.admin, post, "/v2/providers/moon/probe", "").fails(404, "", "moon")
	w.call(w.user, post, path, "").want(403)
	w.call(w.user, get, path, "").want(403)
	w.call(w.token("acme", "admin", loom.ScopeCatalogWrite), post, path, "").fails(403, "", "admin")
	w.call(w.foreign, post, path, "").want(404)
	made := w.call(w.token("acme", "admin", loom.ScopeAdmin), post, path, "").want(200)
	o := made.object()
	if o["ok"] != false || o["time"].(float64) < float64(time.Now().Add(-time.Hour).UnixMilli()) {
		t.Errorf("probe: %s", made.body)
	}
	if !strings.Contains(made.body, `"checks":[{"name":"root","ok":false,"message":"Start it as root.","ms":0}],"flavors":[{"id":"mem=1g","name":"1 GB","ram":1024}],"images":[{"id":"bookworm","name":"Debian"}],"choices":{}`) {
		t.Errorf("probe: %s", made.body)
	}
	if read := w.call(w.token("acme", "admin", loom.ScopeRead), get, path, "").want(200); read.body != made.body {
		t.Errorf("read %s after %s", read.body, made.body)
	}
	w.call(w.admin, get, path+query("x", "y"), "").fails(400, "x", "")
}

// TestProbeBeforeSaving: a document is tested as saving it would make it, follows the same
// route, and is shown to nobody but who asked.
func TestProbeBeforeSaving(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/v2/providers/probe"
	const body = `{"providertype":"fake","provisioner":{"region":"north"}}`
	w.call(w.admin, post, path, body).fails(503, "", "No provisioner is running. Start one with “loom provisioner”")
	w.provisioner(&answering{probe: loom.Probe{OK: true, Checks: []loom.ProbeCheck{{Name: "sign in", OK: true, Message: "Yes."}}, Choices: map[string][]loom.ProbeChoice{"region": {{ID: "north"}}}}})
	w.call(w.user, post, path, body).want(403)
	w.call(w.token("acme", "admin", loom.ScopeRead), post, path, body).fails(403, "", "admin")
	w.call(w.admin, post, path, "7").want(400)
	w.call(w.admin, post, path, `{"provisioner":{}}`).fails(400, "providertype", "")
	begun := w.call(w.token("acme", "admin", loom.ScopeAdmin), post, path, body).want(202)
	id := begun.object()["id"].(string)
	if at := begun.header.Get("Location"); at != "/v2/probes/"+id {
		t.Errorf("it is to be followed at %s", at)
	}
	var o map[string]any
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		if o = w.call(w.admin, get, "/v2/probes/"+id, "").want(200).object(); o["state"] == "passed" {
			break
		}
	}
	if o["state"] != "passed" || o["ok"] != true || o["provider"] != nil || len(o["choices"].(map[string]any)["region"].([]any)) != 1 {
		t.Errorf("the answer: %v", o)
	}
	for _, who := range []string{w.foreign, w.second} {
		if got := w.call(who, get, "/v2/probes/"+id, ""); got.status != 404 && got.status != 403 {
			t.Errorf("another one reads %d: %s", got.status, got.body)
		}
	}
	for _, none := range []string{"0", "x", "424242"} {
		w.call(w.admin, get, "/v2/probes/"+none, "").want(404)
	}
	if saved := w.call(w.admin, get, "/v2/providers", "").want(200); strings.Contains(saved.body, "draft-") {
		t.Errorf("it was saved: %s", saved.body)
	}
}

// TestTestCarriesOver saves a provider after testing the same draft: it counts as tested. A draft of
// another person, or with any other field or secret, does not count.
func TestTestCarriesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provisioner(&answering{probe: loom.Probe{OK: true, Checks: []loom.ProbeCheck{{Name: "sign in", OK: true, Message: "Yes."}}}})
	w.exec(`INSERT INTO users (tenant_id, id, role, display_name) SELECT id, 'colleague', 'admin', 'Colleague' FROM tenants WHERE name = 'acme'`)
	colleague := w.token("acme", "colleague", loom.ScopeAdmin)
	document := func(name, region, key string) string {
		secret := ""
		if key != "" {
			secret = `,"secret_key":"` + key + `"`
		}
		return `{"name":"` + name + `","providertype":"fake","provisioner":{"region":"` + region + `"` + secret + `}}`
	}
	test := func(who, body string) (id string) {
		t.Helper()
		id = w.call(who, post, "/v2/providers/probe", body).want(202).object()["id"].(string)
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
			if w.call(who, get, "/v2/probes/"+id, "").want(200).object()["state"] == "passed" {
				return id
			}
		}
		t.Fatal("the test does not end")
		return ""
	}
	tested := func(name string) bool {
		t.Helper()
		answer := w.call(w.admin, get, "/v2/providers/"+name+"/probe", "")
		return answer.status == 200 && answer.object()["ok"] == true
	}
	id := test(w.admin, document("", "north", "k-1"))
	w.call(w.admin, post, "/v2/providers", document("far", "south", "k-1")).want(200)
	w.call(w.admin, post, "/v2/providers", document("other", "north", "k-2")).want(200)
	w.call(colleague, post, "/v2/providers", document("theirs", "north", "k-1")).want(200)
	for _, name := range []string{"far", "other", "theirs"} {
		if tested(name) {
			t.Errorf("%s counts as tested", name)
		}
	}
	w.call(w.admin, post, "/v2/providers", document("right", "north", "k-1")).want(200)
	if !tested("right") {
		t.Error("what was tested and saved counts as not tested")
	}
	if state := w.call(w.admin, get, "/v2/probes/"+id, "").want(200).object(); state["provider"] != "right" {
		t.Errorf("the test is about %v", state["provider"])
	}
	w.call(w.admin, post, "/v2/providers", document("twin", "north", "k-1")).want(200)
	if tested("twin") {
		t.Error("a test counts twice")
	}

	// The next version, whose secret is the stored one; an answer about what it was before goes.
	test(w.admin, document("right", "west", ""))
	w.call(w.admin, post, "/v2/providers/right/probe", "").want(200)
	before := w.call(w.admin, get, "/v2/providers/right/probe", "").want(200).object()["time"].(float64)
	w.call(w.admin, put, "/v2/providers/right", document("right", "west", "")).want(200)
	if now := w.call(w.admin, get, "/v2/providers/right/probe", "").want(200).object()["time"].(float64); now >= before {
		t.Error("the answer is still that of what was saved before")
	}
	var answers, digests int
	w.must(w.db.Get(&answers, `SELECT count(*) FROM provider_requests WHERE provider_name = 'right' AND purpose = 'probe'`))
	w.must(w.db.Get(&digests, `SELECT count(*) FROM provider_requests WHERE digest IS NOT NULL`))
	if answers != 1 || digests != 0 {
		t.Errorf("%d answers, %d digests", answers, digests)
	}
}

func TestProbeThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *Deps) { d.Processes = nil })
	w.api.Processes = processes.New(w.db.DB, processes.Options{AskTimeout: 20 * time.Millisecond})
	a := w.call(w.admin, post, "/v2/providers/lab/probe", "")
	a.fails(503, "", "loom provisioner")
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "left")
	w.finish(id)
	number, _ := loom.ParseClusterID(id)
	w.exec(`UPDATE clusters SET status = 'terminated' WHERE id = $1`, int64(number))
	w.exec(`UPDATE operations SET ended_at = now() - interval '1 h' WHERE cluster_id = $1`, int64(number))
	var nodes []struct {
		ID     string `db:"id"`
		Name   string `db:"hostname"`
		Tenant string `db:"tenant_id"`
	}
	w.must(w.db.Select(&nodes, `UPDATE nodes SET state = 'deleted' WHERE cluster_id = $1 RETURNING id, hostname, tenant_id`, int64(number)))
	asker := &answering{}
	for i, n := range nodes {
		asker.machines = append(asker.machines, loom.TaggedMachine{ID: "m-" + string(rune('a'+i)), Name: n.Name, Node: loom.NodeID(n.ID),
			Key: loom.IdempotencyKey(loom.NodeID(n.ID), 1), Cluster: id, Tenant: loom.TenantID(n.Tenant)})
	}
	w.provisioner(asker)
	w.must(w.deps.Processes.RequestSweeps(t.Context()))
	until := time.Now().Add(30 * time.Second)
	var all []map[string]any
	for len(all) < 3 && time.Now().Before(until) {
		all = w.call(w.super, get, "/v2/orphans", "").want(200).array()
	}
	if len(all) != 3 || all[0]["tenant"] != "acme" || all[0]["provider"] != "lab" || all[0]["clusterId"] != id || all[0]["name"] == "" || all[0]["firstSeen"].(float64) <= 0 {
		t.Fatalf("orphans: %v", all)
	}
	page := w.call(w.super, get, "/v2/orphans?limit=2&sort=id", "").want(200)
	if len(page.array()) != 2 || !strings.Contains(page.header.Get("Link"), `rel="next"`) {
		t.Errorf("a page: %s, %v", page.body, page.header)
	}
	w.call(w.super, get, "/v2/orphans?sort=color", "").fails(400, "sort", "firstSeen")
	w.call(w.admin, get, "/v2/orphans", "").want(403)
	one := "/v2/orphans/" + all[0]["id"].(string)
	w.call(w.admin, del, one, "").want(403)
	w.call(w.super, del, "/v2/orphans/x", "").want(404)
	w.call(w.super, del, "/v2/orphans/424242", "").want(404)
	asker.refuse.Store(loom.NewError(loom.Unavailable, "The cloud is closed."))
	w.call(w.super, del, one, "").fails(503, "", "The cloud is closed.")
	asker.refuse.Store(nil)
	w.call(w.super, del, one, "").want(200)
	w.call(w.super, del, one, "").want(404)
	if left := w.call(w.super, get, "/v2/orphans", "").want(200).array(); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
	w.exec(`INSERT INTO leftovers (tenant_id, cluster_id, node_id, incarnation, provider_name, machine_id, tries, last_error)
		SELECT tenant_id, cluster_id, id, 1, 'lab', 'm-' || hostname, 2, 'It is locked.' FROM nodes WHERE cluster_id = $1`, int64(number))
	behind := w.call(w.super, get, "/v2/leftovers?limit=2", "").want(200)
	if left := behind.array(); len(left) != 2 || left[0]["tenant"] != "acme" || left[0]["provider"] != "lab" || left[0]["clusterId"] != id || left[0]["machineId"] != "m-"+left[0]["hostname"].(string) ||
		left[0]["lastError"] != "It is locked." || left[0]["tries"] != 2.0 || left[0]["lastTry"].(float64) <= 0 || !strings.Contains(behind.header.Get("Link"), `rel="next"`) {
		t.Errorf("leftovers: %v", left)
	}
	w.call(w.admin, get, "/v2/leftovers", "").want(403)

	// Look now.
	const sweep = "/v2/providers/lab/sweep"
	w.call(w.user, post, sweep, "").want(403)
	w.call(w.admin, post, "/v2/providers/moon/sweep", "").want(404)
	w.call(w.admin, get, "/v2/sweeps", "").want(403)
	w.call(w.admin, post, "/v2/sweeps", "").want(403)
	w.exec(`UPDATE provider_requests SET ended_at = now() - interval '1 h' WHERE purpose = 'sweep'`)
	gate := make(chan struct{})
	asker.wait.Store(&gate)
	if got := w.call(w.admin, post, sweep, "").want(200).object(); got["state"] == "idle" || got["requestTime"].(float64) <= 0 || got["orphans"] != 2.0 {
		t.Errorf("a look that begins: %v", got)
	}
	w.call(w.admin, post, sweep, "").fails(409, "", "under way")
	w.call(w.super, post, "/v2/sweeps", "").fails(409, "", "under way")
	close(gate)
	until = time.Now().Add(30 * time.Second)
	for time.Now().Before(until) && w.call(w.admin, get, sweep, "").want(200).object()["state"] != "idle" {
	}
	if all := w.call(w.super, get, "/v2/sweeps", "").want(200).array(); len(all) != 1 || all[0]["state"] != "idle" || all[0]["provider"] != "lab" || all[0]["lastTime"].(float64) < float64(time.Now().Add(-time.Minute).UnixMilli()) {
		t.Errorf("sweeps: %v", all)
	}
	w.call(w.super, post, "/v2/sweeps", "").want(200)
}
