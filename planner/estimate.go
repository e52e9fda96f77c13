package planner

import (
	"time"

	"loom/app/loom"
)

// EstimateDuration estimates how long a plan takes with that many workers: the larger
// of its longest path and of all work divided by the workers. Typical gives the
// usual duration of a service's action on a node ("" for node actions), false
// where none is known. Without any known duration, or without workers, there is
// no estimate; actions without one count as nothing.
func EstimateDuration(plan loom.Plan, workers int, typical func(service string, action loom.TaskAction, node loom.NodeID) (time.Duration, bool)) (time.Duration, bool) {
	if workers < 1 {
		return 0, false
	}
	known := false
	var work, longest time.Duration
	end := plan.EndVertex()
	// reach is the longest time until a vertex may begin. Tasks are numbered by
	// level, so each is met after all it waits for; a gate hands its time on once,
	// when the last task before it has been met.
	edges := make([]edge, len(plan.Edges))
	open := make([]int, end+1)
	for i, e := range plan.Edges {
		edges[i] = edge{int32(e.From), int32(e.To)}
		open[e.To]++
	}
	after := adjacency(end+1, edges)
	reach := make([]time.Duration, end+1)
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		d, ok := typical(t.Service, t.Action, t.Node)
		known = known || ok
		work += d
		done := reach[t.Number] + d
		for _, v := range after.of(int32(t.Number)) {
			reach[v] = max(reach[v], done)
			if open[v]--; int(v) <= len(plan.Tasks) || open[v] > 0 {
				continue
			}
			for _, w := range after.of(v) {
				reach[w] = max(reach[w], reach[v])
			}
		}
		longest = max(longest, done)
	}
	return max(longest, work/time.Duration(workers)), known
}
