package lab

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"hash/fnv"
	"slices"

	"loom/app/loom"
	"loom/planner"
)

// usualSeconds is how long a task takes on a usual machine, up to a fifth more or less.
var usualSeconds = map[loom.TaskAction]float64{
	loom.ActionCreate: 40, loom.ActionConfirm: 20, loom.ActionBootstrap: 15, loom.ActionInstall: 60, loom.ActionConfigure: 5,
	loom.ActionInitialize: 10, loom.ActionStart: 10, loom.ActionStop: 5, loom.ActionRemove: 10, loom.ActionDrain: 30, loom.ActionDelete: 15,
}

// Every slowEvery-th machine, the first of them in the middle, takes slowFactor times as long.
const slowEvery, slowFactor = 25, 5

// benchMakespan prints how long plans take from their first task to their last, by a
// clock that is only counted: by the rule of the scheduler, by stages, and at least.
func (e *environment) benchMakespan(context.Context) error {
	fmt.Fprintf(e.Out, "\nMakespan: one machine in %d takes %d times as long; minutes, and how much longer than the bound\n\n"+
		"  %-26s %6s %7s %8s %7s %-13s %9s %15s %15s\n", slowEvery, slowFactor, "", "nodes", "tasks", "workers", "bound", "is", "own chain", "ours", "in stages")
	for _, kind := range makespanKinds {
		for _, n := range []int{10, 100, 1000} {
			plan, err := kind.plan(n)
			if err != nil {
				return fmt.Errorf("%s with %d nodes: %w", kind.name, n, err)
			}
			for _, workers := range []int{n, max(2, n/10)} {
				s := newSimulation(plan, workers)
				bound, is := s.bound()
				within := s.behind()
				ours, staged := s.run(), s.runStaged()
				fmt.Fprintf(e.Out, "  %-26s %6d %7d %8d %7.1f %-13s %9s %15s %15s\n", kind.name, n, len(plan.Tasks), workers, bound/60, is,
					beyond(within, bound), fmt.Sprintf("%.1f %s", ours/60, beyond(ours, bound)), fmt.Sprintf("%.1f %s", staged/60, beyond(staged, bound)))
			}
		}
	}
	fmt.Fprintln(e.Out, "\n  The bound is the largest of the longest path, all work by the workers, and the busiest node; “own chain” adds to")
	fmt.Fprintln(e.Out, "  each node what has to be done elsewhere before its tasks and after them, which no order of tasks can avoid either.")
	return nil
}

func beyond(x, bound float64) string { return fmt.Sprintf("%+.1f %%", 100*(x/bound-1)) }

// makespanKinds are the plans that are measured.
var makespanKinds = []struct {
	name string
	plan func(n int) (loom.Plan, error)
}{
	{"create, apart", func(n int) (loom.Plan, error) { return makespanCreate(n, false) }},
	{"create, master and workers", func(n int) (loom.Plan, error) { return makespanCreate(n, true) }},
	{"create, 14 on every node", func(n int) (loom.Plan, error) {
		defined := plannerServices()
		return planner.Make(loom.ClusterCreate, plannerNodes(n, defined), defined, planner.Scope{})
	}},
	{"expand by a tenth", func(n int) (loom.Plan, error) {
		nodes, defined := makespanNodes(n+max(1, n/10), true)
		return planner.MakeChange(planner.Change{Before: planner.State{Nodes: nodes[:n], Services: defined}, After: planner.State{Nodes: nodes, Services: defined}})
	}},
	{"upgrade, a tenth at a time", func(n int) (loom.Plan, error) {
		nodes, defined := makespanNodes(n, true)
		_, next := makespanNodes(n, true)
		w := next["w2"]
		w.Version++
		next["w2"] = w
		return planner.MakeChange(planner.Change{Batch: max(1, n/10),
			Before: planner.State{Nodes: nodes, Services: defined}, After: planner.State{Nodes: nodes, Services: next}})
	}},
}

func makespanCreate(n int, ordered bool) (loom.Plan, error) {
	nodes, defined := makespanNodes(n, ordered)
	return planner.Make(loom.ClusterCreate, nodes, defined, planner.Scope{})
}

// makespanNodes are a master and workers with four services each, of which the last
// need the master's; or the same without any order between services.
func makespanNodes(n int, ordered bool) ([]loom.Node, map[string]loom.Service) {
	defined := map[string]loom.Service{}
	for _, name := range []string{"base", "master", "w1", "w2", "w3"} {
		s := loom.Service{Base: loom.Base{Name: name, Version: 1}}
		s.Provisioner.Actions = map[loom.TaskAction]loom.ServiceAction{}
		for _, action := range []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionStart, loom.ActionStop} {
			s.Provisioner.Actions[action] = loom.ServiceAction{Type: "shell"}
		}
		if ordered && name != "base" {
			s.Dependencies.Install = loom.PhaseDependency{Requires: []string{"base"}, Scope: "node"}
		}
		if ordered && name[0] == 'w' {
			s.Dependencies.Runtime.Requires = []string{"master"}
		}
		defined[name] = s
	}
	nodes := make([]loom.Node, n)
	for i := range nodes {
		nodes[i] = loom.Node{ID: loom.NodeID(fmt.Sprintf("n%05d", i)), Number: loom.FirstNodeNumber + i, Services: []string{"base", "w1", "w2", "w3"}}
	}
	nodes[0].Services = []string{"base", "master"}
	return nodes, defined
}

// simulation carries a plan out on a clock that is only counted, in seconds.
type simulation struct {
	plan    loom.Plan
	workers int
	took    []float64
	node    []int
	nodes   int
	after   [][]int
	open    []int
}

func newSimulation(plan loom.Plan, workers int) *simulation {
	end := plan.EndVertex() + 1
	s := &simulation{plan: plan, workers: workers, took: make([]float64, end), node: make([]int, end), after: make([][]int, end), open: make([]int, end)}
	at := map[int]int{}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		if _, known := at[t.NodeNumber]; !known {
			at[t.NodeNumber] = len(at)
		}
		s.node[t.Number] = at[t.NodeNumber]
		h := fnv.New32a()
		fmt.Fprint(h, t.NodeNumber, t.Service, t.Action)
		s.took[t.Number] = usualSeconds[t.Action] * (0.8 + 0.4*float64(h.Sum32()%1000)/1000)
		if (t.NodeNumber-loom.FirstNodeNumber)%slowEvery == slowEvery/4 {
			s.took[t.Number] *= slowFactor
		}
	}
	s.nodes = len(at)
	for _, e := range plan.Edges {
		s.after[e.From] = append(s.after[e.From], e.To)
		s.open[e.To]++
	}
	return s
}

// order returns the vertices so that each comes behind all it waits for.
func (s *simulation) order() []int {
	open, all := slices.Clone(s.open), make([]int, 0, len(s.open))
	for v := 1; v < len(open); v++ {
		if open[v] == 0 {
			all = append(all, v)
		}
	}
	for i := 0; i < len(all); i++ {
		for _, w := range s.after[all[i]] {
			if open[w]--; open[w] == 0 {
				all = append(all, w)
			}
		}
	}
	return all
}

// reach returns the length of the longest path up to each vertex, without it, and from
// each vertex on, without it.
func (s *simulation) reach() (head, tail []float64) {
	head, tail = make([]float64, len(s.took)), make([]float64, len(s.took))
	all := s.order()
	for _, v := range all {
		for _, w := range s.after[v] {
			head[w] = max(head[w], head[v]+s.took[v])
		}
	}
	for _, v := range slices.Backward(all) {
		for _, w := range s.after[v] {
			tail[v] = max(tail[v], s.took[w]+tail[w])
		}
	}
	return head, tail
}

// bound is the least time that any order of tasks takes, and what it comes from.
func (s *simulation) bound() (float64, string) {
	head, _ := s.reach()
	busy := make([]float64, s.nodes)
	var path, work float64
	for v := 1; v <= len(s.plan.Tasks); v++ {
		path = max(path, head[v]+s.took[v])
		work += s.took[v]
		busy[s.node[v]] += s.took[v]
	}
	bound, is := path, "longest path"
	if w := work / float64(s.workers); w > bound {
		bound, is = w, "all work"
	}
	if b := slices.Max(busy); b > bound {
		bound, is = b, "busiest node"
	}
	return bound, is
}

// behind is a bound that is closer: some tasks of a node, one after the other, lie
// behind the least that comes before any of them and before the least that comes after.
func (s *simulation) behind() float64 {
	head, tail := s.reach()
	of := make([][]int, s.nodes)
	for v := 1; v <= len(s.plan.Tasks); v++ {
		of[s.node[v]] = append(of[s.node[v]], v)
	}
	best, _ := s.bound()
	for _, tasks := range of {
		slices.SortFunc(tasks, func(a, b int) int { return cmp.Compare(head[b], head[a]) })
		// The tasks with a head of at least that of the i-th, from the largest on.
		for i := range tasks {
			byTail := slices.Clone(tasks[:i+1])
			slices.SortFunc(byTail, func(a, b int) int { return cmp.Compare(tail[b], tail[a]) })
			sum := 0.0
			for _, v := range byTail {
				sum += s.took[v]
				best = max(best, head[tasks[i]]+sum+tail[v])
			}
		}
	}
	return best
}

// run starts a task when what it waits for is done, its node is free and a worker is
// free. A node takes its ready task of the highest rank; nodes go in turn.
func (s *simulation) run() float64 {
	open := slices.Clone(s.open)
	ready, busy := make([]byRank, s.nodes), make([]bool, s.nodes)
	var queue []int
	running, now, free := &byTime{}, 0.0, s.workers
	ranks := func(v int) int { return s.plan.Tasks[v-1].Rank }
	promote := func(n int) {
		if !busy[n] && len(ready[n].list) > 0 {
			busy[n] = true
			queue = append(queue, heap.Pop(&ready[n]).(int))
		}
	}
	for n := range ready {
		ready[n].rank = ranks
	}
	var reached func(v int)
	reached = func(v int) {
		if v <= len(s.plan.Tasks) {
			heap.Push(&ready[s.node[v]], v)
			return
		}
		for _, w := range s.after[v] {
			if open[w]--; open[w] == 0 {
				reached(w)
			}
		}
	}
	for v := 1; v < len(open); v++ {
		if s.open[v] == 0 {
			reached(v)
		}
	}
	for n := range ready {
		promote(n)
	}
	for {
		for ; free > 0 && len(queue) > 0; free-- {
			heap.Push(running, finish{now + s.took[queue[0]], queue[0]})
			queue = queue[1:]
		}
		if running.Len() == 0 {
			return now
		}
		f := heap.Pop(running).(finish)
		now = f.at
		free++
		busy[s.node[f.task]] = false
		before := touched{}
		for _, w := range s.after[f.task] {
			if open[w]--; open[w] == 0 {
				before.add(s, w)
				reached(w)
			}
		}
		promote(s.node[f.task])
		for _, n := range before.nodes {
			promote(n)
		}
	}
}

// touched are the nodes whose tasks a finished one, or a gate behind it, freed.
type touched struct{ nodes []int }

func (t *touched) add(s *simulation, v int) {
	if v <= len(s.plan.Tasks) {
		t.nodes = append(t.nodes, s.node[v])
		return
	}
	for _, w := range s.after[v] {
		t.nodes = append(t.nodes, s.node[w])
	}
}

// runStaged cuts levels so that a node comes once in a stage, and begins a stage when
// the one before it is over.
func (s *simulation) runStaged() float64 {
	type stage struct{ level, part int }
	parts, seen := map[stage][]int{}, map[[2]int]int{}
	for v := 1; v <= len(s.plan.Tasks); v++ {
		key := [2]int{s.plan.Tasks[v-1].Level, s.node[v]}
		at := stage{key[0], seen[key]}
		seen[key]++
		parts[at] = append(parts[at], v)
	}
	total := 0.0
	for _, tasks := range parts {
		running, now := &byTime{}, 0.0
		for _, v := range tasks {
			if running.Len() == s.workers {
				now = heap.Pop(running).(finish).at
			}
			heap.Push(running, finish{now + s.took[v], v})
		}
		for running.Len() > 0 {
			now = heap.Pop(running).(finish).at
		}
		total += now
	}
	return total
}

// finish is the end of a task that runs.
type finish struct {
	at   float64
	task int
}

type byTime []finish

func (q byTime) Len() int { return len(q) }
func (q byTime) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].task, q[j].task)) < 0
}
func (q byTime) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byTime) Push(x any)   { *q = append(*q, x.(finish)) }
func (q *byTime) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// byRank are the ready tasks of a node, that of the highest rank first.
type byRank struct {
	list []int
	rank func(int) int
}

func (q *byRank) Len() int { return len(q.list) }
func (q *byRank) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q.rank(q.list[j]), q.rank(q.list[i])), cmp.Compare(q.list[i], q.list[j])) < 0
}
func (q *byRank) Swap(i, j int) { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *byRank) Push(x any)    { q.list = append(q.list, x.(int)) }
func (q *byRank) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	return last
}
