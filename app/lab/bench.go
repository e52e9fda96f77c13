package lab

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"loom/app/wiring"
)

// benchSizes are the sizes of clusters that are measured unless told otherwise.
var benchSizes = []int{3, 10, 50}

// benchNodes is how many nodes are made at once at each cloud.
const benchNodes = 50

// benchTasks is how many tasks what is measured with one size is measured with.
const benchTasks = 10_000

// benchScale is how much of pages and REST is measured: with how many clusters
// stored, how long each request, with how many nodes of a large cluster and how
// many open pages.
type benchScale struct {
	clusters int
	while    time.Duration
	nodes    int
	live     int
	// machines is how many local ones are compared on.
	machines int
	// picked are the pages that are measured, all when there are none.
	picked []string
}

var (
	fullScale = benchScale{clusters: 10_000, while: 3 * time.Second, nodes: 1_080, live: 200, machines: 100}
	// smallScale shows that the measurement works.
	smallScale = benchScale{clusters: 50, while: 50 * time.Millisecond, nodes: 10, live: 5, machines: 3}
)

// Bench prints figures of this release on this host: how long a cluster of
// local machines takes and where the time goes, what the processes need, how
// many tasks a second go through and what they wait for. It runs instances of its
// own in temporary directories and removes them.
func Bench(ctx context.Context, shared *wiring.Environment, args []string) error {
	e := &environment{shared}
	graphs, queued, scale := graphSizes, queuedTasks, fullScale
	if text, rest, ok := wiring.TakeFlag(args, "tasks"); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 10 || n > 100_000 {
			return wiring.UsageError("--tasks takes a number from 10 to 100000, not “%s”", text)
		}
		graphs, queued, args = []int{n}, n, rest
		if n < 1_000 {
			scale = smallScale
		}
	}
	only, args, _ := wiring.TakeFlag(args, "only")
	args, err := scale.pick(args)
	if err != nil {
		return err
	}
	if len(scale.picked) > 0 && only == "" {
		only = "pages"
	}
	sizes := benchSizes
	if len(args) > 0 {
		sizes = nil
		for _, text := range args {
			n, err := strconv.Atoi(text)
			if err != nil || n < 2 || n > 500 {
				return wiring.UsageError("loom bench takes sizes of clusters, 2 to 500 nodes, not “%s”", text)
			}
			sizes = append(sizes, n)
		}
		slices.Sort(sizes)
	}
	if e.Values.Text("LOOM_DATABASE_URL") != "" {
		fmt.Fprintln(e.Out, "LOOM_DATABASE_URL is left alone: figures are taken on a private PostgreSQL.")
	}
	parts := []struct {
		name, title string
		run         func() error
	}{
		{"local", "clusters of local machines", func() error { return e.benchLocal(ctx, sizes) }},
		{"tasks", "tasks", func() error { return e.benchTasks(ctx, graphs) }},
		{"tenants", "tenants", func() error { return e.benchTenants(ctx, queued) }},
		{"http", "REST API", func() error { return e.benchHTTP(ctx, scale) }},
		{"pages", "pages", func() error { return e.benchPages(ctx, scale) }},
		{"compare", "comparison with Ansible", func() error { return e.benchCompare(ctx, scale) }},
		{"clouds", "clouds", func() error { return e.benchClouds(ctx, min(benchNodes, queued)) }},
		{"solver", "solver", func() error { return e.benchSolver(ctx) }},
		{"planner", "planner", func() error { return e.benchPlanner(ctx) }},
		{"makespan", "makespan", func() error { return e.benchMakespan(ctx) }},
	}
	if only == "hundred" { // never by itself: it takes minutes
		return e.benchHundred(ctx)
	}
	found := false
	for _, part := range parts {
		if only != "" && only != part.name {
			continue
		}
		found = true
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.title, err)
		}
	}
	if !found {
		return wiring.UsageError("--only takes local, tasks, tenants, http, pages, compare, clouds, solver, planner, makespan or hundred, not “%s”", only)
	}
	return nil
}
