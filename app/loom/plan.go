package loom

import (
	"cmp"
	"slices"
)

// Plan is the graph of tasks of one operation. Vertices are tasks and gates;
// an edge says "From before To". Contracting the gates gives exactly the order
// of the tasks.
type Plan struct {
	Action ClusterAction
	// Tasks in their order; Tasks[i].Number is i+1.
	Tasks []PlanTask
	// Gates join many edges; the last one is the end of the plan and waits for
	// every task that nothing else waits for. A gate never follows a gate, but
	// for the end gate of a plan without tasks, which waits for nothing.
	Gates []Gate
	// Edges are sorted by From, then To.
	Edges []Edge
}

// PlanTask is a planned task. Service is "" for a node action.
type PlanTask struct {
	Number     int
	Node       NodeID
	NodeNumber int
	Service    string
	Action     TaskAction
	// Level is 1 + the highest level of a predecessor, for display only.
	Level int
	// Rank is the number of tasks on the longest path from here to the end, this
	// one included; among ready tasks of a node the highest goes first.
	Rank int
	// Critical marks the tasks of one longest path of the plan.
	Critical bool
	// Old says that the service's action is the one defined before the operation: what
	// a task that stops or removes an earlier version carries out.
	Old bool `json:",omitempty"`
	// Undo marks a task that takes back what others of the operation did.
	Undo bool `json:",omitempty"`
}

// Gate is a virtual task; it has no number, no River job and no place in counts.
// Service and Action say what it joins ("all START of web"), empty for the end. A
// gate between the stages of a change joins the last tasks of several services:
// Service is empty then, and Action the one that comes last.
type Gate struct {
	Service string
	Action  TaskAction
}

// Edge joins two vertices: task number n is vertex n (from 1), Gates[i] is
// vertex len(Tasks)+1+i.
type Edge struct{ From, To int }

// SortEdges sorts edges by the vertices they come from, then by those they lead to.
func SortEdges(edges []Edge) {
	slices.SortFunc(edges, func(a, b Edge) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
}

// EndVertex is the vertex of the end gate.
func (p *Plan) EndVertex() int { return len(p.Tasks) + len(p.Gates) }

// Levels is the number of levels ("stages").
func (p *Plan) Levels() int {
	n := 0
	for _, t := range p.Tasks {
		n = max(n, t.Level)
	}
	return n
}
