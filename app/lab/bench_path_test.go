package lab

import (
	"slices"
	"testing"
	"time"

	"loom/app/loom"
)

// TestCriticalPath follows a plan of two nodes: each is made, then both are
// joined by a gate before the first one goes on.
//
//	1 create a   2 create b   gate 4 behind both   3 start a   gate 5 the end
func TestCriticalPath(t *testing.T) {
	t.Parallel()
	plan := loom.Plan{
		Tasks: []loom.PlanTask{
			{Number: 1, Node: "a", Action: loom.ActionCreate}, {Number: 2, Node: "b", Action: loom.ActionCreate}, {Number: 3, Node: "a", Action: loom.ActionStart},
		},
		Gates: []loom.Gate{{Action: loom.ActionCreate}, {}},
		Edges: []loom.Edge{{From: 1, To: 4}, {From: 2, To: 4}, {From: 3, To: 5}, {From: 4, To: 3}},
	}
	zero := time.Unix(0, 0)
	at := func(from, to int) vertexTimes {
		return vertexTimes{zero.Add(time.Duration(from) * time.Millisecond), zero.Add(time.Duration(to) * time.Millisecond)}
	}
	for _, c := range []struct {
		name  string
		times map[int]vertexTimes
		path  []int
	}{
		{"behind the other node", map[int]vertexTimes{1: at(0, 50), 2: at(0, 80), 3: at(85, 90)}, []int{2, 3}},
		{"behind its own node", map[int]vertexTimes{1: at(0, 50), 2: at(0, 30), 3: at(57, 90)}, []int{1, 3}},
	} {
		var path []int
		for _, task := range criticalPath(plan, c.times) {
			path = append(path, task.Number)
		}
		if !slices.Equal(path, c.path) {
			t.Errorf("%s: path %v, want %v", c.name, path, c.path)
		}
	}
	if path := criticalPath(loom.Plan{Gates: []loom.Gate{{}}}, nil); path != nil {
		t.Errorf("an empty plan has the path %v", path)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	if got := percentile(all, 50); got != 0 {
		t.Errorf("of none: %v", got)
	}
	for i := range 100 {
		all = append(all, time.Duration(i))
	}
	if p50, p99, p100 := percentile(all, 50), percentile(all, 99), percentile(all, 100); p50 != 50 || p99 != 99 || p100 != 99 {
		t.Errorf("p50 %d p99 %d p100 %d", p50, p99, p100)
	}
}
