package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/wiring"
)

// graphSizes are the tasks of the graphs that are measured by default.
var graphSizes = []int{1_000, 10_000, 100_000}

const (
	// graphWorkers are the workers of the tenant that everything runs in; spareWorkers
	// are those that others hold.
	graphWorkers, spareWorkers = 1_000, 10
	// Graphs from graphOnce tasks are measured once.
	graphOnce = 50_000
	// busyDelay milliseconds workers are busy while memory is measured.
	busyDelay = 4_000
	// planWidth and planLayers are the plan whose storing is measured: 140,000 tasks.
	planWidth, planLayers = 10_000, 14
)

// benchTasks measures the path of tasks: how many a second go through, beside the
// same graphs in plain SQL; how long the next one waits for the one before it; what
// both sides need for it. PostgreSQL waits for the disk here.
func (e *environment) benchTasks(ctx context.Context, sizes []int, scale benchScale) (err error) {
	b, err := e.startBenchOn(ctx, true, []string{"LOOM_MOCK=true", fmt.Sprintf("LOOM_PROVISIONER_CAPACITY=%d", graphWorkers+spareWorkers)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	if _, err := b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, "benchdata"), nil); err != nil {
		return err
	}
	workers := graphWorkers
	if _, err := b.Accounts.UpdateTenant(ctx, wiring.CliActor(), account.DemoTenant, account.TenantInput{Workers: &workers}); err != nil {
		return err
	}
	if err := b.waitWorkers(ctx); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Tasks that do nothing, on a private PostgreSQL that waits for the disk (fsync on); %d workers\n\n", graphWorkers)
	pattern, err := b.measureGraphs(ctx, sizes, scale.rounds)
	if err != nil {
		return err
	}
	if err := b.measureTwo(ctx, pattern, sizes, scale.rounds); err != nil {
		return fmt.Errorf("two provisioners: %w", err)
	}
	if err := b.measureWhole(ctx, slices.Min([]int{benchTasks, slices.Max(sizes)})); err != nil {
		return fmt.Errorf("whole path: %w", err)
	}
	if err := b.measureBusy(ctx, pattern, scale.busy); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if err := b.measureHops(ctx, pattern, scale.hops); err != nil {
		return fmt.Errorf("hops: %w", err)
	}
	width := planWidth
	if !slices.Equal(sizes, graphSizes) {
		width = max(1, slices.Max(sizes)/planLayers)
	}
	return b.measureStoring(ctx, pattern, width)
}

// graphFigures are those of one run of a graph.
type graphFigures struct {
	took      time.Duration
	goCPU, pg time.Duration
}

// runGraph stores a plan and lets it run on the provisioners that are there. Time
// counts from the moment the plan is stored.
func (b *benchInstance) runGraph(ctx context.Context, cluster loom.ClusterID, plan loom.Plan) (f graphFigures, op loom.Operation, err error) {
	provisioners := b.provisioners()
	if op, err = b.begin(ctx, cluster, plan); err != nil {
		return f, op, err
	}
	began := time.Now()
	goBefore, err := cpuOf(provisioners...)
	if err != nil {
		return f, op, err
	}
	pgBefore, err := b.postgresCPU(ctx)
	if err != nil {
		return f, op, err
	}
	if err := b.untilOver(ctx, op); err != nil {
		return f, op, err
	}
	goAfter, err := cpuOf(provisioners...)
	if err != nil {
		return f, op, err
	}
	pgAfter, err := b.postgresCPU(ctx)
	if err != nil {
		return f, op, err
	}
	var last time.Time
	if err := b.System.DB.GetContext(ctx, &last, `SELECT max(ended_at) FROM tasks WHERE operation_id = $1 AND status = 'complete'`, int64(op.Row)); err != nil {
		return f, op, err
	}
	return graphFigures{took: last.Sub(began), goCPU: goAfter - goBefore, pg: pgAfter - pgBefore}, op, nil
}

// untilOver waits for the good end of an operation and asks for nothing more than
// that: counting its tasks again and again would be measured.
func (b *benchInstance) untilOver(ctx context.Context, op loom.Operation) error {
	return b.wait(ctx, "the end of the operation", func() (bool, error) {
		var status loom.OperationStatus
		err := b.System.DB.GetContext(ctx, &status, `SELECT status FROM operations WHERE id = $1`, int64(op.Row))
		if err == nil && status.Final() && status != loom.OperationComplete {
			err = fmt.Errorf("the operation is %s", status)
		}
		return status == loom.OperationComplete, err
	})
}

func (b *benchInstance) provisioners() []*benchProcess {
	var found []*benchProcess
	for _, p := range b.processes {
		if p.name == "provisioner" {
			found = append(found, p)
		}
	}
	return found
}

// measureGraphs runs graphs of several sizes, each for some rounds in turns with the
// same graph in plain SQL. It returns the cluster that others can be copied from.
func (b *benchInstance) measureGraphs(ctx context.Context, sizes []int, rounds int) (loom.ClusterID, error) {
	pattern, err := b.create(ctx, "mock", 1)
	if err != nil {
		return 0, err
	}
	if err := b.until(ctx, pattern, 1); err != nil {
		return 0, err
	}
	fmt.Fprintf(b.Out, "  %8s %12s %17s %8s   %s\n", "tasks", "Loom, per s", "plain SQL, per s", "ratio", "CPU per task: Loom (Go + PostgreSQL), plain SQL")
	for _, size := range sizes {
		var best graphFigures
		var anchor, bound anchorFigures
		cluster, nodes, err := b.graphCluster(ctx, pattern, max(1, size/graphLayers), 0)
		if err != nil {
			return 0, err
		}
		plan := layeredPlan(nodes, graphLayers)
		if size >= graphOnce {
			rounds = 1
		}
		for range rounds {
			f, op, err := b.runGraph(ctx, cluster, plan)
			if err != nil {
				return 0, err
			}
			plain, err := b.anchor(ctx, op.Row, anchorStep)
			if err != nil {
				return 0, fmt.Errorf("plain SQL: %w", err)
			}
			least, err := b.anchor(ctx, op.Row, anchorBound)
			if err != nil {
				return 0, fmt.Errorf("plain SQL in one transaction: %w", err)
			}
			if best.took == 0 || f.took < best.took {
				best = f
			}
			if anchor.took == 0 || plain.took < anchor.took {
				anchor = plain
			}
			if bound.took == 0 || least.took < bound.took {
				bound = least
			}
		}
		n := len(plan.Tasks)
		fmt.Fprintf(b.Out, "  %8d %12.0f %17.0f %6.0f %%   %.0f us (%.0f + %.0f), %.0f us\n", n, float64(n)/best.took.Seconds(), float64(n)/anchor.took.Seconds(),
			100*anchor.took.Seconds()/best.took.Seconds(), perTask(best.goCPU+best.pg, n), perTask(best.goCPU, n), perTask(best.pg, n), perTask(anchor.cpu, n))
		fmt.Fprintf(b.Out, "  %8s %12s %17.0f %6.0f %%   upper bound, not a worker: plain SQL in one transaction a batch, %.0f us\n", "", "",
			float64(n)/bound.took.Seconds(), 100*bound.took.Seconds()/best.took.Seconds(), perTask(bound.cpu, n))
	}
	return pattern, nil
}

// perTask is a share in microseconds.
func perTask(d time.Duration, tasks int) float64 { return float64(d.Microseconds()) / float64(tasks) }

// measureTwo runs one graph on one and on two provisioners, in turns.
func (b *benchInstance) measureTwo(ctx context.Context, pattern loom.ClusterID, sizes []int, rounds int) error {
	size := min(benchTasks, slices.Max(sizes))
	cluster, nodes, err := b.graphCluster(ctx, pattern, max(1, size/graphLayers), 0)
	if err != nil {
		return err
	}
	plan := layeredPlan(nodes, graphLayers)
	var best [2]time.Duration
	for range rounds {
		for i := range best {
			second := (*benchProcess)(nil)
			if i == 1 {
				if second, err = b.addProvisioner(ctx); err != nil {
					return err
				}
			}
			if err := b.waitDealt(ctx, i+1); err != nil {
				return err
			}
			f, _, err := b.runGraph(ctx, cluster, plan)
			if err != nil {
				return err
			}
			if best[i] == 0 || f.took < best[i] {
				best[i] = f.took
			}
			if second != nil {
				if err := b.endProcess(second); err != nil {
					return err
				}
			}
		}
	}
	n := float64(len(plan.Tasks))
	fmt.Fprintf(b.Out, "\n  %d tasks, provisioners side by side: one %.0f per s, two %.0f per s (%.2f times)\n", len(plan.Tasks),
		n/best[0].Seconds(), n/best[1].Seconds(), best[0].Seconds()/best[1].Seconds())
	return nil
}

// waitDealt waits until the tenant's workers are assigned to some provisioners.
func (b *benchInstance) waitDealt(ctx context.Context, provisioners int) error {
	if err := b.waitWorkers(ctx); err != nil {
		return err
	}
	return b.wait(ctx, "workers at each provisioner", func() (bool, error) {
		var n int
		err := b.System.DB.GetContext(ctx, &n, `SELECT count(*) FROM worker_assignments WHERE tenant_id = $1`, b.actor.Tenant)
		return n == provisioners, err
	})
}

// measureBusy tells the memory of a fresh provisioner while many of its workers
// are busy.
func (b *benchInstance) measureBusy(ctx context.Context, pattern loom.ClusterID, workers int) error {
	for _, p := range b.provisioners() {
		if err := b.endProcess(p); err != nil {
			return err
		}
	}
	p, err := b.addProvisioner(ctx)
	if err != nil {
		return err
	}
	if err := b.waitDealt(ctx, 1); err != nil {
		return err
	}
	idle, _ := memoryOf(p)
	cluster, nodes, err := b.graphCluster(ctx, pattern, workers, busyDelay)
	if err != nil {
		return err
	}
	op, err := b.begin(ctx, cluster, chainsPlan(nodes, 1))
	if err != nil {
		return err
	}
	if err := b.wait(ctx, "busy workers", func() (bool, error) {
		var n struct{ Running, Ended int }
		err := b.System.DB.GetContext(ctx, &n, `
SELECT count(*) FILTER (WHERE status = 'running') AS running, count(*) FILTER (WHERE status = 'complete') AS ended
FROM tasks WHERE operation_id = $1 AND NOT gate`, int64(op.Row))
		if err == nil && n.Ended > 0 {
			err = fmt.Errorf("%d tasks ended before all %d were running", n.Ended, workers)
		}
		return n.Running == workers, err
	}); err != nil {
		return err
	}
	busy, _ := memoryOf(p)
	if err := b.until(ctx, cluster, op.Ref.Number); err != nil {
		return err
	}
	_, peak := memoryOf(p)
	fmt.Fprintf(b.Out, "\n  memory of a provisioner: idle %s MB, with %d busy workers %s MB, at most %s MB\n", idle, workers, busy, peak)
	return b.endProcess(p)
}

// measureHops tells how long the next task of a chain waits.
func (b *benchInstance) measureHops(ctx context.Context, pattern loom.ClusterID, hops int) error {
	f, err := b.runChains(ctx, pattern, hops)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "\n  hop, %d chains of %d tasks: from the success of a task in the database to the begin of the next one's run\n", hopChains, hops)
	fmt.Fprintf(b.Out, "    p50  %.1f ms\n    p99  %.1f ms\n", milliseconds(percentile(f.committed, 50)), milliseconds(percentile(f.committed, 99)))
	fmt.Fprintf(b.Out, "  and from the end of the run: p50 %.1f ms, p99 %.1f ms\n", milliseconds(percentile(f.whole, 50)), milliseconds(percentile(f.whole, 99)))
	return nil
}

// measureStoring tells how long storing a plan takes. It comes last, where no
// provisioner is left that would carry it out.
func (b *benchInstance) measureStoring(ctx context.Context, pattern loom.ClusterID, width int) error {
	cluster, nodes, err := b.graphCluster(ctx, pattern, width, 0)
	if err != nil {
		return err
	}
	plan := layeredPlan(nodes, planLayers)
	began := time.Now()
	if _, err := b.begin(ctx, cluster, plan); err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "\n  storing a plan of %d tasks and %d edges: %s\n", len(plan.Tasks), len(plan.Edges), seconds(time.Since(began)))
	return nil
}
