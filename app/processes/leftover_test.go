package processes_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"loom/app/loom"
	"loom/app/processes"
)

// left makes a cluster whose delete left its machine behind.
func (a *asked) left(cluster int) loom.TaggedMachine {
	a.t.Helper()
	m := a.node("t1", cluster, "incomplete", "failed")
	a.exec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, started_at, ended_at)
		VALUES ('t1', $1, 1, 'cluster_delete', 'failed', 'ana', now() - interval '1 h', now() - interval '1 h')`, cluster)
	a.exec(`UPDATE clusters SET latest_operation = 1 WHERE id = $1`, cluster)
	a.exec(`INSERT INTO leftovers (tenant_id, cluster_id, node_id, incarnation, provider_name, machine_id, tries, last_error)
		VALUES ('t1', $1, $2, 1, 'lab', $3, 3, 'locked')`, cluster, m.Node, m.ID)
	sealed, err := a.ring.Seal("t1", "cluster:"+loom.ClusterID(cluster).String(), "token", loom.NewSecret("user-token"))
	a.must(err)
	a.exec(`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t1', $1, 'token', $2)`, "cluster:"+loom.ClusterID(cluster).String(), sealed)
	return m
}

func (a *asked) state(cluster int) string {
	a.t.Helper()
	var s string
	a.must(a.db.Get(&s, `SELECT c.status || ' ' || l.tries || ' ' || l.ending || ' ' || n.state || ' ' || (SELECT count(*) FROM secrets WHERE entity LIKE 'cluster:%')
		FROM clusters c JOIN leftovers l ON l.cluster_id = c.id JOIN nodes n ON n.id = l.node_id WHERE c.id = $1`, cluster))
	return s
}

func TestSweepRemovesLeftovers(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	m := a.left(1)
	a.exec(`INSERT INTO hooks (tenant_id, name, url, events) VALUES ('t1', 'dns', 'https://hooks.example/', '{success}')`)
	c := &cloud{machines: []loom.TaggedMachine{m}, err: loom.NewError(loom.Unavailable, "It is locked still.")}
	// What is said of a try that failed is kept, and no secret is.
	a.must(a.sweep(c))
	if got := a.state(1); got != "incomplete 4  failed 1" {
		t.Errorf("after a try that failed: %s", got)
	}
	if n := a.count(`SELECT count(*) FROM leftovers WHERE last_error = 'It is locked still.'`); n != 1 {
		t.Error("the last error is another")
	}
	i := slices.IndexFunc(c.calls, func(call *loom.ProviderCall) bool { return call.Provider.Fields["token"] == "user-token" })
	if i < 0 || c.calls[i].Provider.Fields["pin"] != pin || c.calls[i].Facts["providerid"] != m.ID {
		t.Errorf("the provider is asked without the fields of the cluster: %+v", c.calls)
	}
	// One request at a time.
	a.must(a.RequestSweeps(a.ctx))
	a.must(a.RequestSweeps(a.ctx))
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE purpose = 'leftover' AND ended_at IS NULL`); n != 1 {
		t.Errorf("%d requests wait", n)
	}
	c.err = nil
	for _, id := range a.requests() {
		a.must(a.WorkRequest(a.ctx, a.process, id, c))
	}
	if got := a.state(1); got != "terminated 5 removed deleted 0" || !slices.Equal(c.removed, []string{"m1"}) {
		t.Errorf("after the removal of %v: %s", c.removed, got)
	}
	if n := a.count(`SELECT count(*) FROM hook_deliveries WHERE event = 'success' AND notice->'Cluster'->>'Status' = 'terminated'`); n != 1 {
		t.Errorf("%d notices", n)
	}
	for _, want := range []string{"verb = 'remove' AND kind = 'leftover' AND object = 'lab/m1'", "verb = 'delete' AND kind = 'cluster' AND before->>'status' = 'incomplete'"} {
		if n := a.count(`SELECT count(*) FROM audit WHERE actor = 'system' AND ` + want); n != 1 {
			t.Errorf("%d entries where %s", n, want)
		}
	}
	// Nothing is left to ask for.
	a.must(a.RequestSweeps(a.ctx))
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE purpose = 'leftover' AND ended_at IS NULL`); n != 0 {
		t.Errorf("%d requests for what is gone", n)
	}
}

// What tasks learned of the machine in secret is what its removal may need.
func TestLeftoverIsRemovedWithSealedFacts(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	m := a.left(1)
	a.exec(`UPDATE nodes SET results = results || '{"registration": {"url": "https://registry.example"}}' WHERE id = $1`, m.Node)
	for name, text := range map[string]string{"registration": `{"api_token": "t0ken-of-the-node"}`, "ssh-auth": `{"password": "made-up-pass"}`} {
		sealed, err := a.ring.Seal("t1", "node:"+string(m.Node), name, loom.NewSecret(text))
		a.must(err)
		a.exec(`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t1', $1, $2, $3)`, "node:"+string(m.Node), name, sealed)
	}
	c := &cloud{machines: []loom.TaggedMachine{m}}
	a.must(a.sweep(c))
	i := slices.IndexFunc(c.calls, func(call *loom.ProviderCall) bool { return call.Facts != nil })
	if i < 0 {
		t.Fatalf("the provider is asked without facts: %+v", c.calls)
	}
	call := c.calls[i]
	registration, _ := call.Facts["registration"].(map[string]any)
	auth, _ := call.Facts["ssh-auth"].(map[string]any)
	if registration["api_token"] != "t0ken-of-the-node" || registration["url"] != "https://registry.example" || auth["password"] != "made-up-pass" || call.Facts["providerid"] != m.ID {
		t.Errorf("facts %v", call.Facts)
	}
	for _, secret := range []string{"t0ken-of-the-node", "made-up-pass"} {
		if !slices.Contains(call.Sensitive, secret) {
			t.Errorf("%s may be said", secret)
		}
	}
}

func TestLeftoversThatAreLeftAlone(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	ask := func(c *cloud) error {
		t.Helper()
		a.must(a.RequestSweeps(a.ctx))
		var errs []error
		for _, id := range a.requests() {
			errs = append(errs, a.WorkRequest(a.ctx, a.process, id, c))
		}
		return errors.Join(errs...)
	}
	// A machine that does not answer is there, whosever it is.
	m := a.left(1)
	c := &cloud{machines: []loom.TaggedMachine{{ID: m.ID}}}
	a.must(ask(c))
	if got := a.state(1); got != "incomplete 4  failed 1" || len(c.removed) != 0 {
		t.Errorf("a machine that does not answer: %s, removed %v", got, c.removed)
	}
	// A machine that the provider does not list any longer is gone, others of the account are not ours.
	foreign := m
	foreign.Tenant = "t2"
	c = &cloud{machines: []loom.TaggedMachine{foreign}}
	a.exec(`UPDATE provider_requests SET created_at = now() - interval '1 day'`)
	a.must(ask(c))
	if got := a.state(1); got != "terminated 5 removed deleted 0" || len(c.removed) != 0 {
		t.Errorf("%s, removed %v", got, c.removed)
	}
	// A delete that began meanwhile has the first word.
	m = a.left(2)
	a.must(a.RequestSweeps(a.ctx))
	a.exec(`UPDATE clusters SET status = 'pending' WHERE id = 2`)
	a.operation(2, "running", nil)
	c = &cloud{machines: []loom.TaggedMachine{m}}
	for _, id := range a.requests() {
		a.must(a.WorkRequest(a.ctx, a.process, id, c))
	}
	if got := a.state(2); got != "pending 3  failed 1" || len(c.removed) != 0 {
		t.Errorf("beside a delete: %s, removed %v", got, c.removed)
	}
	if a.must(a.RequestSweeps(a.ctx)); a.count(`SELECT count(*) FROM provider_requests WHERE purpose = 'leftover' AND ended_at IS NULL`) != 0 {
		t.Error("a removal is asked for beside a delete")
	}
	a.requests()
	a.exec(`UPDATE provider_requests SET ended_at = now() WHERE ended_at IS NULL`)
	// A plugin that cannot list is given the id; without one it is said why not.
	a.left(3)
	a.left(4)
	a.exec(`UPDATE leftovers SET machine_id = '' WHERE cluster_id = 4`)
	c = &cloud{blind: true}
	a.must(ask(c))
	if got := a.state(3); got != "terminated 4 removed deleted 2" || !slices.Equal(c.removed, []string{"m3"}) {
		t.Errorf("%s, removed %v", got, c.removed)
	}
	if n := a.count(`SELECT count(*) FROM leftovers WHERE cluster_id = 4 AND tries = 4 AND ended_at IS NULL AND last_error LIKE 'The provider''s id of the machine is unknown%'`); n != 1 {
		t.Errorf("a machine without a name: %s", a.state(4))
	}
	// While a list cannot be had, nothing is known.
	c = &cloud{before: func(context.Context) error { return errors.New("broken pipe") }}
	if err := ask(c); !errors.Is(err, processes.ErrRecorded) {
		t.Errorf("trouble with the list: %v", err)
	}
	if got := a.state(4); got != "incomplete 5  failed 2" {
		t.Errorf("%s", got)
	}
}
