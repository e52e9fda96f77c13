package lab

import (
	"fmt"
	"os"
	"testing"
	"time"

	"loom/app/loom"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	// From proc(5): the name may hold brackets and spaces; 14 and 15 are the process's
	// own time, 16 and 17 that of its children, in hundredths of a second.
	got, err := parseStat("42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 1 0 99 0 0")
	if want := (procStat{parent: 7, own: 2 * time.Second, reaped: 300 * time.Millisecond}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "42 (x) S", "42 (x) S a b c d e f g h i j k l m n o p"} {
		if got, err := parseStat(bad); err == nil {
			t.Errorf("%q gave %+v", bad, got)
		}
	}
	own, err := readStat(os.Getpid())
	if err != nil || own.parent != os.Getppid() {
		t.Errorf("this process: %+v, %v, want the parent %d", own, err, os.Getppid())
	}
}

func TestBenchGraphs(t *testing.T) {
	t.Parallel()
	nodes := make([]loom.NodeID, 20)
	for i := range nodes {
		nodes[i] = loom.NodeID(fmt.Sprint("n", i))
	}
	for _, c := range []struct {
		name                 string
		plan                 loom.Plan
		tasks, gates, levels int
	}{
		{"layers", layeredPlan(nodes, 10), 200, 4, 10},
		{"layers of one", layeredPlan(nodes[:1], 10), 10, 4, 10},
		{"chains", chainsPlan(nodes, 50), 1000, 1, 50},
	} {
		if len(c.plan.Tasks) != c.tasks || len(c.plan.Gates) != c.gates || c.plan.Levels() != c.levels {
			t.Errorf("%s: %d tasks, %d gates, %d levels", c.name, len(c.plan.Tasks), len(c.plan.Gates), c.plan.Levels())
		}
		before, behind := map[int]int{}, map[int]int{}
		seen := map[loom.Edge]bool{}
		for _, e := range c.plan.Edges {
			if seen[e] {
				t.Errorf("%s: the edge %v twice", c.name, e)
			}
			seen[e] = true
			before[e.To]++
			behind[e.From]++
			if e.To <= len(c.plan.Tasks) && e.From <= len(c.plan.Tasks) && c.plan.Tasks[e.From-1].Level != c.plan.Tasks[e.To-1].Level-1 {
				t.Errorf("%s: the edge %v skips a level", c.name, e)
			}
		}
		for i, task := range c.plan.Tasks {
			if task.Number != i+1 || (before[i+1] == 0) != (task.Level == 1) || behind[i+1] == 0 {
				t.Errorf("%s: task %+v has %d before it and %d behind it", c.name, task, before[i+1], behind[i+1])
			}
		}
	}
}
