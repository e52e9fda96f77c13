package planner

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// expected is a change planned by the letter: stages of tasks, one after the
// other, and the order within each, written out pair by pair.
type expected struct {
	change        Change
	before, after *naive
	stages        []*naiveStage
}

type naiveStage struct {
	tasks map[string]bool
	edges map[[2]string]bool
	// services of the tasks by action and node.
	on map[string][]loom.NodeID
}

func newExpected(change Change) *expected {
	e := &expected{change: change}
	there := func(s State) *naive {
		p := &naive{nodes: s.Nodes, services: map[string]loom.Service{}}
		for _, n := range s.Nodes {
			for _, name := range n.Services {
				p.services[name] = s.Services[name]
			}
		}
		return p
	}
	e.before, e.after = there(change.Before), there(change.After)
	return e
}

func (e *expected) node(s State, id loom.NodeID) *loom.Node { return node(s, id) }

func node(s State, id loom.NodeID) *loom.Node {
	for i := range s.Nodes {
		if s.Nodes[i].ID == id {
			return &s.Nodes[i]
		}
	}
	return nil
}

func (e *expected) ids() []loom.NodeID {
	number := map[loom.NodeID]int{}
	for _, n := range slices.Concat(e.change.Before.Nodes, e.change.After.Nodes) {
		number[n.ID] = n.Number
	}
	return slices.SortedFunc(maps.Keys(number), func(a, b loom.NodeID) int { return number[a] - number[b] })
}

func (s *naiveStage) chain(p *naive, node loom.NodeID, last []string, services []string, actions ...loom.TaskAction) []string {
	if len(services) == 0 {
		for _, a := range actions {
			name := taskName(node, "", a)
			s.tasks[name] = true
			for _, l := range last {
				s.edges[[2]string{l, name}] = true
			}
			last = []string{name}
		}
		return last
	}
	var ends []string
	for _, service := range services {
		from, mine := last, false
		for _, a := range actions {
			if d := p.services[service]; !d.Defines(a) {
				continue
			}
			name := taskName(node, service, a)
			s.tasks[name] = true
			s.on[string(a)+" "+service] = append(s.on[string(a)+" "+service], node)
			for _, l := range from {
				s.edges[[2]string{l, name}] = true
			}
			from, mine = []string{name}, true
		}
		if mine {
			ends = append(ends, from...)
		}
	}
	if len(ends) == 0 {
		return last
	}
	return ends
}

var comes = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart}

// has lists services, or one that does not exist where there is none, so that an
// empty list does not mean the node's own tasks.
func has(services []string) []string {
	if len(services) == 0 {
		return []string{"-"}
	}
	return services
}

func (e *expected) stage(build func(s *naiveStage)) {
	s := &naiveStage{tasks: map[string]bool{}, edges: map[[2]string]bool{}, on: map[string][]loom.NodeID{}}
	build(s)
	for _, r := range []struct {
		p             *naive
		install       bool
		before, after loom.TaskAction
		reversed      bool
	}{
		{e.after, true, loom.ActionInstall, loom.ActionInstall, false},
		{e.after, false, loom.ActionStart, loom.ActionInitialize, false},
		{e.after, false, loom.ActionStart, loom.ActionStart, false},
		{e.before, false, loom.ActionStop, loom.ActionStop, true},
		{e.before, true, loom.ActionRemove, loom.ActionRemove, true},
	} {
		for x := range r.p.services {
			xs := s.on[string(r.after)+" "+x]
			if len(xs) == 0 {
				continue
			}
			for _, y := range r.p.nearest(x, r.install, func(y string) bool { return len(s.on[string(r.before)+" "+y]) > 0 }) {
				for _, nx := range xs {
					for _, ny := range s.on[string(r.before)+" "+y] {
						same := slices.Contains(r.p.on(y), nx)
						if r.install && !r.reversed && r.p.services[x].Dependencies.Install.Scope == "node" && same && nx != ny {
							continue
						}
						from, to := taskName(ny, y, r.before), taskName(nx, x, r.after)
						if r.reversed {
							from, to = to, from
						}
						s.edges[[2]string{from, to}] = true
					}
				}
			}
		}
	}
	if len(s.tasks) > 0 {
		e.stages = append(e.stages, s)
	}
}

// tell is the stage of the followers of services whose nodes changed.
func (e *expected) tell(moved map[string]bool, know map[loom.NodeID]bool) {
	e.stage(func(s *naiveStage) {
		for f, d := range e.after.services {
			follows := slices.ContainsFunc(d.Follows, func(name string) bool {
				for m := range moved {
					for _, p := range []*naive{e.before, e.after} {
						if v, there := p.services[m]; there && (m == name || slices.Contains(v.Dependencies.Provides, name)) {
							return true
						}
					}
				}
				return false
			})
			if !follows || !d.Defines(loom.ActionConfigure) {
				continue
			}
			var nodes []string
			for _, id := range e.ids() {
				b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
				if b != nil && a != nil && !know[id] && slices.Contains(b.Services, f) && slices.Contains(a.Services, f) {
					nodes = append(nodes, taskName(id, f, loom.ActionConfigure))
				}
			}
			half := (len(nodes) + 1) / 2
			for i, name := range nodes {
				s.tasks[name] = true
				for _, first := range nodes[:half] {
					if i >= half {
						s.edges[[2]string{first, name}] = true
					}
				}
			}
		}
	})
}

func (e *expected) replaced(id loom.NodeID) (repaired, resized bool) {
	b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
	if b == nil || a == nil {
		return false, false
	}
	resized = b.HardwareType != a.HardwareType
	return !resized && b.Incarnation != a.Incarnation, resized
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

func (e *expected) upgraded(id loom.NodeID) []string {
	b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
	repaired, resized := e.replaced(id)
	if b == nil || a == nil || repaired || resized {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(a.Services), func(s string) bool {
		return !slices.Contains(b.Services, s) || e.before.services[s].Version == e.after.services[s].Version
	})
}

func (e *expected) build() {
	var rolling []loom.NodeID
	moved, know := map[string]bool{}, map[loom.NodeID]bool{}
	note := func(to map[string]bool, lists ...[]string) {
		for _, name := range slices.Concat(lists...) {
			to[name] = true
		}
	}
	fresh := func(s *naiveStage, id loom.NodeID, last []string, n *loom.Node) {
		last = s.chain(e.after, id, last, nil, loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap)
		s.chain(e.after, id, last, has(n.Services), comes...)
	}
	e.stage(func(s *naiveStage) {
		for _, id := range e.ids() {
			b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
			repaired, resized := e.replaced(id)
			switch {
			case b == nil:
				fresh(s, id, nil, a)
				note(moved, a.Services)
			case a == nil:
				note(moved, b.Services)
			case repaired:
				fresh(s, id, s.chain(e.before, id, nil, nil, loom.ActionDelete), a)
				note(moved, b.Services, a.Services)
				know[id] = true
			case resized:
				rolling = append(rolling, id)
			default:
				added, rest := without(a.Services, b.Services), e.change.Rest[id]
				var last []string
				for _, action := range []loom.TaskAction{loom.ActionConfirm, loom.ActionBootstrap} {
					if slices.Contains(rest[""], action) || action == loom.ActionBootstrap && len(added) > 0 {
						last = s.chain(e.after, id, last, nil, action)
					}
				}
				s.chain(e.after, id, last, has(added), comes...)
				for service, actions := range rest {
					s.chain(e.after, id, last, has([]string{service}), slices.DeleteFunc(slices.Clone(restSteps), func(a loom.TaskAction) bool { return !slices.Contains(actions, a) })...)
				}
				note(moved, without(a.Services, b.Services), without(b.Services, a.Services))
				if len(e.upgraded(id)) > 0 {
					rolling = append(rolling, id)
				}
			}
		}
	})
	for batch := range slices.Chunk(rolling, max(e.change.Batch, 1)) {
		batchMoved, batchKnow := map[string]bool{}, map[loom.NodeID]bool{}
		e.stage(func(s *naiveStage) {
			for _, id := range batch {
				b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
				if _, resized := e.replaced(id); resized {
					drained := slices.DeleteFunc(slices.Clone(b.Services), func(name string) bool {
						d := e.before.services[name]
						return !d.Defines(loom.ActionDrain)
					})
					last := s.chain(e.before, id, nil, has(drained), loom.ActionDrain, loom.ActionStop)
					fresh(s, id, s.chain(e.before, id, last, nil, loom.ActionDelete), a)
					note(batchMoved, b.Services, a.Services)
					batchKnow[id] = true
					continue
				}
				for _, name := range e.upgraded(id) {
					last := s.chain(e.before, id, nil, []string{name}, loom.ActionStop)
					s.chain(e.after, id, last, []string{name}, loom.ActionInstall, loom.ActionConfigure, loom.ActionStart)
				}
			}
		})
		e.tell(batchMoved, batchKnow)
	}
	e.tell(moved, know)
	e.stage(func(s *naiveStage) {
		for _, id := range e.ids() {
			b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
			repaired, resized := e.replaced(id)
			switch {
			case b == nil || repaired || resized:
			case a == nil:
				s.chain(e.before, id, s.chain(e.before, id, nil, has(b.Services), loom.ActionDrain, loom.ActionStop), nil, loom.ActionDelete)
			default:
				s.chain(e.before, id, nil, has(without(b.Services, a.Services)), loom.ActionStop, loom.ActionRemove)
			}
		}
	})
}

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
				s.Version++
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
		change.Rest = randomRest(r, change)
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
