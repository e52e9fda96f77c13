package planner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// bigCluster is one master and n-1 workers with four services each.
func bigCluster(n int) ([]loom.Node, map[string]loom.Service) {
	texts := []string{"base name region resource hive"}
	for range n - 1 {
		texts = append(texts, "base data serve manage")
	}
	return nodes(texts...), services(
		service("base", "install configure"),
		service("name", "install configure initialize start", install("base")),
		service("region", "install configure initialize start", install("base"), runtime("data")),
		service("resource", "install configure start", install("base")),
		service("hive", "install configure initialize start", install("name"), runtime("manage", "name")),
		service("data", "install configure start", install("base"), runtime("name")),
		service("serve", "install configure start", install("base"), runtime("region")),
		service("manage", "install configure start", install("name"), runtime("resource")))
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ nodes, tasks, pairs, levels, gated int }{
		{3, 48, 85, 12, 100},
		{50, 706, 6_101, 12, 1_463},
		{200, 2_806, 84_401, 12, 5_813},
		{10_000, 140_006, 0, 12, 290_013},
	} {
		t.Run(fmt.Sprint(test.nodes), func(t *testing.T) {
			t.Parallel()
			list, defined := bigCluster(test.nodes)
			plan, err := Make(loom.ClusterCreate, list, defined, Scope{})
			if err != nil {
				t.Fatal(err)
			}
			checkShape(t, plan)
			pairs := 0
			if test.pairs > 0 {
				// The figures know no edge from a CONFIRM to services of other nodes.
				early, err := Make(loom.ClusterCreate, list, defined, Scope{Early: true})
				if err != nil {
					t.Fatal(err)
				}
				_, edges := contract(early)
				pairs = len(edges)
			}
			if len(plan.Tasks) != test.tasks || plan.Levels() != test.levels || pairs != test.pairs || len(plan.Edges) != test.gated {
				t.Errorf("got %d tasks, %d levels, %d pairs, %d edges with gates; want %+v",
					len(plan.Tasks), plan.Levels(), pairs, len(plan.Edges), test)
			}
		})
	}
}

// BenchmarkMake plans 10,000 nodes: the table's cluster, and 14 services on
// every node.
func BenchmarkMake(b *testing.B) {
	table, tableServices := bigCluster(10_000)
	var names []string
	dense := map[string]loom.Service{}
	for i := range 14 {
		name := fmt.Sprintf("s%02d", i)
		s := service(name, "install configure start")
		if i > 0 {
			s.Dependencies.Install.Requires = names[max(0, i-3):i]
			s.Dependencies.Runtime.Requires = names[:1]
		}
		names, dense[name] = append(names, name), s
	}
	texts := make([]string, 10_000)
	for i := range texts {
		texts[i] = strings.Join(names, " ")
	}
	for _, c := range []struct {
		name     string
		nodes    []loom.Node
		services map[string]loom.Service
	}{{"4_services", table, tableServices}, {"14_services", nodes(texts...), dense}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				plan, err := Make(loom.ClusterCreate, c.nodes, c.services, Scope{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(plan.Edges)), "edges")
				b.ReportMetric(float64(len(plan.Tasks)), "tasks")
			}
		})
	}
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	list, defined := example()
	plan, err := Make(loom.ClusterCreate, list, defined, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	orders := Dependencies(plan)
	if got, want := fmt.Sprintf("%+v", orders[10]), "{DependsOn:[6] Behind:[{Service: Action:confirm Count:2} {Service:base Action:install Count:2}]}"; got != want {
		t.Errorf("install app waits for %s, want %s", got, want)
	}
	if orders[0].DependsOn == nil || orders[0].Behind == nil {
		t.Error("a task that waits for nothing has nil lists")
	}
}

func TestExpected(t *testing.T) {
	t.Parallel()
	list, defined := example()
	plan, err := Make(loom.ClusterCreate, list, defined, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	minute := func(string, loom.TaskAction, loom.NodeID) (time.Duration, bool) { return time.Minute, true }
	unknown := func(string, loom.TaskAction, loom.NodeID) (time.Duration, bool) { return 0, false }
	slowBase := func(service string, a loom.TaskAction, n loom.NodeID) (time.Duration, bool) {
		if service == "base" && a == loom.ActionInstall && n == "n2" {
			return time.Hour, true
		}
		return time.Second, true
	}
	for _, test := range []struct {
		name    string
		workers int
		typical func(string, loom.TaskAction, loom.NodeID) (time.Duration, bool)
		want    time.Duration
		known   bool
	}{
		{"longest path", 100, minute, 9 * time.Minute, true},
		{"all work", 1, minute, 16 * time.Minute, true},
		{"through a gate", 100, slowBase, time.Hour + 8*time.Second, true},
		{"nothing known", 1, unknown, 0, false},
		{"no workers", 0, minute, 0, false},
	} {
		if got, known := EstimateDuration(plan, test.workers, test.typical); got != test.want || known != test.known {
			t.Errorf("%s: got %v, %v, want %v, %v", test.name, got, known, test.want, test.known)
		}
	}
}
