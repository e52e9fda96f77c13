package clusters_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// inPlace is a request for a repair of nodes, by their numbers, whose machines stay.
func (b *bundle) inPlace(id loom.ClusterID, how loom.RepairHow, services string, numbers ...int) clusters.ChangeInput {
	b.t.Helper()
	in := clusters.ChangeInput{How: how, Services: strings.Fields(services)}
	for _, n := range numbers {
		in.Nodes = append(in.Nodes, b.node(id, n))
	}
	return in
}

// ordered are the tasks of a plan, level by level.
func ordered(plan loom.Plan) string {
	levels := make([][]string, plan.Levels())
	for _, t := range plan.Tasks {
		levels[t.Level-1] = append(levels[t.Level-1], fmt.Sprintf("%s@%d", strings.TrimSpace(fmt.Sprintf("%s %s", t.Action, t.Service)), t.NodeNumber))
	}
	lines := make([]string, len(levels))
	for i, l := range levels {
		slices.Sort(l)
		lines[i] = strings.Join(l, ", ")
	}
	return strings.Join(lines, "; ")
}

// TestRepairInPlace: each way to repair nodes whose machines stay runs its steps on the
// nodes and services that it names, in the order of the dependencies, and nothing else.
func TestRepairInPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	front := role("web") // needs db to run
	front.Dependencies.Runtime = loom.PhaseDependency{Requires: []string{"db"}}
	b.save(b.tenant, loom.KindService, front)
	m := b.mock()
	id := b.create(b.ana(), 3).Cluster // base+db, base+web, base+web; base has no stop action
	m.run(nil)
	before := b.members(id)
	for _, c := range []struct {
		name     string
		how      loom.RepairHow
		services string
		nodes    []int
		summary  string
		lines    []string
		tasks    string
	}{
		{"one service", "restart", "web", []int{1001}, "Restarts web on 1 node",
			[]string{"change 1001 Its services are restarted: web.", "restart 1001 web"}, "stop web@1001; start web@1001"},
		{"a service that cannot be stopped", "restart", "base", []int{1001}, "Restarts base on 1 node",
			[]string{"change 1001 Its services are restarted: base.", "change 1001 base"}, "start base@1001"},
		{"all of two nodes that depend on each other", "restart", "", []int{1000, 1001}, "Restarts the services of 2 nodes",
			[]string{"change 1000 Its services are restarted: base, db.", "change 1000 base", "restart 1000 db", "change 1001 Its services are restarted: base, web.", "change 1001 base", "restart 1001 web"},
			"start base@1000, start base@1001, stop web@1001; stop db@1000; start db@1000; start web@1001"},
		{"what is needed, without those that need it", "restart", "db", []int{1000}, "Restarts db on 1 node",
			[]string{"change 1000 Its services are restarted: db.", "restart 1000 db"}, "stop db@1000; start db@1000"},
		{"two services on three nodes", "restart", "db web", []int{1000, 1001, 1002}, "Restarts db, web on 3 nodes", nil,
			"stop web@1001, stop web@1002; stop db@1000; start db@1000; start web@1001, start web@1002"},
		{"files", "configure", "web", []int{1002}, "Configures and restarts web on 1 node",
			[]string{"change 1002 Its services are configured and restarted: web.", "restart 1002 web"},
			"bootstrap@1002; stop web@1002; configure web@1002; start web@1002"},
		{"files of all", "configure", "", []int{1000}, "Configures and restarts the services of 1 node", nil,
			"bootstrap@1000; start base@1000, stop db@1000; configure db@1000; start db@1000"},
		{"reboot", "reboot", "", []int{1000, 1002}, "Reboots 2 nodes",
			[]string{"restart 1000 It is rebooted, and its services are started: base, db.", "restart 1000 base", "restart 1000 db", "restart 1002 It is rebooted, and its services are started: base, web.", "restart 1002 base", "restart 1002 web"},
			"reboot@1000, reboot@1002; confirm@1000, confirm@1002; start base@1000, start base@1002, start db@1000; start web@1002"},
	} {
		v := b.previewOf(loom.ChangeRepair, id, b.inPlace(id, c.how, c.services, c.nodes...))
		if !strings.HasPrefix(v.Summary(), c.summary+", runs ") {
			t.Errorf("%s: summary %q", c.name, v.Summary())
		}
		if c.lines != nil {
			var lines []string
			for _, l := range v.Changes {
				lines = append(lines, fmt.Sprintf("%s %d %s", l.Change, l.Node, cmp.Or(l.Because, l.Name)))
			}
			same(t, c.name, lines, c.lines)
		}
		if got := ordered(v.Plan); got != c.tasks {
			t.Errorf("%s: the tasks are\n%s\nwant\n%s", c.name, got, c.tasks)
		}
		if v.Before != v.After || v.OnFailure != loom.OnFailureKeep || len(v.Warnings) > 0 {
			t.Errorf("%s: quota %v to %v, %s, warnings %v", c.name, v.Before, v.After, v.OnFailure, v.Warnings)
		}
		if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m.run(nil)
		b.ended(id, loom.OperationComplete, loom.ClusterActive)
		if op := b.latest(id); op.Action != c.how.Action() {
			t.Errorf("%s: the operation is %s", c.name, op.Action)
		}
		same(t, c.name, b.members(id), before)
		same(t, "down after "+c.name, b.notRunning(id), nil)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE after->>'action' = 'repair_restart' AND after->'nodes' = '[1001]' AND after->'services' = '["web"]'`); n != 1 {
		t.Errorf("%d entries in the audit log", n)
	}
}

func TestRepairInPlaceIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	for _, c := range []struct {
		how      loom.RepairHow
		services string
		nodes    []int
		dead     bool
		field    string
		says     string
	}{
		{"mend", "", []int{1000}, false, "how", "Say “restart”, “configure”, “reboot” or “replace”."},
		{"", "web", []int{1001}, false, "services", "leave this out"},
		{"replace", "web", []int{1001}, false, "services", "leave this out"},
		{"reboot", "web", []int{1001}, false, "services", "leave this out"},
		{"reboot", "", []int{1001}, true, "dead", "Only machines that are replaced"},
		{"restart", "", nil, false, "nodes", "Name the nodes"},
		{"restart", "web", []int{1000}, false, "services", "None of these nodes has the service “web”."},
		{"restart", "ghost", []int{1000}, false, "services", "None of these nodes has the service “ghost”."},
		{"configure", "web", []int{1000, 1001}, false, "nodes", "Node 1000 has none of these services; leave it out."},
	} {
		in := b.inPlace(id, c.how, c.services, c.nodes...)
		if c.dead {
			in.Dead = in.Nodes
		}
		_, err := b.begin(loom.ChangeRepair, id, in)
		wantKind(t, err, loom.Invalid)
		if err := says(err, c.field, c.says); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	in := b.inPlace(id, "reboot", "", 1000)
	in.OnFailure = loom.OnFailureUndo
	_, err := b.begin(loom.ChangeRepair, id, in)
	if err := says(err, "onFailure", "retry it, or repair again"); err != nil {
		t.Error(err)
	}
	// A node that has no machine, or is on its way out, is replaced first.
	b.db.MustExec(`UPDATE nodes SET state = 'planned' WHERE number = 1002`)
	for _, numbers := range [][]int{{1001}, {1002}} {
		_, err := b.begin(loom.ChangeRepair, id, b.inPlace(id, "restart", "", numbers...))
		if err := says(err, "nodes", "Node 1002 has no machine that stays; replace it first."); err != nil {
			t.Error(err)
		}
	}
	b.db.MustExec(`UPDATE nodes SET state = 'ready', leaving = true WHERE number = 1002`)
	_, err = b.begin(loom.ChangeRepair, id, b.inPlace(id, "reboot", "", 1002))
	if err := says(err, "nodes", "Node 1002 has no machine that stays; replace it first."); err != nil {
		t.Error(err)
	}
}

// TestFailedRebootKeepsTheMachine: whatever fails of a reboot, nothing that follows it makes
// another machine: no retry of a task, no rollback, and no repair of another node in place.
func TestFailedRebootKeepsTheMachine(t *testing.T) {
	t.Parallel()
	for _, failed := range []loom.TaskAction{loom.ActionReboot, loom.ActionConfirm, loom.ActionStart} {
		t.Run(string(failed), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withRoles()
			m := b.mock()
			id := b.create(b.ana(), 3).Cluster
			m.run(nil)
			before := b.members(id)
			b.starts(clusters.PreviewInput{Kind: loom.ChangeRepair, Cluster: id, Change: b.inPlace(id, "reboot", "", 1001)})
			m.run(fault(failed, ""))
			b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
			keeps := func(what string, v clusters.PreviewView, err error) {
				t.Helper()
				if err != nil || v.ByAction[loom.ActionCreate]+v.ByAction[loom.ActionDelete] > 0 {
					t.Errorf("%s: %v, %v", what, v.ByAction, err)
				}
			}
			preview := func(kind loom.ChangeKind, in clusters.ChangeInput) (clusters.PreviewView, error) {
				return b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: kind, Cluster: id, Change: in})
			}
			v, err := preview(loom.ChangeRollback, clusters.ChangeInput{Operation: 2})
			keeps("rollback", v, err)
			v, err = preview(loom.ChangeRepair, b.inPlace(id, "restart", "", 1002))
			keeps("repair of another node", v, err)
			if slices.ContainsFunc(v.Plan.Tasks, func(t loom.PlanTask) bool { return t.NodeNumber == 1001 && t.Service == "" }) {
				t.Errorf("the repair of another node goes on with the reboot: %s", ordered(v.Plan))
			}
			if !slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.Contains(w, "(reboot nodes) did not finish") }) && failed != loom.ActionStart {
				t.Errorf("warnings %v", v.Warnings)
			}
			v, err = preview(loom.ChangeRetry, clusters.ChangeInput{})
			keeps("retry", v, err)
			want := map[loom.TaskAction]int{loom.ActionReboot: 1, loom.ActionConfirm: 1, loom.ActionStart: 2}
			if failed != loom.ActionReboot {
				delete(want, loom.ActionReboot)
			}
			if failed == loom.ActionStart {
				delete(want, loom.ActionConfirm)
			}
			for action, n := range want {
				if v.ByAction[action] != n {
					t.Errorf("the retry is %s, want %v", ordered(v.Plan), want)
				}
			}
			// A retry that fails as well leads nowhere else.
			if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
				t.Fatal(err)
			}
			m.run(fault(cmp.Or(map[loom.TaskAction]loom.TaskAction{loom.ActionReboot: loom.ActionConfirm}[failed], failed), ""))
			b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
			for _, number := range []int{2, 3} {
				v, err = preview(loom.ChangeRollback, clusters.ChangeInput{Operation: number})
				keeps(fmt.Sprintf("rollback of %d after a retry", number), v, err)
			}
			b.alterInPlace(id, m, b.inPlace(id, "reboot", "", 1001))
			same(t, "nodes", b.members(id), before)
			same(t, "down", b.notRunning(id), nil)
		})
	}
}

func (b *bundle) alterInPlace(id loom.ClusterID, m *mock, in clusters.ChangeInput) {
	b.t.Helper()
	b.starts(clusters.PreviewInput{Kind: loom.ChangeRepair, Cluster: id, Change: in})
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
}

// TestRepairInPlaceAndWhatShouldRun: what somebody stopped stays stopped unless it is named,
// what an operation that failed left is finished, and a failed restart is rolled back to
// services that run.
func TestRepairInPlaceAndWhatShouldRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.mock()
	id := m.grown()
	b.runs(loom.ChangeStop, id, "web")
	m.run(nil)
	stopped := b.notRunning(id)
	for _, how := range []loom.RepairHow{"restart", "configure", "reboot"} {
		v := b.previewOf(loom.ChangeRepair, id, b.inPlace(id, how, "", 1001))
		if tasks := ordered(v.Plan); strings.Contains(tasks, "web") || !strings.Contains(tasks, "start base@1001") {
			t.Errorf("%s: %s", how, tasks)
		}
	}
	b.alterInPlace(id, m, b.inPlace(id, "reboot", "", 1001))
	same(t, "down", b.notRunning(id), stopped)
	b.alterInPlace(id, m, b.inPlace(id, "restart", "web", 1001, 1002))
	same(t, "down after a restart of stopped services", b.notRunning(id), nil)

	b.starts(clusters.PreviewInput{Kind: loom.ChangeRepair, Cluster: id, Change: b.inPlace(id, "restart", "web", 1001, 1002)})
	m.run(func(s step) bool { return s.Action == "stop" && s.Node == 1001 })
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	same(t, "the other node is brought to the end", m.ran, []string{"stop 1002 web", "start 1002 web"})
	if err := b.rollback(id, b.latest(id).Ref.Number); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	b.ended(id, loom.OperationComplete, loom.ClusterActive)
	same(t, "down after the rollback", b.notRunning(id), nil)

	b.starts(clusters.PreviewInput{Kind: loom.ChangeAddServices, Cluster: id, Services: []string{"cache"}})
	m.run(func(s step) bool { return s.Action == "install" && s.Service == "cache" && s.Node == 1001 })
	b.ended(id, loom.OperationFailed, loom.ClusterInconsistent)
	b.alterInPlace(id, m, b.inPlace(id, "restart", "", 1002))
	same(t, "down after a repair of another node", b.notRunning(id), nil)
}

// TestRebootIsRefused: a machine that does not answer is rebooted only by a provider that
// reboots machines through its API.
func TestRebootIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.made(3)
	request := func() error {
		in := clusters.PreviewInput{Kind: loom.ChangeRepair, Cluster: id, Change: b.inPlace(id, loom.RepairByReboot, "", 1000, 1001)}
		_, err := b.clusters.Preview(b.ctx, b.ana(), in)
		return err
	}
	if err := request(); err != nil {
		t.Errorf("while both machines answer: %v", err)
	}
	b.db.MustExec(`INSERT INTO node_health (node_id, tenant_id, cluster_id, incarnation, operation, status) SELECT id, tenant_id, cluster_id, incarnation, 1, 'stopped' FROM nodes WHERE cluster_id = $1 AND number <> 1000`, int64(id))
	var fields []loom.FieldError
	if err := request(); err != nil {
		fields = loom.AsError(err).Fields
	}
	want := "Node 1001 does not answer, and Loom reboots machines of providers of type “lab” over SSH only. Start it by hand, or replace it."
	if len(fields) != 1 || fields[0] != (loom.FieldError{Field: "nodes", Message: want}) {
		t.Errorf("over SSH only: %v", fields)
	}
	lab := labType()
	lab.Reboots = true
	b.save(loom.SuperTenant, loom.KindProviderType, lab)
	if err := request(); err != nil {
		t.Errorf("by its API: %v", err)
	}
}
