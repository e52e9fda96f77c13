package work_test

import (
	"context"
	"testing"
	"time"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/jobs/work"
	"loom/provisioner"
	"loom/provisioner/automator"
	"loom/provisioner/provider"
	"loom/provisioner/provider/mock"
	"loom/provisioner/remote"
	"loom/provisioner/simcloud"
)

// TestHealth: the machines of an operation are watched once it is over; one that goes
// behind Loom's back is noticed.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	cloud := simcloud.NewBooks()
	providers, err := provider.NewRegistry(mock.NewOn(cloud))
	if err != nil {
		t.Fatal(err)
	}
	automators, err := automator.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	pool := remote.NewPool()
	t.Cleanup(func() { _ = pool.Close() })
	runner := &provisioner.Runner{Providers: providers, Automators: automators, Pool: pool, Log: quiet()}
	watching := func(p *work.Provisioner) {
		p.Fleet, p.Watcher, p.HealthRate = fleet.New(w.db.DB), runner, 40
	}
	cluster, nodes := w.cluster("t1", 5)
	plan := loom.Plan{Action: loom.ClusterCreate}
	for _, node := range nodes {
		plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: len(plan.Tasks) + 1, Node: node, Action: loom.ActionCreate, Level: 1, Rank: 2},
			loom.PlanTask{Number: len(plan.Tasks) + 2, Node: node, Action: loom.ActionConfirm, Level: 2, Rank: 1})
	}
	plan.Gates = []loom.Gate{{}}
	for i := 1; i < len(plan.Tasks); i += 2 {
		plan.Edges = append(plan.Edges, loom.Edge{From: i, To: i + 1}, loom.Edge{From: i + 1, To: plan.EndVertex()})
	}
	op := w.insert("t1", cluster, plan)
	w.scheduler()
	first := w.provisioner(runner, 10, watching)
	w.ends(op, time.Minute, loom.OperationComplete)
	status := func(want loom.HealthStatus) int {
		return w.count(`SELECT count(*) FROM node_health WHERE status = $1 AND operation = 1`, want)
	}
	w.eventually(time.Minute, "five healthy nodes", func() bool { return status(loom.HealthHealthy) == 5 })
	if got := w.text(`SELECT status FROM cluster_health WHERE cluster_id = $1`, cluster); got != "healthy" {
		t.Errorf("the cluster is %s", got)
	}

	// Another process takes over the watch.
	w.provisioner(runner, 10, watching)
	first.stop(t)
	gone := w.text(`SELECT results->>'providerid' FROM nodes WHERE id = $1`, nodes[2])
	if _, err := cloud.Delete(context.Background(), gone, 0); err != nil {
		t.Fatal(err)
	}
	ana := loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleUser}
	if n, err := fleet.New(w.db.DB).Check(context.Background(), ana, cluster, nil); n != 5 || err != nil {
		t.Fatalf("asked for checks of %d nodes, %v", n, err)
	}
	// Whoever asks again and again does not keep it from being noticed.
	w.eventually(2*time.Minute, "the missing machine to be noticed", func() bool {
		_, _ = fleet.New(w.db.DB).Check(context.Background(), ana, cluster, nil)
		return status(loom.HealthUnreachable) == 1
	})
	if got := w.text(`SELECT node_id FROM node_health WHERE status = 'unreachable'`); got != string(nodes[2]) {
		t.Errorf("node %s is unreachable, not %s", got, nodes[2])
	}
	w.eventually(time.Minute, "the others to be checked", func() bool {
		return w.count(`SELECT count(*) FROM node_health WHERE status = 'healthy' AND checked_at > wanted_at`) == 4
	})
	if got := w.text(`SELECT status FROM cluster_health WHERE cluster_id = $1`, cluster); got != "degraded" {
		t.Errorf("the cluster is %s", got)
	}
}
