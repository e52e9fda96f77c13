package clusters_test

import (
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestResize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(4)
	v := b.previewOf(loom.ChangeResize, id, clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}, Batch: 2})
	if !strings.HasPrefix(v.Summary(), "Gives 3 nodes other hardware, configures db again, runs ") || v.Before.Nodes != v.After.Nodes || v.Replaced != 3 {
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

func TestRepair(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	node := b.node(id, 1001)
	b.save(b.tenant, loom.KindImageType, &loom.ImageType{Base: loom.Base{Name: "deb"}, ProviderMap: map[string]map[string]string{"lab": {"image": "deb13"}}})
	v := b.previewOf(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: []loom.NodeID{node}})
	if !strings.HasPrefix(v.Summary(), "Makes the machines of 1 node anew, configures db again, runs ") {
		t.Errorf("summary %q", v.Summary())
	}
	if !slices.Contains(v.Warnings, "Node 1001 gets the image “deb13”, as its type says now; it had “deb12”.") {
		t.Errorf("warnings %v", v.Warnings)
	}
	if v.ByAction[loom.ActionDelete] != 1 || v.ByAction[loom.ActionCreate] != 1 || v.ByAction[loom.ActionStop] != 0 {
		t.Errorf("%v", v.ByAction)
	}
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	same(t, "repaired", b.members(id), []string{"1000 1 small base+db", "1001 2 small base+web", "1002 1 small base+web"})
	for _, c := range []struct {
		nodes []loom.NodeID
		texts []string
	}{
		{nil, []string{"nodes", "Name the nodes"}},
		{[]loom.NodeID{"x", node}, []string{"nodes", "“x”"}},
		{[]loom.NodeID{node[:8]}, []string{"nodes"}},
	} {
		_, err := b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: c.nodes})
		wantKind(t, err, loom.Invalid)
		if err := says(err, c.texts...); err != nil {
			t.Error(err)
		}
	}
}

// A create that failed on the way is repaired node by node, a delete that failed as
// well: what is gone has to be named.
func TestRepairAfterFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.create(b.ana(), 3).Cluster
	b.runTasks(loom.ActionCreate)
	if c := b.cluster(id); c.Status != loom.ClusterIncomplete {
		t.Fatalf("the cluster is %s", c.Status)
	}
	all := []loom.NodeID{b.node(id, 1000), b.node(id, 1001), b.node(id, 1002)}
	b.db.MustExec(`UPDATE nodes SET state = 'planned' WHERE number > 1000`)
	_, err := b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: all[:1]})
	wantKind(t, err, loom.Invalid)
	if err := says(err, "nodes", "Nodes 1001, 1002 have no machine; name them as well."); err != nil {
		t.Error(err)
	}
	b.alter(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: all})
	same(t, "made", b.members(id), []string{"1000 2 small base+db", "1001 2 small base+web", "1002 2 small base+web"})

	// A delete that gets half way.
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	b.runTasks(loom.ActionDelete)
	b.db.MustExec(`UPDATE nodes SET state = 'deleted', results = '{}' WHERE number = 1001`)
	if c := b.cluster(id); c.Status != loom.ClusterIncomplete || len(c.Nodes) != 3 {
		t.Fatalf("%s with %d nodes", c.Status, len(c.Nodes))
	}
	_, err = b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: all[:1]})
	wantKind(t, err, loom.Invalid)
	if err := says(err, "nodes", "Node 1001 has no machine; name it as well."); err != nil {
		t.Error(err)
	}
	v := b.previewOf(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: all[1:2]})
	if v.After.Nodes != v.Before.Nodes+1 {
		t.Errorf("quota %+v to %+v", v.Before, v.After)
	}
	b.db.MustExec(`UPDATE tenants SET max_nodes = 2 WHERE id = $1`, b.tenant)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Exhausted)
	b.db.MustExec(`UPDATE tenants SET max_nodes = 3 WHERE id = $1`, b.tenant)
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	got := b.members(id)
	if c := b.cluster(id); c.Status != loom.ClusterActive || len(got) != 3 || strings.Contains(strings.Join(got, " "), "leaving") || !strings.HasPrefix(got[1], "1001 3 ") {
		t.Errorf("%s: %v", c.Status, got)
	}
}

// A node that a failed shrink left on its way out stays there until it is named.
func TestNodesLeftOnTheirWayOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(4)
	out := b.node(id, 1003)
	fail := func() {
		t.Helper()
		if _, err := b.begin(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: []loom.NodeID{out}}); err != nil {
			t.Fatal(err)
		}
		b.runTasks(loom.ActionDelete)
		if c := b.cluster(id); c.Status != loom.ClusterInconsistent || !c.Nodes[3].Leaving {
			t.Fatalf("%s, %v", c.Status, b.members(id))
		}
	}
	fail()
	if _, err := b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1001)}}); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM tasks WHERE operation_id = (SELECT max(id) FROM operations) AND node_id = $1`, string(out)); n != 0 {
		t.Errorf("%d tasks on a node that is on its way out", n)
	}
	b.runTasks("")
	// It counts for the quota, not for the size, and a warning tells of it.
	v := b.previewOf(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 2})
	if v.Before.Nodes != 4 || v.After.Nodes != 3 || !slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.HasPrefix(w, "Node 1003 is on the way out") }) {
		t.Errorf("%+v %v", v.After, v.Warnings)
	}
	b.alter(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: []loom.NodeID{out}})
	same(t, "finished", b.members(id), []string{"1000 1 small base+db", "1001 2 small base+web", "1002 1 small base+web"})
	// Or it is repaired, and stays.
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	out = b.node(id, 1004)
	fail()
	b.alter(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: []loom.NodeID{out}})
	same(t, "kept", b.members(id), []string{"1000 1 small base+db", "1001 2 small base+web", "1002 1 small base+web", "1004 2 small base+web"})
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
