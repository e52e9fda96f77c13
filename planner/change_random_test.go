package planner

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// randomChange makes a cluster and what becomes of it; nothing in it is refused.
func randomChange(r *rand.Rand) Change {
	_, defined, _, _ := randomCase(r)
	names := slices.Sorted(maps.Keys(defined))
	for i, name := range names {
		s := defined[name]
		for _, action := range []loom.TaskAction{loom.ActionDrain, loom.ActionRemove} {
			if r.IntN(3) == 0 {
				s.Provisioner.Actions[action] = loom.ServiceAction{Type: "shell"}
			}
		}
		if r.IntN(3) == 0 {
			s.Follows = append(s.Follows, names[r.IntN(len(names))], "v"+names[i])
		}
		defined[name] = s
	}
	some := func() []string {
		var list []string
		for _, name := range names {
			if r.IntN(5) < 3 {
				list = append(list, name)
			}
		}
		return list
	}
	change := Change{Early: true, Batch: r.IntN(4)}
	zero := 0
	change.MinHealthy = &zero
	change.Before.Services, change.After.Services = defined, maps.Clone(defined)
	kinds := r.IntN(64)
	if kinds&1 != 0 {
		for _, name := range names {
			if r.IntN(3) == 0 {
				s := defined[name]
				renew(&s)
				change.After.Services[name] = s
			}
		}
	}
	for i := range 2 + r.IntN(6) {
		n := loom.Node{ID: nodeID(i), Number: loom.FirstNodeNumber + i, Incarnation: 1, HardwareType: "small", Services: some()}
		if kinds&2 == 0 || i == 0 || r.IntN(3) > 0 {
			change.Before.Nodes = append(change.Before.Nodes, n)
		}
		next := n
		if kinds&4 != 0 && r.IntN(3) == 0 {
			next.Services = some()
		}
		if kinds&8 != 0 && r.IntN(3) == 0 {
			next.Incarnation++
		}
		if kinds&16 != 0 && r.IntN(3) == 0 {
			next.HardwareType = "large"
		}
		if kinds&32 == 0 || i == 0 || r.IntN(3) > 0 {
			change.After.Nodes = append(change.After.Nodes, next)
		}
	}
	return change
}

func TestChangesGiveTheOrderOfTheRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		checkChange(t, seed)
	}
}

// FuzzMakeChange compares plans of random changes with those made by the letter.
func FuzzMakeChange(f *testing.F) {
	f.Add(uint64(1 << 41))
	f.Fuzz(func(t *testing.T, seed uint64) { checkChange(t, seed) })
}

func checkChange(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	change := randomChange(r)
	if r.IntN(3) == 0 {
		change.Remaining = randomRest(r, change)
	}
	plan, err := MakeChange(change)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	checkShape(t, plan)
	e := newExpected(change)
	e.build()
	// The tasks of a stage may come again in a later one: take them by level.
	byName := map[string][]int{}
	for _, task := range plan.Tasks {
		name := taskName(task.Node, task.Service, task.Action)
		byName[name] = append(byName[name], task.Number)
	}
	vertices := make([]map[string]int, len(e.stages))
	count := 0
	for i, s := range e.stages {
		vertices[i] = map[string]int{}
		for name := range s.tasks {
			if len(byName[name]) == 0 {
				t.Fatalf("seed %d, %s: stage %d lacks %s\n%s", seed, plan.Action, i, name, Text(plan))
			}
			vertices[i][name] = byName[name][0]
			byName[name] = byName[name][1:]
			count++
		}
	}
	if count != len(plan.Tasks) {
		t.Fatalf("seed %d, %s: there are %d tasks, want %d\n%s", seed, plan.Action, len(plan.Tasks), count, Text(plan))
	}
	var wanted [][2]int
	for i, s := range e.stages {
		for edge := range s.edges {
			wanted = append(wanted, [2]int{vertices[i][edge[0]], vertices[i][edge[1]]})
		}
		if i > 0 {
			for _, from := range vertices[i-1] {
				for _, to := range vertices[i] {
					wanted = append(wanted, [2]int{from, to})
				}
			}
		}
	}
	want, got := closure(len(plan.Tasks), wanted), closure(len(plan.Tasks), taskEdges(plan))
	for a := range want {
		for b := range want {
			if want[a].has(b) != got[a].has(b) {
				t.Fatalf("seed %d, %s: task %d is before %d: %v, want %v\n%s", seed, plan.Action, a, b, got[a].has(b), want[a].has(b), Text(plan))
			}
		}
	}
}

// taskEdges contracts the gates of a plan.
func taskEdges(plan loom.Plan) [][2]int {
	var edges [][2]int
	n := len(plan.Tasks)
	behind := map[int][]int{}
	for _, e := range plan.Edges {
		if e.To > n {
			behind[e.To] = append(behind[e.To], e.From)
		}
	}
	for _, e := range plan.Edges {
		switch {
		case e.From <= n && e.To <= n:
			edges = append(edges, [2]int{e.From, e.To})
		case e.From > n:
			for _, from := range behind[e.From] {
				edges = append(edges, [2]int{from, e.To})
			}
		}
	}
	return edges
}

// closure gives, for each of the vertices 1 to n, those reached from it.
func closure(n int, edges [][2]int) []bitset {
	after := make([][]int, n+1)
	for _, e := range edges {
		after[e[0]] = append(after[e[0]], e[1])
	}
	sets := make([]bitset, n+1)
	var visit func(int) bitset
	visit = func(v int) bitset {
		if sets[v] == nil {
			set := newBitset(n + 1)
			for _, w := range after[v] {
				set.add(w)
				set.union(visit(w))
			}
			sets[v] = set
		}
		return sets[v]
	}
	for v := range sets {
		visit(v)
	}
	return sets
}
