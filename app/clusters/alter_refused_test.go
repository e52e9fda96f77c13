package clusters_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
)

// each is one request of each kind that works on a cluster of four, made by
// withRoles, with a newer web in the catalog.
func (b *bundle) each(id loom.ClusterID) map[loom.ChangeKind]clusters.ChangeInput {
	last := []loom.NodeID{b.node(id, 1003)}
	return map[loom.ChangeKind]clusters.ChangeInput{
		loom.ChangeExpand: {Machines: 6}, loom.ChangeShrink: {Nodes: last}, loom.ChangeRemoveServices: {Services: []string{"db"}},
		loom.ChangeUpgrade: {}, loom.ChangeResize: {HardwareType: "xlarge"}, loom.ChangeRepair: {Nodes: last},
	}
}

func TestSizesAreRefused(t *testing.T) {
	t.Parallel()
	b := setupWith(t, clusters.Options{MaxMachines: 25})
	b.withRoles()
	id := b.made(3)
	web := b.node(id, 1002)
	for _, c := range []struct {
		kind  loom.ChangeKind
		in    clusters.ChangeInput
		want  loom.Kind
		texts []string
	}{
		{loom.ChangeExpand, clusters.ChangeInput{}, loom.Invalid, []string{"numMachines", "it has 3"}},
		{loom.ChangeExpand, clusters.ChangeInput{Machines: -4}, loom.Invalid, []string{"numMachines"}},
		{loom.ChangeExpand, clusters.ChangeInput{Machines: 3}, loom.Invalid, []string{"numMachines", "has 3 nodes"}},
		{loom.ChangeExpand, clusters.ChangeInput{Machines: 26}, loom.Invalid, []string{"numMachines", "at most 25"}},
		{loom.ChangeExpand, clusters.ChangeInput{Machines: 21}, loom.Unsolvable, []string{"20"}},
		{loom.ChangeShrink, clusters.ChangeInput{}, loom.Invalid, []string{"numMachines"}},
		{loom.ChangeShrink, clusters.ChangeInput{Machines: 3}, loom.Invalid, []string{"numMachines", "fewer"}},
		{loom.ChangeShrink, clusters.ChangeInput{Machines: 2, Nodes: []loom.NodeID{web}}, loom.Invalid, []string{"nodes", "not both"}},
		{loom.ChangeShrink, clusters.ChangeInput{Machines: 1}, loom.Unsolvable, []string{"2"}},
		{loom.ChangeShrink, clusters.ChangeInput{Nodes: []loom.NodeID{"nobody"}}, loom.Invalid, []string{"nodes", "nobody"}},
		{loom.ChangeShrink, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1000)}}, loom.Unsolvable, []string{"db"}},
	} {
		for _, preview := range []bool{true, false} {
			var err error
			if preview {
				_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: c.kind, Cluster: id, Change: c.in})
			} else {
				_, err = b.begin(c.kind, id, c.in)
			}
			wantKind(t, err, c.want)
			if err := says(err, c.texts...); err != nil {
				t.Errorf("%s %+v: %v", c.kind, c.in, err)
			}
		}
	}
	// A named node that cannot go: others could, and are named by their ids.
	_, err := b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1000)}})
	var instead []loom.NodeID
	for _, s := range loom.AsError(err).Unsat.Suggestions {
		instead = append(instead, s.Nodes...)
	}
	if len(instead) != 1 || instead[0] != web && instead[0] != b.node(id, 1001) {
		t.Errorf("suggestions %+v", loom.AsError(err).Unsat.Suggestions)
	}
	if _, err := b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: instead}); err != nil {
		t.Error(err)
	}
	b.runTasks("")
	// A service may hold its nodes.
	b.db.MustExec(`UPDATE clusters SET services = jsonb_set(services, '{web,shrink}', '"refuse"')`)
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 3})
	_, err = b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 2})
	wantKind(t, err, loom.Unsolvable)
	if err := says(err, "web"); err != nil {
		t.Error(err)
	}
	// The quota, also of a preview that fitted when it was made.
	v := b.previewOf(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 5})
	b.db.MustExec(`UPDATE tenants SET max_nodes = 4 WHERE id = $1`, b.tenant)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Exhausted)
	_, err = b.begin(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 5})
	wantKind(t, err, loom.Exhausted)
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Protected: new(true)}); err != nil {
		t.Fatal(err)
	}
	_, err = b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 3})
	wantKind(t, err, loom.Conflict)
	if err := says(err, "protected"); err != nil {
		t.Error(err)
	}
}

func TestAlterationsLookAtStateAndRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(4)
	b.renew("web")
	before, operations := b.shape(id), b.count(`SELECT count(*) FROM operations`)
	for kind, in := range b.each(id) {
		request := clusters.PreviewInput{Kind: kind, Cluster: id, Change: in}
		for _, status := range []loom.ClusterStatus{loom.ClusterPending, loom.ClusterIncomplete, loom.ClusterInconsistent, loom.ClusterTerminated} {
			b.db.MustExec(`UPDATE clusters SET status = $2 WHERE id = $1`, int64(id), status)
			_, err := b.clusters.Preview(b.ctx, b.ana(), request)
			if kind == loom.ChangeRepair && (status == loom.ClusterIncomplete || status == loom.ClusterInconsistent) {
				if err != nil {
					t.Errorf("%s while %s: %v", kind, status, err)
				}
				continue
			}
			wantKind(t, err, loom.Conflict)
			_, err = b.clusters.Begin(b.ctx, b.ana(), request)
			wantKind(t, err, loom.Conflict)
		}
		b.db.MustExec(`UPDATE clusters SET status = 'active' WHERE id = $1`, int64(id))
		_, err := b.clusters.Begin(b.ctx, b.actor("ben", loom.RoleUser), request)
		wantKind(t, err, loom.NotFound)
		reader := b.ana()
		reader.Scopes = []loom.Scope{loom.ScopeRead}
		_, err = b.clusters.Begin(b.ctx, reader, request)
		wantKind(t, err, loom.Forbidden)
		request.ProviderFields = map[string]any{"zone": "c"}
		_, err = b.clusters.Begin(b.ctx, b.ana(), request)
		if e := wantKind(t, err, loom.Invalid); len(e.Fields) != 1 || e.Fields[0].Field != "providerFields.zone" {
			t.Errorf("%s: fields %v", kind, e.Fields)
		}
	}
	for _, kind := range []loom.ChangeKind{loom.ChangeCreate, loom.ChangeSync, "dance"} {
		_, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id})
		wantKind(t, err, loom.Invalid)
	}
	if now := b.shape(id); !reflect.DeepEqual(now, before) || b.count(`SELECT count(*) FROM operations`) != operations {
		t.Errorf("what was refused left\n%+v\nwant\n%+v", now, before)
	}
}

func TestStalePreviewsOfAlterations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	b.renew("web")
	stale := func(v clusters.PreviewView, text string) clusters.PreviewView {
		t.Helper()
		_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
		e := wantKind(t, err, loom.Conflict)
		if e.Preview == "" || !strings.Contains(e.Message, text) {
			t.Fatalf("%+v", e)
		}
		fresh, err := b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview)
		if err != nil || fresh.Kind != v.Kind || fresh.Hash == v.Hash {
			t.Fatalf("%+v, %v", fresh, err)
		}
		return fresh
	}
	upgrade := b.previewOf(loom.ChangeUpgrade, id, clusters.ChangeInput{Services: []string{"web"}})
	b.renew("web")
	upgrade = stale(upgrade, "“web” is now version 4, not 3")
	grow := b.previewOf(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 5, OnFailure: "undo"})
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "s2"}}})
	grow = stale(grow, "“small” is now version 2, not 1")
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(upgrade)); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	grow = stale(grow, "The cluster changed")
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(grow))
	if err != nil {
		t.Fatal(err)
	}
	// The request's policy survived both.
	if op, err := b.clusters.Operation(b.ctx, b.ana(), ref); err != nil || op.OnFailure != loom.OnFailureUndo {
		t.Errorf("%+v, %v", op, err)
	}
	b.runTasks("")
	if now := b.shape(id); len(now.Nodes) != 5 {
		t.Errorf("%+v", now)
	}
	// What cannot be done any more is said, and no new preview made.
	gone := b.previewOf(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1004)}})
	b.alter(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 4})
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(gone))
	if e := wantKind(t, err, loom.Conflict); e.Preview != "" || !strings.Contains(e.Message, "cannot be done any more") {
		t.Errorf("%+v", e)
	}
}

// A hook that refuses, and an abort while it is asked, leave the cluster as it was.
func TestAlterationsThatNeverBegin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(4)
	b.renew("web")
	requests := b.each(id)
	// One node is on its way out already, and stays so.
	if _, err := b.begin(loom.ChangeShrink, id, requests[loom.ChangeShrink]); err != nil {
		t.Fatal(err)
	}
	b.runTasks(loom.ActionDelete)
	b.db.MustExec(`UPDATE clusters SET status = 'active' WHERE id = $1`, int64(id))
	before, members := b.shape(id), b.members(id)
	b.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ($1, 'freeze', 'https://ci.example/', '{start}', true)`, b.tenant)
	ops := execution.New(b.db.DB, b.ring, execution.Options{})
	for kind, in := range requests {
		ref, err := b.begin(kind, id, in)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if c := b.cluster(id); c.Latest.Status != loom.OperationNotSubmitted || c.Status != loom.ClusterPending {
			t.Fatalf("%s: operation %s", kind, c.Latest.Status)
		}
		if kind == loom.ChangeExpand {
			_, err = ops.Abort(b.ctx, b.ana(), ref)
		} else {
			var delivery int64
			if err := b.db.Get(&delivery, `SELECT max(id) FROM hook_deliveries WHERE blocking AND status = 'waiting'`); err != nil {
				t.Fatal(err)
			}
			err = ops.RecordDelivery(b.ctx, loom.DeliveryID(delivery), loom.DeliveryOutcome{Status: loom.DeliveryRefused, Sent: true, Code: 409, Refusal: "Freeze."})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.endOperations()
		now := b.shape(id)
		now.Nodes = now.Nodes[:4] // what was to be made is a record without machine
		if !reflect.DeepEqual(now, before) {
			t.Errorf("%s left\n%+v\nwant\n%+v", kind, now, before)
		}
		same(t, string(kind), b.members(id), members)
	}
}

// Twenty requests at once: one begins, and the quota holds.
func TestAlterationsBeginOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	ids := []loom.ClusterID{b.made(4), b.made(4), b.made(4)}
	b.renew("web")
	kinds := []loom.ChangeKind{loom.ChangeExpand, loom.ChangeUpgrade, loom.ChangeRepair, loom.ChangeRemoveServices}
	requests := b.each(ids[0])
	begun := 0
	for _, err := range together(12, func(i int) error {
		_, err := b.begin(kinds[i%len(kinds)], ids[0], requests[kinds[i%len(kinds)]])
		return err
	}) {
		if err == nil {
			begun++
		} else if !errors.Is(err, loom.Conflict) {
			t.Error(err)
		}
	}
	if begun != 1 {
		t.Errorf("%d began", begun)
	}
	b.runTasks("")
	// Two clusters want the last free nodes.
	use := b.count(`SELECT count(*) FROM nodes WHERE state <> 'deleted'`)
	b.db.MustExec(`UPDATE tenants SET max_nodes = $2 WHERE id = $1`, b.tenant, use+3)
	begun = 0
	for _, err := range together(2, func(i int) error {
		_, err := b.begin(loom.ChangeExpand, ids[1+i], clusters.ChangeInput{Machines: 6})
		return err
	}) {
		if err == nil {
			begun++
		} else if !errors.Is(err, loom.Exhausted) {
			t.Error(err)
		}
	}
	if now := b.count(`SELECT count(*) FROM nodes WHERE state <> 'deleted'`); begun != 1 || now != use+2 {
		t.Errorf("%d began, %d nodes of %d", begun, now, use+3)
	}
}

// A config that names a node by its place is looked at with the nodes that are left.
func TestShrinkLooksAtTheConfig(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	b.db.MustExec(`UPDATE clusters SET config = '{"web": {"second": "%host.service.web[1]%", "all": "%host.service.web%"}}'`)
	_, err := b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 2})
	if e := wantKind(t, err, loom.Invalid); len(e.Fields) != 1 || e.Fields[0].Field != "config/web/second" {
		t.Errorf("%+v", e.Fields)
	}
	// What names a service that is gone stays as it is written, and a warning says so.
	v := b.previewOf(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: []string{"web"}})
	if !strings.Contains(strings.Join(v.Warnings, " "), "%host.service.web%") {
		t.Errorf("warnings %v", v.Warnings)
	}
}

// The policy of the request comes before that of the template, where it can be kept.
func TestFailurePolicyOfAlterations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	tpl := siteTemplate()
	tpl.Administration.OnFailure = loom.OnFailureUndo
	b.save(b.tenant, loom.KindTemplate, tpl)
	id := b.made(3)
	policy := func() string {
		t.Helper()
		return b.cluster(id).Latest.OnFailure
	}
	if got := policy(); got != loom.OnFailureUndo {
		t.Errorf("create: %s", got)
	}
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	if got := policy(); got != loom.OnFailureUndo {
		t.Errorf("expand: %s", got)
	}
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 5, OnFailure: loom.OnFailureKeep})
	if got := policy(); got != loom.OnFailureKeep {
		t.Errorf("expand: %s", got)
	}
	if _, err := b.clusters.RunServices(b.ctx, b.ana(), id, clusters.ServicesInput{Kind: loom.ChangeStop}); err != nil {
		t.Fatal(err)
	}
	if got := policy(); got != loom.OnFailureKeep {
		t.Errorf("stop: %s", got)
	}
}
