package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"loom/app/wiring"
)

// benchSizes are the sizes of clusters that are measured by default.
var benchSizes = []int{3, 10, 50}

// benchNodes is how many nodes are made at once at each cloud.
const benchNodes = 50

// benchTasks is how many tasks what is measured with one size is measured with.
const benchTasks = 10_000

// benchScale is how much is measured beside the numbers of nodes and tasks: with how
// many clusters stored, how long each request, with how many nodes of a large cluster
// and how many open pages.
type benchScale struct {
	clusters int
	// removed is how many people lose their last role.
	removed int
	while   time.Duration
	nodes   int
	live    int
	// machines is how many local ones are compared on.
	machines int
	// rounds is how often a graph of tasks is measured; the best round counts.
	rounds int
	// busy workers are at work at once while memory is measured.
	busy int
	// hops is how many tasks a chain has whose tasks wait for each other, more than 5.
	hops int
	// tenants want a worker each and have nothing to do for the time idle, while the
	// processor time of all processes is measured.
	tenants int
	idle    time.Duration
	// pickUps is how many tasks of a tenant beside another one's long queue are measured,
	// one at a time.
	pickUps int
	// watched nodes, perCluster in each cluster, have their health looked at, later watchedFew
	// if any, their services each interval seconds; killed machines and as many services die at once.
	watched, watchedFew, perCluster, interval, killed int
	// picked are the pages that are measured, all when there are none.
	picked []string
}

var (
	fullScale = benchScale{clusters: 10_000, while: 3 * time.Second, nodes: 1_080, live: 200, machines: 100,
		rounds: 3, busy: 500, hops: 50, tenants: 1_000, idle: 20 * time.Second, pickUps: 300,
		watched: 10_000, watchedFew: 3_000, perCluster: 100, interval: 60, killed: 100, removed: 100}
	// smallScale shows that the measurement works.
	smallScale = benchScale{clusters: 50, while: 50 * time.Millisecond, nodes: 10, live: 5, machines: 3,
		rounds: 1, busy: 20, hops: 10, tenants: 20, idle: time.Second, pickUps: 10,
		watched: 60, perCluster: 10, interval: 15, killed: 2, removed: 2}
)

// Bench is the subcommand bench.
type Bench struct {
	Sizes   []int    `arg:"" optional:"" name:"size" help:"Numbers of nodes of the clusters to create, 2 to 500 [3 10 50]."`
	Tasks   int      `placeholder:"N" help:"Tasks of the one graph to measure, and of the tenant with a long queue, 10 to 100000 [1000, 10000 and 100000; 100000]. Below 1000, everything else is measured for a moment only, with little stored."`
	Only    string   `placeholder:"PART" enum:"local,tasks,tenants,http,pages,fleet,identity,compare,clouds,solver,planner,makespan,hundred,health," default:"" help:"Measure one part: local, tasks, tenants, http, pages, fleet, identity, compare, clouds, solver, planner, makespan; or hundred or health, which take minutes and run only by this flag."`
	Pages   []string `placeholder:"NAME" help:"Measure the pages whose names contain one of these, such as home,nodes,live."`
	Seconds int      `placeholder:"N" help:"Seconds to measure each page and each request, 1 to 60 [3]."`
}

// Validate checks the numbers and the names of pages.
func (b *Bench) Validate() error {
	if b.Tasks != 0 && (b.Tasks < 10 || b.Tasks > 100_000) {
		return fmt.Errorf("--tasks takes a number from 10 to 100000, not %d", b.Tasks)
	}
	if b.Seconds < 0 || b.Seconds > 60 {
		return fmt.Errorf("--seconds takes a number from 1 to 60, not %d", b.Seconds)
	}
	for _, n := range b.Sizes {
		if n < 2 || n > 500 {
			return fmt.Errorf("the size of a cluster is 2 to 500 nodes, not %d", n)
		}
	}
	return checkPages(b.Pages)
}

// scale returns how much is measured.
func (b *Bench) scale() benchScale {
	scale := fullScale
	if b.Tasks != 0 && b.Tasks < 1_000 {
		scale = smallScale
	}
	if b.Seconds > 0 {
		scale.while = time.Duration(b.Seconds) * time.Second
	}
	scale.picked = b.Pages
	return scale
}

// Run prints figures of this release on this host: how long a cluster of
// local machines takes and where the time goes, what the processes need, how
// many tasks a second go through and what they wait for. It runs instances of its
// own in temporary directories and removes them.
func (b *Bench) Run(ctx context.Context, shared *wiring.Environment) error {
	e := &environment{shared}
	graphs, queued, scale, only, sizes := graphSizes, queuedTasks, b.scale(), b.Only, benchSizes
	if b.Tasks != 0 {
		graphs, queued = []int{b.Tasks}, b.Tasks
	}
	if len(b.Pages) > 0 && only == "" {
		only = "pages"
	}
	if len(b.Sizes) > 0 {
		sizes = slices.Sorted(slices.Values(b.Sizes))
	}
	if e.Values.Text("LOOM_DATABASE_URL") != "" {
		fmt.Fprintln(e.Out, "LOOM_DATABASE_URL is left alone: figures are taken on a private PostgreSQL.")
	}
	parts := []struct {
		name, title string
		run         func() error
	}{
		{"local", "clusters of local machines", func() error { return e.benchLocal(ctx, sizes) }},
		{"tasks", "tasks", func() error { return e.benchTasks(ctx, graphs, scale) }},
		{"tenants", "tenants", func() error { return e.benchTenants(ctx, queued, scale) }},
		{"http", "REST API", func() error { return e.benchHTTP(ctx, scale) }},
		{"pages", "pages", func() error { return e.benchPages(ctx, scale) }},
		{"fleet", "fleet", func() error { return e.benchFleet(ctx, scale) }},
		{"identity", "identity", func() error { return e.benchIdentity(ctx, scale) }},
		{"compare", "comparison with Ansible", func() error { return e.benchCompare(ctx, scale) }},
		{"clouds", "clouds", func() error { return e.benchClouds(ctx, min(benchNodes, queued)) }},
		{"solver", "solver", func() error { return e.benchSolver(ctx) }},
		{"planner", "planner", func() error { return e.benchPlanner(ctx) }},
		{"makespan", "makespan", func() error { return e.benchMakespan(ctx) }},
	}
	if only == "hundred" { // takes minutes
		return e.benchHundred(ctx)
	}
	if only == "health" { // takes twenty minutes
		return e.benchHealth(ctx, scale)
	}
	for _, part := range parts {
		if only != "" && only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.title, err)
		}
	}
	return nil
}
