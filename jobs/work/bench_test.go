package work_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
)

// BenchmarkThroughput runs a layered plan of tasks that do nothing: 10 layers of
// 1,000 tasks, three predecessors each.
func BenchmarkThroughput(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b, 1000)
		cluster, nodes := w.cluster(w.tenant, 1000)
		plan := layered(nodes, 10, 1000, 3, false)
		runner := newRunner(nil)
		sched, prov := w.scheduler(), w.provisioner(runner, 1000)
		w.eventually(20*time.Second, "workers", func() bool { return w.count(`SELECT count(*) FROM worker_assignments`) == 1 })
		b.StartTimer()
		began := time.Now()
		op := w.insert(w.tenant, cluster, plan)
		stored := time.Since(began)
		w.ends(op, 5*time.Minute, loom.OperationComplete)
		took := time.Since(began) - stored
		b.StopTimer()
		inOrder(b, plan, runner)
		b.ReportMetric(float64(len(plan.Tasks))/took.Seconds(), "tasks/s")
		b.ReportMetric(stored.Seconds()*1000, "store-ms")
		prov.stop(b)
		sched.stop(b)
		b.StartTimer()
	}
}

// BenchmarkHop measures from the end of a task's run to the begin of the run of
// the task that waits for it: 20 chains of 50.
func BenchmarkHop(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b, 100)
		cluster, nodes := w.cluster(w.tenant, 20)
		plan := loom.Plan{Action: loom.ClusterCreate}
		for i := range 50 {
			for n, node := range nodes {
				plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: len(plan.Tasks) + 1, Node: node, Action: loom.ActionBootstrap, Level: i + 1, Rank: 50 - i})
				if i > 0 {
					plan.Edges = append(plan.Edges, loom.Edge{From: (i-1)*len(nodes) + n + 1, To: i*len(nodes) + n + 1})
				}
			}
		}
		plan.Gates = []loom.Gate{{}}
		for n := range nodes {
			plan.Edges = append(plan.Edges, loom.Edge{From: 49*len(nodes) + n + 1, To: plan.EndVertex()})
		}
		var mu sync.Mutex
		ended := map[loom.NodeID]time.Time{}
		var hops []time.Duration
		runner := newRunner(func(_ context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
			mu.Lock()
			if last, ok := ended[spec.Node]; ok {
				hops = append(hops, time.Since(last))
			}
			mu.Unlock()
			// Some work, so that chains do not all move at once.
			time.Sleep(time.Duration(10+spec.NodeNumber%7) * time.Millisecond)
			mu.Lock()
			ended[spec.Node] = time.Now()
			mu.Unlock()
			return loom.TaskResult{}
		})
		sched, prov := w.scheduler(), w.provisioner(runner, 100)
		w.eventually(20*time.Second, "workers", func() bool { return w.count(`SELECT count(*) FROM worker_assignments`) == 1 })
		b.StartTimer()
		op := w.insert(w.tenant, cluster, plan)
		w.ends(op, time.Minute, loom.OperationComplete)
		b.StopTimer()
		slices.Sort(hops)
		b.ReportMetric(float64(hops[len(hops)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(hops[len(hops)*99/100].Microseconds())/1000, "p99-ms")
		prov.stop(b)
		sched.stop(b)
		b.StartTimer()
	}
}

// BenchmarkStorePlan stores 100,000 tasks with 300,000 edges.
func BenchmarkStorePlan(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w := newWorld(b, 10)
		cluster, nodes := w.cluster(w.tenant, 10_000)
		plan := layered(nodes, 10, 10_000, 3, false)
		b.StartTimer()
		began := time.Now()
		w.insert(w.tenant, cluster, plan)
		b.ReportMetric(time.Since(began).Seconds(), "s/plan")
		b.ReportMetric(float64(len(plan.Edges)), "edges")
	}
}
