package clusters_test

import (
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
)

// A large cluster passes through check, preview and apply in the time a person
// waits for; the log of the test says how long each takes.
func TestLargeCluster(t *testing.T) {
	t.Parallel()
	const machines = 2000
	b := setup(t)
	big := siteTemplate()
	big.Constraints.Size.Max = machines
	b.save(b.tenant, loom.KindTemplate, big)
	b.db.MustExec(`UPDATE tenants SET max_nodes = $2 WHERE id = $1`, b.tenant, machines)
	begin := time.Now()
	lap := func(what string) {
		t.Helper()
		took := time.Since(begin)
		t.Logf("%s: %v", what, took.Round(time.Millisecond))
		if took > 30*time.Second {
			t.Errorf("%s took %v", what, took)
		}
		begin = time.Now()
	}
	r, err := b.clusters.Check(b.ctx, b.ana(), request(machines))
	if err != nil || !r.Fits {
		t.Fatal(r.Unsat, r.Fields, err)
	}
	lap("check")
	v := b.preview(b.ana(), request(machines))
	if len(v.Changes) != 1000 || v.ChangeCount <= machines {
		t.Errorf("%d changes of %d", len(v.Changes), v.ChangeCount)
	}
	lap("preview")
	ref, err := b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash})
	if err != nil {
		t.Fatal(err)
	}
	lap("apply")
	cluster, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || len(cluster.Nodes) != machines {
		t.Fatal(len(cluster.Nodes), err)
	}
	lap("read the cluster")
	plan, tasks, err := b.clusters.PlanOf(b.ctx, b.ana(), ref)
	if err != nil || len(plan.Tasks) != len(tasks) || len(tasks) != cluster.Latest.Progress().Total {
		t.Fatal(len(plan.Tasks), len(tasks), err)
	}
	lap("read the plan")
	b.finish(ref.Cluster, loom.ClusterActive)
	b.save(b.tenant, loom.KindService, service("cache", nil))
	begin = time.Now()
	if v = b.previewAdd(ref.Cluster, "cache"); v.AddedTo != machines || len(v.Changes) != 1000 {
		t.Errorf("%d nodes, %d changes of %d", v.AddedTo, len(v.Changes), v.ChangeCount)
	}
	lap("preview a new service")
	if _, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	lap("add it")
	b.finish(ref.Cluster, loom.ClusterActive)
	b.db.MustExec(`UPDATE nodes SET task_id = NULL`)
	b.db.MustExec(`UPDATE tenants SET max_nodes = max_nodes + 1 WHERE id = $1`, b.tenant)
	b.db.MustExec(`UPDATE clusters SET template = jsonb_set(template, '{constraints,size,max}', to_jsonb($1::int))`, machines+1)
	newer := service("base", nil)
	newer.Provisioner.Actions[loom.ActionInstall].Fields["args"] = "newer"
	b.save(b.tenant, loom.KindService, newer)
	// The machines there are do not make a change of one of them larger.
	for _, c := range []struct {
		kind  loom.ChangeKind
		in    clusters.ChangeInput
		tasks int
	}{
		{loom.ChangeExpand, clusters.ChangeInput{Machines: machines + 1}, 9},
		{loom.ChangeShrink, clusters.ChangeInput{Machines: machines}, 1},
		{loom.ChangeUpgrade, clusters.ChangeInput{Batch: machines / 4}, 2 * machines},
	} {
		begin = time.Now()
		v := b.previewOf(c.kind, ref.Cluster, c.in)
		lap("preview of " + string(c.kind))
		if len(v.Plan.Tasks) != c.tasks {
			t.Errorf("%s has %d tasks, want %d", c.kind, len(v.Plan.Tasks), c.tasks)
		}
		if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
			t.Fatal(c.kind, err)
		}
		lap("apply " + string(c.kind))
		b.finish(ref.Cluster, loom.ClusterActive)
		b.db.MustExec(`UPDATE nodes SET task_id = NULL, state = CASE WHEN leaving THEN 'deleted' ELSE state END`)
	}
}
