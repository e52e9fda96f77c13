package planner

import (
	"maps"
	"slices"

	"loom/app/loom"
)

// PlanRetry plans what is left of an operation that failed: its tasks that are not
// settled, complete or skipped, in the order they had. What waited for a settled task waits no longer for it. Old and Undo stay
// with their tasks. Tasks that undo belong to a plan of their own: Forward leaves them
// out of that of an operation.
func PlanRetry(plan loom.Plan, settled func(number int) bool) (loom.Plan, error) {
	n := len(plan.Tasks)
	var d draft
	nodes, services := map[loom.NodeID]int{}, map[string]int{"": nodeTask}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		if _, known := nodes[t.Node]; !known {
			nodes[t.Node] = none
			d.nodes = append(d.nodes, planNode{id: t.Node, number: t.NodeNumber})
		}
		if _, known := services[t.Service]; !known {
			services[t.Service] = none
		}
	}
	for i := range plan.Gates {
		if _, known := services[plan.Gates[i].Service]; !known {
			services[plan.Gates[i].Service] = none
		}
	}
	sortNodes(d.nodes)
	for i := range d.nodes {
		nodes[d.nodes[i].id] = i
	}
	delete(services, "")
	d.names = slices.Sorted(maps.Keys(services))
	for i, name := range d.names {
		services[name] = i
	}
	services[""] = nodeTask
	vertex := make([]int32, n+len(plan.Gates)+1)
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		vertex[i+1] = none
		if !settled(t.Number) {
			task := d.addTask(nodes[t.Node], services[t.Service], t.Action)
			d.tasks[task].old, d.tasks[task].undo = t.Old, t.Undo
			vertex[i+1] = task
		}
	}
	// A gate stays where tasks are left on both sides; the end is recreated.
	in, out := make([]bool, len(plan.Gates)), make([]bool, len(plan.Gates))
	for _, e := range plan.Edges {
		if e.To > n {
			in[e.To-n-1] = in[e.To-n-1] || vertex[e.From] != none
		} else if e.From > n {
			out[e.From-n-1] = out[e.From-n-1] || vertex[e.To] != none
		}
	}
	for i, g := range plan.Gates {
		vertex[n+1+i] = none
		if i < len(plan.Gates)-1 && in[i] && out[i] {
			vertex[n+1+i] = int32(len(d.tasks) + len(d.gates))
			d.gates = append(d.gates, groupKey{services[g.Service], g.Action})
		}
	}
	for _, e := range plan.Edges {
		if from, to := vertex[e.From], vertex[e.To]; from != none && to != none {
			d.addEdge(from, to)
		}
	}
	return d.finish(plan.Action)
}
