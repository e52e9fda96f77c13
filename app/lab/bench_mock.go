package lab

import (
	"context"
	"embed"
	"fmt"
	"time"

	"loom/app/loom"
)

// benchCatalog holds the template "mock" on the mock provider and the mock
// automator, whose tasks take no time.
//
//go:embed benchdata
var benchCatalog embed.FS

// benchTasksPerNode is how many tasks a node of the template "mock" has.
const benchTasksPerNode = 10

// measureWhole measures the creation of a cluster as users ask for it: solved,
// planned, stored, and its tasks with their logs and with what they learn of their
// machines.
func (b *benchInstance) measureWhole(ctx context.Context, tasks int) error {
	began := time.Now()
	nodes := (tasks + benchTasksPerNode - 1) / benchTasksPerNode
	id, err := b.create(ctx, "mock", nodes)
	if err != nil {
		return err
	}
	answered := time.Since(began)
	if err := b.until(ctx, id, 1); err != nil {
		return err
	}
	plan, times, err := b.times(ctx, loom.OperationRef{Cluster: id, Number: 1})
	if err != nil {
		return err
	}
	first, last := time.Time{}, time.Time{}
	for _, t := range times {
		if first.IsZero() || t.started.Before(first) {
			first = t.started
		}
		if t.ended.After(last) {
			last = t.ended
		}
	}
	n := len(plan.Tasks)
	fmt.Fprintf(b.Out, "\n  creating a cluster of %d nodes of the mock provider, with logs and results of tasks\n", nodes)
	fmt.Fprintf(b.Out, "    tasks per second   %.0f (%d tasks)\n", float64(n)/last.Sub(first).Seconds(), n)
	fmt.Fprintf(b.Out, "    request answered   %s (solved, planned and stored)\n", seconds(answered))
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
