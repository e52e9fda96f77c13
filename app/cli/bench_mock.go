package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"loom/app/catalog"
	"loom/app/loom"
)

// benchCatalog holds templates on the mock provider and the mock automator:
// "mock", whose tasks take no time, and "mock-steady", whose tasks take 40 ms.
//
//go:embed benchdata
var benchCatalog embed.FS

const (
	// benchTasksPerNode is how many tasks a node of the template "mock" has.
	benchTasksPerNode = 10
	// Hops are measured on few nodes: a queue of work would be measured otherwise.
	hopNodes, hopRounds = 5, 10
)

// benchMock measures how many tasks a second go through and how long the next
// task waits for the one before it.
func (e *environment) benchMock(ctx context.Context, tasks int) (err error) {
	b, err := e.startBench(ctx, "LOOM_MOCK=true", "LOOM_PROVISIONER_CAPACITY=500")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	bundle, err := catalog.DecodeFolder(sub(benchCatalog, "benchdata"))
	if err != nil {
		return err
	}
	if _, err := b.catalog.Import(ctx, b.actor, bundle, catalog.Merge); err != nil {
		return err
	}
	var waits []time.Duration
	for range hopRounds {
		found, err := b.measureHops(ctx)
		if err != nil {
			return fmt.Errorf("hops: %w", err)
		}
		waits = append(waits, found...)
	}
	slices.Sort(waits)

	began := time.Now()
	id, err := b.create(ctx, "mock", (tasks+benchTasksPerNode-1)/benchTasksPerNode)
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
	_, peak := b.memory()
	n := len(plan.Tasks)
	fmt.Fprintf(e.out, "Throughput: %d tasks that do nothing, on %d nodes, one provisioner\n\n", n, (tasks+benchTasksPerNode-1)/benchTasksPerNode)
	fmt.Fprintf(e.out, "  tasks per second   %.0f\n", float64(n)/last.Sub(first).Seconds())
	fmt.Fprintf(e.out, "  request answered   %s (solved, planned and stored)\n", seconds(answered))
	fmt.Fprintf(e.out, "  peak memory        ")
	for i, p := range b.processes {
		fmt.Fprintf(e.out, "%s %s MB  ", p.name, peak[i])
	}
	fmt.Fprintf(e.out, "\n\nHop: from the end of a task to the begin of the one that waited for it (%d hops, tasks of 40 ms on %d nodes)\n\n", len(waits), hopNodes)
	fmt.Fprintf(e.out, "  p50  %.1f ms\n  p99  %.1f ms\n", milliseconds(percentile(waits, 50)), milliseconds(percentile(waits, 99)))
	return nil
}

// measureHops runs one small cluster with steady tasks.
func (b *benchInstance) measureHops(ctx context.Context) ([]time.Duration, error) {
	id, err := b.create(ctx, "mock-steady", hopNodes)
	if err != nil {
		return nil, err
	}
	if err := b.until(ctx, id, 1); err != nil {
		return nil, err
	}
	plan, times, err := b.times(ctx, loom.OperationRef{Cluster: id, Number: 1})
	if err != nil {
		return nil, err
	}
	return hops(plan, times), nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
