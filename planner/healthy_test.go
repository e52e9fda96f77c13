package planner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestMinHealthyHolds runs rolls in many orders: whatever the order, no service
// has fewer nodes up than the minimum.
func TestMinHealthyHolds(t *testing.T) {
	t.Parallel()
	accepted, refused := 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		change := randomChange(r)
		change.MinHealthy = nil
		if minimum := r.IntN(3); r.IntN(2) == 0 {
			change.MinHealthy = &minimum
		}
		// Only rolls are bounded.
		nodes := map[loom.NodeID]string{}
		for _, n := range change.After.Nodes {
			nodes[n.ID] = n.HardwareType
		}
		change.After.Nodes = slices.Clone(change.Before.Nodes)
		for i := range change.After.Nodes {
			if h := nodes[change.After.Nodes[i].ID]; h != "" {
				change.After.Nodes[i].HardwareType = h
			}
		}
		plan, err := MakeChange(change)
		if err != nil {
			if !errors.Is(err, loom.Invalid) || !strings.Contains(err.Error(), "up; at least") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			refused++
			continue
		}
		accepted++
		for range 5 {
			simulate(t, fmt.Sprintf("seed %d", seed), change, plan, r)
		}
	}
	if accepted < 200 || refused < 200 {
		t.Errorf("%d changes are accepted and %d refused: too few to tell", accepted, refused)
	}
}

// simulate starts and ends tasks in a random order that the plan allows, one per
// node at a time, and counts the nodes of each service that are up.
func simulate(t *testing.T, what string, change Change, plan loom.Plan, r *rand.Rand) {
	t.Helper()
	edges := taskEdges(plan)
	open := make([]int, len(plan.Tasks)+1)
	after := make([][]int, len(plan.Tasks)+1)
	for _, e := range edges {
		open[e[1]]++
		after[e[0]] = append(after[e[0]], e[1])
	}
	up, total := map[string]map[loom.NodeID]bool{}, map[string]int{}
	rolled := map[string]bool{}
	for _, n := range change.Before.Nodes {
		for _, s := range n.Services {
			if up[s] == nil {
				up[s] = map[loom.NodeID]bool{}
			}
			up[s][n.ID] = true
			total[s]++
		}
	}
	down := func(task loom.PlanTask, service string) {
		if d := change.Before.Services[service]; up[service][task.Node] && (d.Defines(loom.ActionStart) || d.Defines(loom.ActionStop)) {
			delete(up[service], task.Node)
			rolled[service] = true
		}
	}
	minimum := func(s string) int {
		if change.MinHealthy != nil {
			return *change.MinHealthy
		}
		least := max(total[s]-max(change.Batch, 1), 0)
		if total[s] >= 2 {
			least = max(least, 1)
		}
		return least
	}
	// serves says with which action a service is up again: its START, or what comes
	// last where it has none.
	serves := func(service string, replaced bool) loom.TaskAction {
		d := change.After.Services[service]
		for _, a := range []loom.TaskAction{loom.ActionStart, loom.ActionInitialize, loom.ActionConfigure, loom.ActionInstall} {
			if d.Defines(a) && (a != loom.ActionInitialize || replaced) {
				return a
			}
		}
		return loom.ActionStop
	}
	replaced := map[loom.NodeID]bool{}
	for _, task := range plan.Tasks {
		replaced[task.Node] = replaced[task.Node] || task.Action == loom.ActionCreate
	}
	var ready, running []int
	for v := 1; v <= len(plan.Tasks); v++ {
		if open[v] == 0 {
			ready = append(ready, v)
		}
	}
	busy := map[loom.NodeID]bool{}
	for left := len(plan.Tasks); left > 0; {
		startable := slices.DeleteFunc(slices.Clone(ready), func(v int) bool { return busy[plan.Tasks[v-1].Node] })
		if len(startable) > 0 && (len(running) == 0 || r.IntN(2) == 0) {
			v := startable[r.IntN(len(startable))]
			ready = slices.DeleteFunc(ready, func(w int) bool { return w == v })
			running = append(running, v)
			task := plan.Tasks[v-1]
			busy[task.Node] = true
			switch task.Action {
			case loom.ActionStop, loom.ActionInstall:
				down(task, task.Service)
			case loom.ActionDelete:
				for s := range up {
					down(task, s)
				}
			}
		} else {
			i := r.IntN(len(running))
			v := running[i]
			running = slices.Delete(running, i, i+1)
			task := plan.Tasks[v-1]
			delete(busy, task.Node)
			left--
			if task.Service != "" && task.Action == serves(task.Service, replaced[task.Node]) && up[task.Service] != nil {
				up[task.Service][task.Node] = true
			}
			if task.Action == loom.ActionBootstrap {
				// What has no action at all is there with the machine.
				for _, s := range node(change.After, task.Node).Services {
					if serves(s, true) == loom.ActionStop && up[s] != nil {
						up[s][task.Node] = true
					}
				}
			}
			for _, w := range after[v] {
				if open[w]--; open[w] == 0 {
					ready = append(ready, w)
				}
			}
		}
		for s := range rolled {
			if len(up[s]) < minimum(s) {
				t.Fatalf("%s: “%s” has %d of %d nodes up, the minimum is %d\n%s", what, s, len(up[s]), total[s], minimum(s), Text(plan))
			}
		}
	}
}
