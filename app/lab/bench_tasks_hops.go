package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"loom/app/loom"
	"loom/jobs/work"
)

// hopChains are chains of tasks, each on a node of its own: hops are measured where no
// task waits for a worker.
const hopChains = 20

// steadyRunner carries tasks out, each a few milliseconds longer than it takes so
// that chains do not all move at once, and notes when they begin and end.
type steadyRunner struct {
	work.Runner
	mu           sync.Mutex
	begun, ended map[int]time.Time // by number of the task
}

// Run carries out one task.
func (r *steadyRunner) Run(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
	r.note(r.begun, spec)
	time.Sleep(time.Duration(10+spec.NodeNumber%7) * time.Millisecond)
	result := r.Runner.Run(ctx, spec, sink)
	r.note(r.ended, spec)
	return result
}

func (r *steadyRunner) note(times map[int]time.Time, spec *loom.TaskSpec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	times[spec.Ref.Number] = time.Now()
}

// hopFigures are sorted times between two tasks of a chain.
type hopFigures struct {
	// committed: from the moment the database takes the first one's success, just
	// before it is committed, to the begin of the second one's run.
	committed []time.Duration
	// whole: from the end of the first one's run.
	whole []time.Duration
}

// runChains runs chains in a provisioner of this process, which sees when runs begin.
func (b *benchInstance) runChains(ctx context.Context, pattern loom.ClusterID, hops int) (f hopFigures, err error) {
	worker, done, err := b.environment.Provisioner(ctx, b.System, b.plugins, 0)
	if err != nil {
		return f, err
	}
	defer done()
	runner := &steadyRunner{Runner: worker.Runner, begun: map[int]time.Time{}, ended: map[int]time.Time{}}
	worker.Runner, worker.DrainTimeout = runner, -1
	workCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(workCtx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	if err := b.waitWorkers(ctx); err != nil {
		return f, err
	}
	cluster, nodes, err := b.graphCluster(ctx, pattern, hopChains, 0)
	if err != nil {
		return f, err
	}
	// Once to get everything going, once for the figures.
	for _, steps := range []int{5, hops} {
		clear(runner.begun)
		clear(runner.ended)
		plan := chainsPlan(nodes, steps)
		op, err := b.begin(ctx, cluster, plan)
		if err != nil {
			return f, err
		}
		if err := b.until(ctx, cluster, op.Ref.Number); err != nil {
			return f, err
		}
		if steps < hops {
			continue
		}
		_, times, err := b.times(ctx, op.Ref)
		if err != nil {
			return f, err
		}
		for _, e := range plan.Edges {
			begun, ok := runner.begun[e.To]
			if !ok {
				continue // the gate at the end
			}
			f.committed = append(f.committed, begun.Sub(times[e.From].ended))
			f.whole = append(f.whole, begun.Sub(runner.ended[e.From]))
		}
	}
	slices.Sort(f.committed)
	slices.Sort(f.whole)
	if len(f.committed) != hopChains*(hops-1) {
		return f, fmt.Errorf("%d hops were seen, want %d", len(f.committed), hopChains*(hops-1))
	}
	return f, nil
}
