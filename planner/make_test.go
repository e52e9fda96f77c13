package planner

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/golden"
)

// service builds a service; actions are words such as "install start".
func service(name, actions string, change ...func(*loom.Service)) loom.Service {
	s := loom.Service{Base: loom.Base{Name: name}}
	s.Provisioner.Actions = map[loom.TaskAction]loom.ServiceAction{}
	for _, a := range strings.Fields(actions) {
		s.Provisioner.Actions[loom.TaskAction(a)] = loom.ServiceAction{Type: "shell"}
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func install(names ...string) func(*loom.Service) {
	return func(s *loom.Service) { s.Dependencies.Install.Requires = names }
}

func runtime(names ...string) func(*loom.Service) {
	return func(s *loom.Service) { s.Dependencies.Runtime.Requires = names }
}

func provides(names ...string) func(*loom.Service) {
	return func(s *loom.Service) { s.Dependencies.Provides = names }
}

func scopeNode(s *loom.Service) { s.Dependencies.Install.Scope = "node" }

func services(list ...loom.Service) map[string]loom.Service {
	m := map[string]loom.Service{}
	for _, s := range list {
		m[s.Name] = s
	}
	return m
}

// nodes builds nodes 1000, 1001, ... with the services of each text.
func nodes(names ...string) []loom.Node {
	var list []loom.Node
	for i, text := range names {
		list = append(list, loom.Node{ID: nodeID(i), Number: loom.FirstNodeNumber + i, Services: strings.Fields(text)})
	}
	return list
}

func nodeID(i int) loom.NodeID { return loom.NodeID(fmt.Sprintf("n%d", i+1)) }

func example() ([]loom.Node, map[string]loom.Service) {
	return nodes("base db", "app base"), services(
		service("base", "install configure"),
		service("db", "install configure start stop", install("base")),
		service("app", "install initialize start", install("base"), runtime("db")))
}

func TestMakeGolden(t *testing.T) {
	t.Parallel()
	exampleNodes, exampleServices := example()
	added := services(service("s1", "install start stop"), service("s2", "install initialize start", runtime("s1")))
	scoped := services(service("base", "install"), service("x", "install start", install("base"), scopeNode))
	chain := services(
		service("a", "start stop"),
		service("b", "configure", runtime("a")),
		service("c", "start stop", runtime("b", "a")),
		service("d", "start", runtime("c")))
	virtual := services(
		service("sql", "start"), service("maria", "start", provides("sql")), service("pg", "start", provides("sql", "pg")),
		service("shop", "start", runtime("sql", "absent", "pg")))
	tests := []struct {
		name     string
		action   loom.ClusterAction
		nodes    []loom.Node
		services map[string]loom.Service
		scope    Scope
	}{
		{"create", loom.ClusterCreate, exampleNodes, exampleServices, Scope{}},
		{"delete", loom.ClusterDelete, exampleNodes, exampleServices, Scope{}},
		{"configure", loom.ClusterConfigure, exampleNodes, exampleServices, Scope{}},
		{"configure_restart", loom.ClusterConfigureWithRestart, exampleNodes, exampleServices, Scope{}},
		{"stop_db", loom.StopServices, exampleNodes, exampleServices, Scope{Services: []string{"db"}}},
		{"restart_db", loom.RestartServices, exampleNodes, exampleServices, Scope{Services: []string{"db"}}},
		{"start_app", loom.StartServices, exampleNodes, exampleServices, Scope{Services: []string{"app"}}},
		{"add_for_safety", loom.AddServices, nodes("s1", "s1 s2"), added, Scope{Services: []string{"s2"}, Nodes: []loom.NodeID{"n2"}}},
		{"install_scope_node", loom.ClusterCreate, nodes("base x", "x", "base"), scoped, Scope{}},
		{"stop_bridged", loom.StopServices, nodes("a", "b c", "d"), chain, Scope{Services: []string{"a"}}},
		{"restart_bridged", loom.RestartServices, nodes("a", "b c", "d"), chain, Scope{Services: []string{"c"}}},
		{"provided", loom.StartServices, nodes("sql", "maria", "pg", "shop"), virtual, Scope{}},
		{"no_services", loom.ClusterCreate, nodes("", ""), nil, Scope{}},
		{"no_nodes", loom.ClusterDelete, nil, nil, Scope{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			plan, err := Make(test.action, test.nodes, test.services, test.scope)
			if err != nil {
				t.Fatal(err)
			}
			checkShape(t, plan)
			golden.File(t, filepath.Join("testdata", test.name+".txt"), Text(plan))
		})
	}
}

// checkShape holds for every plan: numbering, levels, ranks, gates, the end and
// the critical path are as promised.
func checkShape(t *testing.T, plan loom.Plan) {
	t.Helper()
	n, end := len(plan.Tasks), plan.EndVertex()
	before, after := make([][]int, end+1), make([][]int, end+1)
	for i, e := range plan.Edges {
		if i > 0 && (plan.Edges[i-1].From > e.From || plan.Edges[i-1].From == e.From && plan.Edges[i-1].To >= e.To) {
			t.Fatalf("edges %v and %v are out of order or doubled", plan.Edges[i-1], e)
		}
		if e.From > n && e.To > n {
			t.Fatalf("gate %d follows gate %d", e.To, e.From)
		}
		before[e.To], after[e.From] = append(before[e.To], e.From), append(after[e.From], e.To)
	}
	if last := plan.Gates[len(plan.Gates)-1]; last != (loom.Gate{}) {
		t.Fatalf("the last gate is %v, not the end", last)
	}
	level, rank := make([]int, end+1), make([]int, end+1)
	for i := range plan.Gates[:len(plan.Gates)-1] {
		v := n + 1 + i
		if len(before[v]) == 0 || len(after[v]) == 0 {
			t.Fatalf("gate %d joins nothing", v)
		}
		for _, w := range before[v] {
			// A gate between stages joins tasks of several services.
			between := !plan.Gates[i].Action.OfNode() && plan.Gates[i].Service == "" || plan.Gates[i].Action == loom.ActionBootstrap
			if task := plan.Tasks[w-1]; !between && (task.Service != plan.Gates[i].Service || task.Action != plan.Gates[i].Action) {
				t.Fatalf("gate %v waits for %v", plan.Gates[i], task)
			}
			level[v] = max(level[v], plan.Tasks[w-1].Level)
		}
		for _, w := range after[v] {
			rank[v] = max(rank[v], plan.Tasks[w-1].Rank)
		}
	}
	criticals, longest := 0, 0
	for i, task := range plan.Tasks {
		v := i + 1
		if task.Number != v {
			t.Fatalf("task %d has number %d", v, task.Number)
		}
		level[v], rank[v] = task.Level, task.Rank
		wantLevel, wantRank := 1, 1
		for _, w := range before[v] {
			wantLevel = max(wantLevel, 1+max(level[w], 0))
			if w >= v && w <= n {
				t.Fatalf("task %d waits for %d", v, w)
			}
		}
		for _, w := range after[v] {
			if w <= n {
				wantRank = max(wantRank, 1+plan.Tasks[w-1].Rank)
			} else {
				wantRank = max(wantRank, 1+rank[w])
			}
		}
		if task.Level != wantLevel || task.Rank != wantRank {
			t.Fatalf("task %d has level %d and rank %d, want %d and %d", v, task.Level, task.Rank, wantLevel, wantRank)
		}
		if len(after[v]) == 0 {
			t.Fatalf("the end does not wait for task %d", v)
		}
		if slices.Contains(after[v], end) && len(after[v]) > 1 {
			t.Fatalf("the end waits for task %d, which others wait for", v)
		}
		if task.Critical {
			criticals++
		}
		longest = max(longest, task.Rank)
	}
	if criticals != longest || longest != plan.Levels() {
		t.Fatalf("the critical path has %d tasks, the longest %d, there are %d levels", criticals, longest, plan.Levels())
	}
}

func TestMakeRefuses(t *testing.T) {
	t.Parallel()
	list, defined := example()
	circle := services(service("a", "start", runtime("b")), service("b", "start", runtime("c")), service("c", "start", runtime("a")))
	tests := []struct {
		name     string
		action   loom.ClusterAction
		nodes    []loom.Node
		services map[string]loom.Service
		scope    Scope
		kind     loom.Kind
		says     string
	}{
		{"no steps", loom.ClusterExpand, list, defined, Scope{}, loom.Invalid, "scale up"},
		{"unknown action", "dance", list, defined, Scope{}, loom.Invalid, "dance"},
		{"circle", loom.ClusterCreate, nodes("a b c"), circle, Scope{}, loom.Invalid, "a → b → c → a"},
		{"undefined service", loom.ClusterCreate, nodes("ghost"), defined, Scope{}, loom.Invalid, "“ghost”"},
		{"scope: service", loom.StartServices, list, defined, Scope{Services: []string{"ghost"}}, loom.NotFound, "“ghost”"},
		{"scope: node", loom.AddServices, list, defined, Scope{Nodes: []loom.NodeID{"x"}}, loom.NotFound, "x"},
		{"node twice", loom.ClusterCreate, append(list, list[0]), defined, Scope{}, loom.Invalid, "1000"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Make(test.action, test.nodes, test.services, test.scope)
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("got %v, want %s naming %s", err, test.kind, test.says)
			}
		})
	}
	if _, err := Make(loom.ClusterDelete, nodes("a b c"), circle, Scope{}); err != nil {
		t.Errorf("a cluster whose services form a circle cannot be deleted: %v", err)
	}
	if _, err := Make(loom.ClusterCreate, nodes("a b"), circle, Scope{}); err != nil {
		t.Errorf("a circle that is not on the cluster counts: %v", err)
	}
}

func TestCheckCycles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		services map[string]loom.Service
		want     [][]string
	}{
		{"none", services(service("a", ""), service("b", "", install("a"), runtime("a"))), nil},
		{"of itself", services(service("a", "", install("a", "x"), provides("x"))), nil},
		{"across phases", services(service("a", "", install("b")), service("b", "", runtime("a"))), nil},
		{"two", services(service("a", "", install("b")), service("b", "", install("a"))), [][]string{{"a", "b", "a"}}},
		{"both phases once", services(service("a", "", install("b"), runtime("b")), service("b", "", install("a"), runtime("a"))), [][]string{{"a", "b", "a"}}},
		{"provided", services(service("a", "", install("sql")), service("pg", "", install("a"), provides("sql"))), [][]string{{"a", "pg", "a"}}},
		{"shortest", services(service("a", "", install("b")), service("b", "", install("c")), service("c", "", install("a", "b"))), [][]string{{"b", "c", "b"}}},
		{"two sets", services(service("a", "", install("b")), service("b", "", install("a")), service("x", "", runtime("y")), service("y", "", runtime("x"))),
			[][]string{{"a", "b", "a"}, {"x", "y", "x"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := CheckCycles(test.services)
			if !slices.EqualFunc(got, test.want, slices.Equal[[]string]) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestCoverage(t *testing.T) {
	t.Parallel()
	all := services(service("a", ""), service("b", "", runtime("a")), service("c", "", runtime("b")), service("z", "", install("a")))
	for _, test := range []struct {
		action loom.ClusterAction
		want   []string
	}{
		{loom.StartServices, []string{"a", "b"}},
		{loom.StopServices, []string{"b", "c"}},
		{loom.RestartServices, []string{"b", "c"}},
		{loom.AddServices, []string{"b"}},
	} {
		got, err := coverage(test.action, []string{"b"}, all)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s of b covers %v (%v), want %v", test.action, got, err, test.want)
		}
	}
}

func TestMakeIsDeterministic(t *testing.T) {
	t.Parallel()
	list, defined := example()
	first, err := Make(loom.ClusterCreate, list, defined, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(list)
	for i := range list {
		list[i].Services = append(slices.Clone(list[i].Services), list[i].Services[0])
		slices.Reverse(list[i].Services)
	}
	second, err := Make(loom.ClusterCreate, list, defined, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if Text(first) != Text(second) || DOT(first) != DOT(second) {
		t.Errorf("the order of the input changes the plan:\n%s\n%s", Text(first), Text(second))
	}
}

func TestDOT(t *testing.T) {
	t.Parallel()
	plan, err := Make(loom.StartServices, nodes("a", "b"), services(service("a", "start"), service("b", "start", runtime("a"))), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	want := `digraph plan {
	rankdir=LR;
	node [shape=box];
	v1 [label="1 start a\nnode 1000", penwidth=2];
	v2 [label="2 start b\nnode 1001", penwidth=2];
	v3 [shape=point, xlabel="all start a"];
	v4 [shape=point, xlabel="end"];
	v1 -> v3;
	v2 -> v4;
	v3 -> v2;
}
`
	if got := DOT(plan); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
