package clusters_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
)

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestExpandAndShrink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	v := b.previewOf(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	if want := "Adds 1 node, configures db again, runs 9 tasks in 8 stages. Changes nothing else."; v.Summary() != want {
		t.Errorf("summary %q, want %q", v.Summary(), want)
	}
	if v.Before.Nodes != 3 || v.After.Nodes != 4 || v.Layout.Machines() != 4 || len(v.Nodes) != 4 || v.Nodes[3].Hostname != "web-tier1-1003.lab.example" {
		t.Errorf("quota %+v to %+v, nodes %+v", v.Before, v.After, v.Nodes)
	}
	same(t, "changes", lines(v), []string{
		"change service db@1000: It follows web, whose nodes change.", "create service base@1003: ", "create service web@1003: "})
	same(t, "tasks", steps(v.Plan), []string{"bootstrap@1003", "configure db@1000", "configure web@1003", "confirm@1003", "create@1003",
		"install base@1003", "install web@1003", "start base@1003", "start web@1003"})
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	if before := b.before(ref); len(before.Nodes) != 3 || len(before.Services) != 3 {
		t.Errorf("before %+v", before)
	}
	var node loom.Node
	nodes, err := store.NodesByCluster(b.ctx, b.db, b.tenant, id)
	if err != nil || len(nodes) != 4 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	if node = nodes[3]; node.ID != v.Nodes[3].ID || node.Flavor != "s1" || node.Image != "deb12" || node.SSHUser != "ops" || !reflect.DeepEqual(node.Automators, []string{"shell"}) {
		t.Errorf("node %+v", node)
	}
	b.runTasks("")
	same(t, "expanded", b.members(id), []string{"1000 1 small base+db", "1001 1 small base+web", "1002 1 small base+web", "1003 1 small base+web"})

	// The last one goes first, after its neighbours heard of it.
	v = b.previewOf(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 3})
	if want := "Removes 1 node with all that is on it, configures db again, runs 3 tasks in 3 stages. Changes nothing else."; v.Summary() != want {
		t.Errorf("summary %q, want %q", v.Summary(), want)
	}
	same(t, "tasks", steps(v.Plan), []string{"configure db@1000", "delete@1003", "stop web@1003"})
	if !slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.Contains(w, "Node 1003 leaves: what is on the disks") }) || v.After.Nodes != 3 {
		t.Errorf("warnings %v, quota after %+v", v.Warnings, v.After)
	}
	if _, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	if got := b.members(id); got[3] != "1003 1 small base+web leaving" {
		t.Errorf("while it shrinks: %v", got)
	}
	b.runTasks("")
	same(t, "shrunk", b.members(id), []string{"1000 1 small base+db", "1001 1 small base+web", "1002 1 small base+web"})
	c := b.cluster(id)
	if len(c.FormerNodes) != 1 || c.FormerNodes[0].ID != node.ID || c.Status != loom.ClusterActive {
		t.Errorf("gone %+v, %s", c.FormerNodes, c.Status)
	}
	if list, err := b.clusters.Clusters(b.ctx, b.ana(), clusters.ListInput{}); err != nil || list.Items[0].Nodes != 3 {
		t.Errorf("list %+v, %v", list.Items, err)
	}
	if use, err := store.QuotaUse(b.ctx, b.db, b.tenant); err != nil || use.Nodes != 3 {
		t.Errorf("quota %+v, %v", use, err)
	}
	if _, err := b.clusters.NodeRecord(b.ctx, b.ana(), id, node.ID); err != nil {
		t.Errorf("the page of a node that left: %v", err)
	}
	if shown, err := b.clusters.NodeProperties(b.ctx, b.ana(), id, nil); err != nil || len(shown) != 3 {
		t.Errorf("%d properties, %v", len(shown), err)
	}
	// Numbers are not used again.
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 5})
	b.alter(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1001), b.node(id, 1004)}})
	same(t, "by name", b.members(id), []string{"1000 1 small base+db", "1002 1 small base+web", "1005 1 small base+web"})
	// A cluster that is deleted shows the nodes that it had then.
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if c := b.cluster(id); c.Status != loom.ClusterTerminated || len(c.Nodes) != 3 || len(c.FormerNodes) != 3 {
		t.Errorf("terminated %s with %d nodes, %d gone", c.Status, len(c.Nodes), len(c.FormerNodes))
	}
	if list, err := b.clusters.Clusters(b.ctx, b.ana(), clusters.ListInput{}); err != nil || list.Items[0].Nodes != 3 {
		t.Errorf("list %+v, %v", list.Items, err)
	}
}

// Further machines are like those that are there, whatever the template's default.
func TestExpandKeepsTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	in := request(2)
	in.HardwareType = "xlarge"
	ref, err := b.clusters.Create(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	id := ref.Cluster
	// The types say something else by now: new machines are made by that.
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "xlarge"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "l2", "disk": "9"}}})
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 3})
	c := b.cluster(id)
	if n := c.Nodes[2]; n.HardwareType != "xlarge" || n.Flavor != "l2" || c.Nodes[1].Flavor != "l1" {
		t.Errorf("%+v", n)
	}
	if got := b.count(`SELECT count(*) FROM clusters WHERE type_settings->'hardware'->'xlarge'->>'disk' = '9'`); got != 1 {
		t.Error("the settings of the type were not kept")
	}
	// A type that no longer fits the provider gives way to any other.
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "xlarge"}, ProviderMap: map[string]map[string]string{}})
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	if n := b.cluster(id).Nodes[3]; n.HardwareType != "small" {
		t.Errorf("%+v", n)
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(4)
	v := b.previewOf(loom.ChangeResize, id, clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}, Batch: 2})
	if !strings.HasPrefix(v.Summary(), "Gives 3 nodes other hardware, configures db again, runs ") || v.Before.Nodes != v.After.Nodes || v.NodesReplaced != 3 {
		t.Errorf("summary %q, quota %+v", v.Summary(), v.After)
	}
	if !slices.Contains(v.Warnings, "Nodes 1001, 1002, 1003 get other machines: what is on the disks of the present ones is lost.") {
		t.Errorf("warnings %v", v.Warnings)
	}
	if c := v.Changes[0]; c.Change != "replace" || c.Object != "node" || c.Node != 1001 || !strings.Contains(c.Because, "“small” to “xlarge”") {
		t.Errorf("changes %+v", v.Changes)
	}
	was := b.cluster(id)
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	same(t, "resized", b.members(id), []string{"1000 1 small base+db", "1001 2 xlarge base+web", "1002 2 xlarge base+web", "1003 2 xlarge base+web"})
	now := b.cluster(id)
	if n := now.Nodes[1]; n.ID != was.Nodes[1].ID || n.Hostname != was.Nodes[1].Hostname || n.Flavor != "l1" || now.Status != loom.ClusterActive {
		t.Errorf("%+v, %s", n, now.Status)
	}
	if n := b.before(ref).Nodes[1]; n.HardwareType != "small" || n.Flavor != "s1" {
		t.Errorf("before %+v", n)
	}
	for _, c := range []struct {
		in    clusters.ChangeInput
		kind  loom.Kind
		texts []string
	}{
		{clusters.ChangeInput{}, loom.Invalid, []string{"hardwaretype"}},
		{clusters.ChangeInput{HardwareType: "none"}, loom.NotFound, []string{"hardwaretype", "“none”"}},
		{clusters.ChangeInput{HardwareType: "alien"}, loom.Unsolvable, []string{"alien"}},
		{clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}}, loom.Invalid, []string{"hardwaretype", "already"}},
		{clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"ghost"}}, loom.NotFound, []string{"services", "ghost"}},
		{clusters.ChangeInput{HardwareType: "small", Batch: 4}, loom.Invalid, []string{"minHealthy", "takes down"}},
		{clusters.ChangeInput{HardwareType: "small", OnFailure: "undo", Batch: -2}, loom.Invalid, []string{"batch"}},
	} {
		_, err := b.begin(loom.ChangeResize, id, c.in)
		wantKind(t, err, c.kind)
		if err := says(err, c.texts...); err != nil {
			t.Error(err)
		}
	}
	// What the template forbids: the reasons, and a type that may be used.
	b.db.MustExec(`UPDATE clusters SET template = jsonb_set(template, '{constraints,services,db,hardwaretypes}', '["small"]')`)
	_, err = b.begin(loom.ChangeResize, id, clusters.ChangeInput{HardwareType: "xlarge"})
	if e := wantKind(t, err, loom.Unsolvable); len(e.Unsat.Reasons) == 0 || !slices.ContainsFunc(e.Unsat.Suggestions, func(s loom.Suggestion) bool { return len(s.Services) > 0 || s.HardwareType != "" }) {
		t.Errorf("%+v", e.Unsat)
	}
}

// A machine that is dead is only deleted: nothing that is to run there keeps the shrink
// from ending. Those who follow hear of it as of any other.
func TestShrinkOfADeadMachine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	dead := b.node(id, 1002)
	_, err := b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 2, Dead: []loom.NodeID{dead}})
	if e := wantKind(t, err, loom.Invalid); e.Fields[0].Field != "dead" {
		t.Errorf("%+v", e)
	}
	in := clusters.ChangeInput{Nodes: []loom.NodeID{dead}, Dead: []loom.NodeID{dead}}
	v := b.previewOf(loom.ChangeShrink, id, in)
	if !strings.Contains(strings.Join(v.Warnings, "\n"), "Node 1002 counts as dead: nothing is drained or stopped there") {
		t.Errorf("%v", v.Warnings)
	}
	if _, err := b.begin(loom.ChangeShrink, id, in); err != nil {
		t.Fatal(err)
	}
	m.run(func(s step) bool { return s.Node == 1002 && s.Action != "delete" })
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	if want := []string{"configure 1000 db", "delete 1002"}; !slices.Equal(m.ran, want) {
		t.Errorf("%v, want %v", m.ran, want)
	}
	// A repair stops nothing either.
	again := b.node(id, 1001)
	if _, err := b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: []loom.NodeID{again}, Dead: []loom.NodeID{again}}); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	for _, s := range m.ran {
		if strings.HasPrefix(s, "stop 1001") {
			t.Errorf("%s runs on a dead machine", s)
		}
	}
}

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

func TestLayoutChangesCheckStateAndRights(t *testing.T) {
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

func TestStalePreviewsOfLayoutChanges(t *testing.T) {
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
	// What no longer possible is said, and no new preview made.
	gone := b.previewOf(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1004)}})
	b.alter(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 4})
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(gone))
	if e := wantKind(t, err, loom.Conflict); e.Preview != "" || !strings.Contains(e.Message, "no longer possible") {
		t.Errorf("%+v", e)
	}
}

// A hook that refuses, and an abort while it is asked, leave the cluster as it was.
func TestLayoutChangesThatNeverBegin(t *testing.T) {
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
func TestLayoutChangesBeginOnce(t *testing.T) {
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
func TestFailurePolicyOfLayoutChanges(t *testing.T) {
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
	if _, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: loom.ChangeStop}); err != nil {
		t.Fatal(err)
	}
	if got := policy(); got != loom.OnFailureKeep {
		t.Errorf("stop: %s", got)
	}
}

// What failed in a batch ends the roll behind that batch: the other nodes of it, which
// were taken down for it, serve again, and the next one is not touched.
func TestRollingUpdateStopsAfterAFailedBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  loom.ChangeKind
		in    clusters.ChangeInput
		fails loom.TaskAction
		// done are the tasks of node 1002, of which none is missing.
		done string
		web  []loom.ServiceState // of 1001 to 1003
	}{
		{loom.ChangeUpgrade, clusters.ChangeInput{Batch: 2}, loom.ActionStop, "stop, install, configure, start",
			[]loom.ServiceState{loom.ServiceFailed, loom.ServiceStarted, loom.ServiceStarted}},
		{loom.ChangeUpgrade, clusters.ChangeInput{Batch: 2}, loom.ActionStart, "stop, install, configure, start",
			[]loom.ServiceState{loom.ServiceFailed, loom.ServiceStarted, loom.ServiceStarted}},
		{loom.ChangeResize, clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}, Batch: 2}, loom.ActionStart, "create, confirm, bootstrap, install, install, configure, start, start, delete",
			[]loom.ServiceState{loom.ServiceFailed, loom.ServiceStarted, loom.ServiceStarted}},
	} {
		t.Run(string(c.kind)+" "+string(c.fails), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withRoles()
			id := b.made(4)
			b.renew("web")
			ref, err := b.begin(c.kind, id, c.in)
			if err != nil {
				t.Fatal(err)
			}
			b.runTasksBut(func(action loom.TaskAction, node int) bool { return action == c.fails && node == 1001 }, false)
			now := b.cluster(id)
			if now.Status != loom.ClusterInconsistent || now.Latest.Status != loom.OperationFailed {
				t.Errorf("the cluster is %s, the operation %s", now.Status, now.Latest.Status)
			}
			if m := now.Latest.Message; !strings.Contains(strings.ToLower(m), string(c.fails)) || !strings.HasSuffix(m, " on node 1001 failed, and trying again would not help: no") {
				t.Errorf("message %q", m)
			}
			tasks := func(number int, status loom.TaskStatus) string {
				var text string
				if err := b.db.Get(&text, `SELECT coalesce(string_agg(t.action, ', ' ORDER BY t.action_order, t.number), '') FROM tasks t JOIN nodes n ON n.id = t.node_id JOIN operations o ON o.id = t.operation_id
					WHERE o.number = $1 AND n.number = $2 AND t.status = $3`, ref.Number, number, string(status)); err != nil {
					t.Fatal(err)
				}
				return text
			}
			if got := tasks(1002, loom.TaskComplete); got != c.done {
				t.Errorf("done on the other node of the batch: %s, want %s", got, c.done)
			}
			if got := tasks(1003, loom.TaskComplete) + tasks(1003, loom.TaskFailed); got != "" {
				t.Errorf("done on the node of the next batch: %s", got)
			}
			for i, want := range c.web {
				if got := now.Nodes[i+1].ServiceStates["web"]; got != want {
					t.Errorf("web on node %d is %q, want %q", 1001+i, got, want)
				}
			}
			if n := b.count(`SELECT count(*) FROM river_job WHERE state NOT IN ('completed', 'cancelled', 'discarded')`); n != 0 {
				t.Errorf("%d River jobs are left", n)
			}
			// The retry does what is left, and no more.
			again, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeRetry, Cluster: id})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(again)); err != nil {
				t.Fatal(err)
			}
			if n := b.count(`SELECT count(*) FROM tasks t JOIN nodes n ON n.id = t.node_id WHERE t.operation_id = (SELECT max(id) FROM operations) AND n.number = 1002`); n != 0 {
				t.Errorf("%d tasks on the node that is done", n)
			}
			b.runTasks("")
			if now := b.cluster(id); now.Status != loom.ClusterActive {
				t.Errorf("retried: %s", now.Status)
			}
		})
	}
}
