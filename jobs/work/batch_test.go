package work_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// TestFailedBatchIsFinished runs an upgrade in batches of four nodes with real
// processes: what fails in the second batch keeps neither its other nodes from being
// brought to the end nor lets the third one begin, whoever records what at the same time.
func TestFailedBatchIsFinished(t *testing.T) {
	t.Parallel()
	const batches, size, steps = 3, 4, 3
	w := newWorld(t, 50)
	cluster, nodes := w.cluster(w.tenant, batches*size)
	plan := loom.Plan{Action: loom.ClusterUpgrade}
	for i := range nodes {
		for step := range steps {
			plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: len(plan.Tasks) + 1, Node: nodes[i], NodeNumber: 1000 + i,
				Action: loom.ActionBootstrap, Level: i/size*steps + step + 1, Rank: (batches-i/size)*steps - step})
		}
	}
	first := func(node int) int { return node*steps + 1 }
	for i := range nodes {
		for step := range steps - 1 {
			plan.Edges = append(plan.Edges, loom.Edge{From: first(i) + step, To: first(i) + step + 1})
		}
		gate := len(plan.Tasks) + 1 + i/size // the last one is the end
		plan.Edges = append(plan.Edges, loom.Edge{From: first(i) + steps - 1, To: gate})
		if i >= size {
			plan.Edges = append(plan.Edges, loom.Edge{From: gate - 1, To: first(i)})
		}
	}
	plan.Gates = make([]loom.Gate, batches)
	no := false
	fails := map[int]bool{first(size): true, first(size+2) + 1: true}
	runner := newRunner(func(_ context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		if fails[spec.Ref.Number] {
			return loom.TaskResult{Status: 7, Message: "no route", Retryable: &no}
		}
		return loom.TaskResult{}
	})
	w.scheduler()
	w.provisioner(runner, 3)
	w.provisioner(runner, 3)
	op := w.insert(w.tenant, cluster, plan)
	w.ends(op, 60*time.Second, loom.OperationFailed)
	if got := w.text(`SELECT string_agg(status || ' ' || n, ', ' ORDER BY status) FROM (SELECT status, count(*) AS n FROM tasks WHERE NOT gate GROUP BY status) AS t`); got != "complete 19, dropped 15, failed 2" {
		t.Error(got)
	}
	runner.mu.Lock()
	defer runner.mu.Unlock()
	for number := first(2 * size); number <= len(plan.Tasks); number++ {
		if runner.runs[number] != 0 {
			t.Errorf("task %d of the third batch ran", number)
		}
	}
	for _, fault := range runner.faults {
		t.Error(fault)
	}
	if m := w.text(`SELECT message FROM operations`); !strings.HasPrefix(m, "Bootstrap on node ") || !strings.HasSuffix(m, "failed, and trying again would not help: no route") {
		t.Errorf("message %q", m)
	}
	w.eventually(10*time.Second, "the end of all River jobs", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'run_task' AND state NOT IN ('completed', 'cancelled', 'discarded')`) == 0
	})
	if n := w.count(`SELECT revision FROM clusters WHERE id = $1`, cluster); n != 2 {
		t.Errorf("the revision is %d: the operation ended not exactly once", n)
	}
}
