package planner

import (
	"cmp"
	"slices"

	"loom/app/loom"
)

// finish numbers tasks and gates, adds the end gate and computes levels, ranks
// and the critical path.
func (d *draft) finish(action loom.ClusterAction) (loom.Plan, error) {
	n := len(d.tasks)
	total := n + len(d.gates)
	after := adjacency(total, d.edges)
	sequence, levels, ok := d.levels(after)
	if !ok {
		// Chains and acyclic relations cannot make a circle; should a new rule ever
		// do so, a refused plan is better than an operation that never ends.
		return loom.Plan{}, loom.NewError(loom.Invalid, "The tasks of this operation would wait for each other in a circle; check the dependencies of its services.")
	}
	ranks := make([]int32, total)
	for i := len(sequence) - 1; i >= 0; i-- {
		v := sequence[i]
		for _, w := range after.of(v) {
			ranks[v] = max(ranks[v], ranks[w])
		}
		if int(v) < n {
			ranks[v]++
		}
	}

	vertex := d.number(levels)
	plan := loom.Plan{
		Action: action,
		Tasks:  make([]loom.PlanTask, n),
		Gates:  make([]loom.Gate, len(d.gates)+1),
	}
	for v, t := range d.tasks {
		task := loom.PlanTask{
			Number: int(vertex[v]), Node: d.nodes[t.node].id, NodeNumber: d.nodes[t.node].number,
			Action: loom.TaskActions[t.order], Level: int(levels[v]), Rank: int(ranks[v]), Old: t.old, Undo: t.undo,
		}
		if t.service != nodeTask {
			task.Service = d.names[t.service]
		}
		plan.Tasks[task.Number-1] = task
	}
	for g, key := range d.gates {
		gate := loom.Gate{Action: key.action}
		if key.service != nodeTask {
			gate.Service = d.names[key.service]
		}
		plan.Gates[int(vertex[n+g])-n-1] = gate
	}
	end := int32(plan.EndVertex())
	edges := make([]edge, 0, len(d.edges)+n)
	for _, e := range d.edges {
		edges = append(edges, edge{vertex[e.from], vertex[e.to]})
	}
	for v := range d.tasks {
		if len(after.of(int32(v))) == 0 {
			edges = append(edges, edge{vertex[v], end})
		}
	}
	edges = sortBy(edges, int(end)+1, func(e edge) int32 { return e.to })
	edges = sortBy(edges, int(end)+1, func(e edge) int32 { return e.from })
	plan.Edges = make([]loom.Edge, len(edges))
	for i, e := range edges {
		plan.Edges[i] = loom.Edge{From: int(e.from), To: int(e.to)}
	}
	markCritical(&plan, edges)
	return plan, nil
}

// levels returns the vertices in an order that respects the edges, and the level
// of each; gates do not count as a level. ok is false when there is a circle.
func (d *draft) levels(after neighbours) (sequence, levels []int32, ok bool) {
	total := len(d.tasks) + len(d.gates)
	open := make([]int32, total)
	for _, e := range d.edges {
		open[e.to]++
	}
	levels = make([]int32, total)
	sequence = make([]int32, 0, total)
	for v, n := range open {
		if n == 0 {
			sequence = append(sequence, int32(v))
		}
	}
	for i := 0; i < len(sequence); i++ {
		v := sequence[i]
		if int(v) < len(d.tasks) {
			levels[v]++
		}
		for _, w := range after.of(v) {
			levels[w] = max(levels[w], levels[v])
			if open[w]--; open[w] == 0 {
				sequence = append(sequence, w)
			}
		}
	}
	return sequence, levels, len(sequence) == total
}

// number returns each vertex its final number: tasks by level, node, action and
// service, then gates by level, action and service.
func (d *draft) number(levels []int32) []int32 {
	sorted := make([]int32, len(d.tasks))
	for v := range sorted {
		sorted[v] = int32(v)
	}
	slices.SortFunc(sorted, func(v, w int32) int {
		x, y := d.tasks[v], d.tasks[w]
		return cmp.Or(cmp.Compare(levels[v], levels[w]), cmp.Compare(x.node, y.node),
			cmp.Compare(x.order, y.order), cmp.Compare(x.service, y.service))
	})
	gates := make([]int32, len(d.gates))
	for g := range gates {
		gates[g] = int32(len(d.tasks) + g)
	}
	slices.SortFunc(gates, func(v, w int32) int {
		x, y := d.gates[int(v)-len(d.tasks)], d.gates[int(w)-len(d.tasks)]
		return cmp.Or(cmp.Compare(levels[v], levels[w]), cmp.Compare(x.action.Order(), y.action.Order()),
			cmp.Compare(x.service, y.service), cmp.Compare(v, w))
	})
	vertex := make([]int32, len(levels))
	for i, v := range append(sorted, gates...) {
		vertex[v] = int32(i + 1)
	}
	return vertex
}

// markCritical marks one longest path: from the first task of the highest rank,
// always on to the lowest number that has just one less to go.
func markCritical(plan *loom.Plan, edges []edge) {
	n := len(plan.Tasks)
	if n == 0 {
		return
	}
	at := 0
	for i := range plan.Tasks {
		if plan.Tasks[i].Rank > plan.Tasks[at].Rank {
			at = i
		}
	}
	after := adjacency(plan.EndVertex()+1, edges)
	for {
		t := &plan.Tasks[at]
		t.Critical = true
		next := n
		consider := func(v int32) {
			if i := int(v) - 1; i < n && plan.Tasks[i].Rank == t.Rank-1 {
				next = min(next, i)
			}
		}
		for _, v := range after.of(int32(t.Number)) {
			consider(v)
			if int(v) > n {
				for _, w := range after.of(v) {
					consider(w)
				}
			}
		}
		if next == n {
			return
		}
		at = next
	}
}

// neighbours holds the successors of each vertex, all in one slice.
type neighbours struct {
	start []int32
	list  []int32
}

func (a neighbours) of(v int32) []int32 { return a.list[a.start[v]:a.start[v+1]] }

// adjacency lists the successors of the vertices 0 to n-1, in the edges' order.
func adjacency(n int, edges []edge) neighbours {
	a := neighbours{start: make([]int32, n+2), list: make([]int32, len(edges))}
	for _, e := range edges {
		a.start[e.from+2]++
	}
	for v := 1; v < len(a.start); v++ {
		a.start[v] += a.start[v-1]
	}
	for _, e := range edges {
		a.list[a.start[e.from+1]] = e.to
		a.start[e.from+1]++
	}
	a.start = a.start[:n+1]
	return a
}

// sortBy sorts edges by a key below n, keeping the order of equal ones. Counting
// beats comparing by far at a million edges.
func sortBy(edges []edge, n int, key func(edge) int32) []edge {
	start := make([]int32, n+1)
	for _, e := range edges {
		start[key(e)+1]++
	}
	for i := 1; i <= n; i++ {
		start[i] += start[i-1]
	}
	sorted := make([]edge, len(edges))
	for _, e := range edges {
		k := key(e)
		sorted[start[k]] = e
		start[k]++
	}
	return sorted
}
