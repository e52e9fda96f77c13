package clusters_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestRepair(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	node := b.node(id, 1001)
	b.save(b.tenant, loom.KindImageType, &loom.ImageType{Base: loom.Base{Name: "deb"}, ProviderMap: map[string]map[string]string{"lab": {"image": "deb13"}}})
	v := b.previewOf(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: []loom.NodeID{node}})
	if !strings.HasPrefix(v.Summary(), "Replaces the machines of 1 node, configures db again, runs ") {
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

// notRunning are "service@node state" of what does not run on the nodes of a cluster.
func (b *bundle) notRunning(id loom.ClusterID) []string {
	b.t.Helper()
	var out []string
	for _, n := range b.cluster(id).Nodes {
		for _, name := range n.Services {
			if !n.Leaving && n.ServiceStates[name] != loom.ServiceStarted {
				out = append(out, fmt.Sprintf("%s@%d %s", name, n.Number, n.ServiceStates[name]))
			}
		}
	}
	return out
}

func (b *bundle) runs(kind loom.ChangeKind, id loom.ClusterID, service string) {
	b.t.Helper()
	if _, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: kind, Service: service}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) repairs(id loom.ClusterID, numbers ...int) clusters.PreviewView {
	b.t.Helper()
	var in clusters.ChangeInput
	for _, n := range numbers {
		in.Nodes = append(in.Nodes, b.node(id, n))
	}
	v := b.previewOf(loom.ChangeRepair, id, in)
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		b.t.Fatal(err)
	}
	return v
}

// unready are the nodes that a service which should run keeps from being ready.
func (b *bundle) unready(id loom.ClusterID) []string {
	b.t.Helper()
	v := b.cluster(id)
	var out []string
	for _, n := range v.Nodes {
		if v.Unmet[n.ID].Wanted {
			out = append(out, fmt.Sprint(n.Number))
		}
	}
	return out
}

// TestRepairRestoresWhatShouldRun: what an operation that failed left stopped runs
// again after the repair of any node; what somebody stopped stays stopped.
func TestRepairRestoresWhatShouldRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()

	// A restart stops web everywhere, and fails before it starts it again.
	b.runs(loom.ChangeRestart, id, "web")
	m.run(fault(loom.ActionStart, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	if down := b.notRunning(id); len(down) != 2 {
		t.Fatalf("down: %v", down)
	}
	same(t, "nodes that are not ready after half a restart", b.unready(id), []string{"1001", "1002"})
	v := b.repairs(id, 1000)
	if v.ByAction[loom.ActionCreate] != 1 || !slices.ContainsFunc(v.Changes, func(c clusters.ChangeLine) bool {
		return c.Node == 1001 && c.Object == "service" && c.Name == "web" && c.New == "started" && strings.Contains(c.Because, "should run")
	}) {
		t.Errorf("%v, changes %+v", v.ByAction, v.Changes)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	same(t, "down after the repair", b.notRunning(id), nil)

	// What was stopped on request stays so, also when another operation fails later.
	b.runs(loom.ChangeStop, id, "web")
	m.run(nil)
	stopped := b.notRunning(id)
	same(t, "nodes that are not ready after a stop", b.unready(id), nil)
	b.runs(loom.ChangeStart, id, "db") // which starts what it needs, and nothing else
	m.run(fault(loom.ActionStart, "db"))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	v = b.repairs(id, 1000)
	if !slices.ContainsFunc(v.Warnings, func(w string) bool {
		return strings.Contains(w, "“web”") && strings.Contains(w, "stopped, as requested") && strings.Contains(w, "1001, 1002")
	}) {
		t.Errorf("warnings %v", v.Warnings)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	same(t, "down after the second repair", b.notRunning(id), stopped)

	// Until somebody starts it: a start that fails is a wish as well.
	b.runs(loom.ChangeStart, id, "web")
	m.run(fault(loom.ActionStart, "web"))
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	b.repairs(id, 1000)
	m.run(nil)
	same(t, "down after the third repair", b.notRunning(id), nil)
}

// TestRepairFinishesWhatFailed: services that a failed operation left half way on nodes
// that are not repaired are put there to the end, whatever failed where.
func TestRepairFinishesWhatFailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()

	// New services get half way on one node.
	add := clusters.PreviewInput{Kind: loom.ChangeAddServices, Cluster: id, Services: []string{"cache"}}
	b.starts(add)
	m.run(func(s step) bool { return s.Action == "install" && s.Service == "cache" && s.Node == 1001 })
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	v := b.repairs(id, 1002)
	if !slices.ContainsFunc(v.Changes, func(c clusters.ChangeLine) bool { return c.Node == 1001 && c.Name == "cache" && c.Change == "create" }) {
		t.Errorf("changes %+v", v.Changes)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	same(t, "down after the repair", b.notRunning(id), nil)

	// An upgrade fails between two batches: what was begun is finished in the new version.
	b.starts(clusters.PreviewInput{Kind: loom.ChangeUpgrade, Cluster: id})
	m.run(func(s step) bool { return s.Action == "install" && s.Service == "web" })
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	v = b.repairs(id, 1000)
	if !slices.ContainsFunc(v.Warnings, func(w string) bool {
		return strings.Contains(w, "(update services) did not finish") && strings.Contains(w, "retry")
	}) {
		t.Errorf("warnings %v", v.Warnings)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	same(t, "down after the upgrade", b.notRunning(id), nil)
}

// TestRepairFinishesACreate: the nodes that are there are finished, and one without a
// machine has to be named.
func TestRepairFinishesACreate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action, service string
		node            int
	}{{"confirm", "", 1001}, {"bootstrap", "", 1001}, {"install", "base", 1001}, {"start", "db", 0}} {
		t.Run(c.action, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withRoles()
			m := b.mock()
			id := b.create(b.ana(), 3).Cluster
			m.run(func(s step) bool {
				return s.Action == c.action && s.Service == c.service && (c.node == 0 || s.Node == c.node)
			})
			b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
			b.repairs(id, 1002)
			m.run(nil)
			b.ended(id, loom.OperationComplete, loom.ClusterActive)
			same(t, "down", b.notRunning(id), nil)
			same(t, "members", b.members(id), []string{"1000 1 small base+db", "1001 1 small base+web", "1002 2 small base+web"})
		})
	}
	t.Run("create", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		m := b.mock()
		id := b.create(b.ana(), 3).Cluster
		m.run(func(s step) bool { return s.Action == "create" && s.Node == 1001 })
		b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
		_, err := b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1000)}})
		wantKind(t, err, loom.Invalid)
		if err := says(err, "nodes", "Nodes 1001, 1002 have no machine; name them as well."); err != nil {
			t.Error(err)
		}
		b.repairs(id, 1001, 1002)
		m.run(nil)
		b.ended(id, loom.OperationComplete, loom.ClusterActive)
		same(t, "down", b.notRunning(id), nil)
	})
}

// TestRepairAfterAResize: nodes that a failed change of hardware did not get to keep
// running; what was stopped for it starts again.
func TestRepairAfterAResize(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	b.starts(clusters.PreviewInput{Kind: loom.ChangeResize, Cluster: id, Change: clusters.ChangeInput{HardwareType: "xlarge", Services: []string{"web"}}})
	m.run(func(s step) bool { return s.Action == "install" && s.Service == "web" })
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	b.repairs(id, 1000)
	ran := len(m.machines)
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	same(t, "down", b.notRunning(id), nil)
	if len(m.machines) != ran || slices.ContainsFunc(m.ran, func(s string) bool { return strings.HasPrefix(s, "install 1002") }) {
		t.Errorf("ran %v", m.ran)
	}
}

// TestSkippedTasksStayOut: neither a retry nor the repair of other nodes runs what an
// administrator left out, and the cluster shows it until an operation that means it
// runs it.
func TestSkippedTasksStayOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	m := b.mock()
	id := b.create(b.ana(), 3).Cluster
	m.run(func(s step) bool { return s.Action == "start" && s.Service == "web" && s.Node == 1001 })
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	number := b.count(`SELECT number FROM tasks WHERE status = 'failed'`)
	if _, err := b.retryOf(b.admin(), loom.OperationRef{Cluster: id, Number: 1}, clusters.ChangeInput{Skip: []int{number}, Reason: "by hand"}); err != nil {
		t.Fatal(err)
	}
	other := func(s step) bool { return s.Action == "start" && s.Service == "web" && s.Node == 1002 }
	m.run(other)
	b.ended(id, loom.OperationFailed, loom.ClusterIncomplete)
	shown := func(want int) {
		t.Helper()
		v := b.cluster(id)
		if len(v.Skipped) != want || want > 0 && (v.Skipped[0].SkippedBy != "admin" || v.Skipped[0].SkipReason != "by hand" || v.Skipped[0].NodeNumber != 1001) {
			t.Errorf("skipped %+v, want %d", v.Skipped, want)
		}
	}
	out := func(when string) {
		t.Helper()
		if i := slices.IndexFunc(m.ran, func(s string) bool { return s == "start 1001 web" }); i >= 0 {
			t.Errorf("%s: %s", when, m.ran[i])
		}
	}
	shown(1)
	if err := b.retry(id, 2); err != nil {
		t.Fatal(err)
	}
	m.run(other)
	out("retry")
	shown(1)
	b.repairs(id, 1000)
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	out("repair of another node")
	shown(1)
	same(t, "down", b.notRunning(id), []string{"web@1001 failed"})

	// Somebody who means it: the node itself, or the service.
	b.repairs(id, 1001)
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	shown(0)
	same(t, "down", b.notRunning(id), nil)

	// What is gone is not shown either: another machine, or no such service any more.
	leaveOut := func(action string) {
		t.Helper()
		b.db.MustExec(`UPDATE tasks SET status = 'skipped', skipped_by = 'admin', skip_reason = 'by hand' WHERE id = (SELECT max(t.id) FROM tasks t
			JOIN nodes n ON n.id = t.node_id WHERE n.number = 1001 AND t.action = $1 AND t.service = 'web')`, action)
		shown(1)
	}
	b.runs(loom.ChangeRestart, id, "web")
	m.run(nil)
	leaveOut("stop")
	b.repairs(id, 1001)
	m.run(nil)
	shown(0)
	leaveOut("configure")
	b.starts(clusters.PreviewInput{Kind: loom.ChangeRemoveServices, Cluster: id, Change: clusters.ChangeInput{Services: []string{"web"}}})
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	shown(0)
}

// TestRepairAfterAnything: wherever an operation fails, a repair of any node leads to a
// cluster in which every service that should run does.
func TestRepairAfterAnything(t *testing.T) {
	t.Parallel()
	kinds := (&bundle{}).undoable(0)
	kinds["restart"] = clusters.PreviewInput{Kind: loom.ChangeRestart}
	kinds["configure"] = clusters.PreviewInput{Kind: loom.ChangeConfigure, Configure: &clusters.ConfigureInput{Config: map[string]any{"a": 1}, Restart: true}}
	for _, how := range loom.RepairHows {
		kinds["repair by "+string(how)] = clusters.PreviewInput{Kind: loom.ChangeRepair, Change: clusters.ChangeInput{How: how}}
	}
	for name, in := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m := b.mock()
			id := m.grown()
			in.Cluster, in.Change.OnFailure = id, ""
			if in.Kind == loom.ChangeRepair {
				in.Change.Nodes = []loom.NodeID{b.node(id, 1000), b.node(id, 1001)}
			}
			for seed := range uint64(4) {
				random := rand.New(rand.NewPCG(seed, 11))
				wait := random.IntN(14)
				if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(b.previewIn(in))); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				m.run(func(s step) bool {
					// What stops an earlier version is no part of a repair.
					if name == "upgrade" && s.Action == "stop" {
						return false
					}
					wait--
					return wait == 0
				})
				what := m.ran
				if b.cluster(id).Status == loom.ClusterInconsistent {
					var all []loom.NodeID
					for _, n := range b.cluster(id).Nodes {
						if n.State != loom.NodeDeleted {
							all = append(all, n.ID)
						}
					}
					named := []loom.NodeID{all[random.IntN(len(all))]}
					_, err := b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: named})
					for i := 0; err != nil && i < len(all); i++ { // those without a machine have to be named
						if says(err, "no machine") != nil {
							t.Fatalf("seed %d: %v", seed, err)
						}
						for _, n := range b.cluster(id).Nodes {
							if says(err, fmt.Sprint(n.Number)) == nil {
								named = append(named, n.ID)
							}
						}
						_, err = b.begin(loom.ChangeRepair, id, clusters.ChangeInput{Nodes: named})
					}
					m.run(nil)
				}
				b.ended(id, loom.OperationComplete, loom.ClusterActive)
				for _, down := range b.notRunning(id) {
					t.Errorf("seed %d: %s; %s failed, %s", seed, down, strings.Join(what, ", "), strings.Join(m.ran, ", "))
				}
				if t.Failed() {
					return
				}
				// Back to where it began.
				if err := b.rollback(id, 2); err != nil && loom.AsError(err).Kind != loom.Conflict {
					t.Fatal(err)
				}
				m.run(nil)
				b.ended(id, loom.OperationComplete, loom.ClusterActive)
			}
		})
	}
}

func (b *bundle) previewIn(in clusters.PreviewInput) clusters.PreviewView {
	b.t.Helper()
	v, err := b.clusters.Preview(b.ctx, b.ana(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}
