package draw

import (
	"cmp"
	"fmt"
	"slices"

	"loom/app/loom"
)

// maxReduced is the number of boxes and gates up to which edges that follow
// from others are left out; above it they cost more than they clutter.
const maxReduced = 4096

// draft is the graph of boxes and gates before it is known which gates are drawn.
// Boxes come first, gates[i] is vertex len(boxes)+i.
type draft struct {
	boxes []Box
	gates []loom.Gate
	// on holds the successors of each vertex, ascending, each once.
	on [][]int
	// critical holds the edges of the critical path.
	critical map[[2]int]bool
	// reach holds, once reduced, what lies behind each vertex; nil when there are
	// too many.
	reach [][]uint64
}

// newDraft turns the edges of a plan into edges between boxes and gates.
func newDraft(plan loom.Plan, boxes []Box, shows []bool, boxOf []int) *draft {
	n := len(plan.Tasks)
	d := &draft{boxes: boxes, gates: plan.Gates, on: make([][]int, len(boxes)+len(plan.Gates)), critical: map[[2]int]bool{}}
	vertex := func(v int) int {
		if v > n {
			return len(boxes) + v - n - 1
		}
		return boxOf[v]
	}
	// What the critical path passes behind and before each gate; of several
	// critical tasks behind a gate it meets the first one first.
	last, next := make([]int, len(plan.Gates)), make([]int, len(plan.Gates))
	for _, e := range plan.Edges {
		if e.From <= n && !shows[e.From] || e.To <= n && !shows[e.To] {
			continue
		}
		from, to := vertex(e.From), vertex(e.To)
		if from != to {
			d.on[from] = append(d.on[from], to)
		}
		switch {
		case e.From > n:
			if g := e.From - n - 1; next[g] == 0 && plan.Tasks[e.To-1].Critical {
				next[g] = e.To
			}
		case e.To > n:
			if plan.Tasks[e.From-1].Critical {
				last[e.To-n-1] = e.From
			}
		case follows(plan, e.From, e.To):
			d.critical[[2]int{from, to}] = true
		}
	}
	for g := range plan.Gates {
		if last[g] > 0 && next[g] > 0 && follows(plan, last[g], next[g]) {
			d.critical[[2]int{boxOf[last[g]], len(boxes) + g}] = true
			d.critical[[2]int{len(boxes) + g, boxOf[next[g]]}] = true
		}
	}
	for v := range d.on {
		slices.Sort(d.on[v])
		d.on[v] = slices.Compact(d.on[v])
	}
	return d
}

// follows reports whether the critical path goes from one task right to the
// other, given that one waits for the other: it loses one rank with each step.
func follows(plan loom.Plan, from, to int) bool {
	a, b := plan.Tasks[from-1], plan.Tasks[to-1]
	return a.Critical && b.Critical && a.Rank == b.Rank+1
}

// straighten places each box behind all that it waits for. Levels do that as planned;
// tasks that came later, such as those that replace a machine, have the level of the
// task that waits for them. Edges that still lead back, between groups that wait for
// each other, are left out.
func (d *draft) straighten() {
	n := len(d.boxes)
	for v := range d.boxes {
		d.boxes[v].column = d.boxes[v].Level
	}
	// forward calls f for the edges between boxes, straight or by a gate.
	forward := func(f func(v, w int)) {
		for v := range d.boxes {
			for _, w := range d.on[v] {
				if w < n {
					f(v, w)
					continue
				}
				for _, x := range d.on[w] {
					f(v, x)
				}
			}
		}
	}
	// A way without loops has fewer steps than there are boxes.
	for moved, round := true, 0; moved && round < n; round++ {
		moved = false
		forward(func(v, w int) {
			if v != w && d.boxes[w].column <= d.boxes[v].column {
				d.boxes[w].column, moved = d.boxes[v].column+1, true
			}
		})
	}
	for v := range d.boxes {
		d.on[v] = slices.DeleteFunc(d.on[v], func(w int) bool {
			if w < n {
				return d.boxes[w].column <= d.boxes[v].column
			}
			return slices.ContainsFunc(d.on[w], func(x int) bool { return d.boxes[x].column <= d.boxes[v].column })
		})
	}
}

// reduce leaves out what follows from the rest: an edge between two vertices
// that are joined by a longer way as well.
func (d *draft) reduce() {
	total := len(d.on)
	if total > maxReduced {
		return
	}
	// Successors are met before their predecessors: gates lie half a level behind
	// the last box before them.
	rank := make([]int, total)
	for v, b := range d.boxes {
		rank[v] = 2 * b.column
		for _, w := range d.on[v] {
			if w >= len(d.boxes) {
				rank[w] = max(rank[w], 2*b.column+1)
			}
		}
	}
	order := make([]int, total)
	for v := range order {
		order[v] = v
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(rank[b], rank[a]), cmp.Compare(a, b)) })
	words := total/64 + 1
	reach := make([][]uint64, total)
	for _, v := range order {
		reach[v] = make([]uint64, words)
		beyond := make([]uint64, words)
		for _, w := range d.on[v] {
			for i, bits := range reach[w] {
				beyond[i] |= bits
			}
		}
		d.on[v] = slices.DeleteFunc(d.on[v], func(w int) bool { return beyond[w/64]&(1<<(w%64)) != 0 })
		copy(reach[v], beyond)
		for _, w := range d.on[v] {
			reach[v][w/64] |= 1 << (w % 64)
		}
	}
	d.reach = reach
}

// otherWay reports whether a box lies before another also without the gate
// between them.
func (d *draft) otherWay(from, gate, to int) bool {
	return d.reach != nil && slices.ContainsFunc(d.on[from], func(w int) bool {
		return w != gate && (w == to || d.reach[w][to/64]&(1<<(to%64)) != 0)
	})
}

// connect adds the joints and edges of a draft: a gate becomes a joint where
// plain curves would be more.
func (g *graph) connect(d *draft) {
	d.reduce()
	boxes := len(d.boxes)
	before := make([][]int, len(d.gates))
	seen := map[[2]end]int{}
	add := func(from, to end, critical bool) {
		key := [2]end{from, to}
		if at, ok := seen[key]; ok {
			g.edges[at].critical = g.edges[at].critical || critical
			return
		}
		seen[key] = len(g.edges)
		g.edges = append(g.edges, line{from: from, to: to, critical: critical})
	}
	for v := range d.boxes {
		for _, w := range d.on[v] {
			if w < boxes {
				add(end{box, v}, end{box, w}, d.critical[[2]int{v, w}])
			} else {
				before[w-boxes] = append(before[w-boxes], v)
			}
		}
	}
	for i, gate := range d.gates {
		v := boxes + i
		from, to := before[i], d.on[v]
		if len(from)*len(to) <= len(from)+len(to) {
			for _, a := range from {
				for _, b := range to {
					if a != b && !d.otherWay(a, v, b) {
						add(end{box, a}, end{box, b}, d.critical[[2]int{a, v}] && d.critical[[2]int{v, b}])
					}
				}
			}
			continue
		}
		at := end{joint, len(g.joints)}
		g.joints = append(g.joints, Joint{ID: fmt.Sprintf("j%d", i+1), Service: gate.Service, Action: gate.Action})
		for _, a := range from {
			add(end{box, a}, at, d.critical[[2]int{a, v}])
		}
		for _, b := range to {
			add(at, end{box, b}, d.critical[[2]int{v, b}])
		}
	}
}
