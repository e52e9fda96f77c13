package work_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/jobs/work"
	"loom/provisioner"
	"loom/provisioner/automator"
	"loom/provisioner/provider"
	"loom/provisioner/provider/mock"
)

// stubborn is a mock provider that does not give one machine back.
type stubborn struct {
	mock.Provider
	keeps   atomic.Value // loom.NodeID
	refused atomic.Int32
}

// Delete refuses to delete the machine of the node.
func (s *stubborn) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	if s.keeps.Load() == spec.Node {
		s.refused.Add(1)
		return loom.TaskResult{Status: 1, Message: "the machine is locked", Retryable: new(false)}, nil
	}
	return s.Provider.Delete(ctx, spec, sink)
}

// flat is a plan with one task of the action on each node.
func flat(action loom.ClusterAction, step loom.TaskAction, nodes []loom.NodeID) loom.Plan {
	plan := loom.Plan{Action: action, Gates: []loom.Gate{{}}}
	for i, node := range nodes {
		plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: i + 1, Node: node, NodeNumber: 1000 + i, Action: step, Level: 1, Rank: 1})
		plan.Edges = append(plan.Edges, loom.Edge{From: i + 1, To: len(nodes) + 1})
	}
	return plan
}

// TestDeleteAlwaysEnds takes a cluster with one machine that cannot be deleted from
// its delete to the sweep that gets rid of it.
func TestDeleteAlwaysEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.provider("p", map[string]any{})
	cloud := &stubborn{Provider: mock.New()}
	cloud.keeps.Store(loom.NodeID(""))
	providers, err := provider.NewRegistry(cloud)
	if err != nil {
		t.Fatal(err)
	}
	automators, err := automator.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	runner := &provisioner.Runner{Providers: providers, Automators: automators, Log: quiet()}
	asks := processes.New(w.db.DB, processes.Options{AskTimeout: time.Minute})
	w.scheduler()
	w.provisioner(runner, 4, func(p *work.Provisioner) {
		opts := times
		opts.Ring = w.ring
		common, db := w.common(3)
		t.Cleanup(func() { db.Close() })
		common.Processes = processes.New(db, opts)
		common.Asker = runner
		p.Common = common
	})

	cluster, nodes := w.cluster(w.tenant, 3)
	status := func() string { return w.text(`SELECT status FROM clusters WHERE id = $1`, cluster) }
	w.insert(w.tenant, cluster, flat(loom.ClusterCreate, loom.ActionCreate, nodes))
	w.eventually(30*time.Second, "the cluster is made", func() bool { return status() == "active" })
	cloud.keeps.Store(nodes[1])
	w.insert(w.tenant, cluster, flat(loom.ClusterDelete, loom.ActionDelete, nodes))
	w.eventually(30*time.Second, "the delete ends", func() bool { return status() == "incomplete" })
	if got := w.text(`SELECT string_agg(status, ' ' ORDER BY number) FROM tasks WHERE NOT gate AND operation_id = (SELECT max(id) FROM operations)`); got != "complete failed complete" {
		t.Errorf("tasks: %s", got)
	}
	if got := w.text(`SELECT provider_name || ' ' || machine_id || ' ' || tries || ' ' || last_error FROM leftovers`); got != "p mock-"+string(nodes[1])+" 1 the machine is locked" {
		t.Errorf("leftover: %s", got)
	}
	if n := w.count(`SELECT count(*) FROM secrets WHERE entity LIKE 'provider:%'`); n != 1 {
		t.Fatalf("%d secrets of the provider", n)
	}

	// The sweep tries again; it is still locked.
	sweep := func() {
		t.Helper()
		if err := asks.RequestSweeps(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	w.eventually(30*time.Second, "a try of the sweep", func() bool { return w.count(`SELECT tries FROM leftovers`) == 2 })
	if status() != "incomplete" || cloud.refused.Load() != 2 {
		t.Errorf("%s after %d refusals", status(), cloud.refused.Load())
	}
	cloud.keeps.Store(loom.NodeID(""))
	w.eventually(30*time.Second, "the request to end", func() bool {
		return w.count(`SELECT count(*) FROM provider_requests WHERE purpose = 'leftover' AND ended_at IS NULL`) == 0
	})
	sweep()
	w.eventually(30*time.Second, "the sweep to end the cluster", func() bool { return status() == "terminated" })
	if got := w.text(`SELECT string_agg(state || ' ' || (results ? 'providerid')::text, ', ') FROM nodes`); got != "deleted false, deleted false, deleted false" {
		t.Errorf("nodes: %s", got)
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE actor = 'system' AND verb = 'delete' AND kind = 'cluster' AND after->>'status' = 'terminated'`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
}
