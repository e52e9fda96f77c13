package lab

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"loom/app/loom"
	"loom/planner"
)

// benchPlanner prints what plans cost: the creation of clusters with 14 services
// on every node, and one machine more for a large one.
func (e *environment) benchPlanner(context.Context) error {
	defined := plannerServices()
	fmt.Fprintf(e.Out, "\nPlanner: 14 services on every node\n\n  %-28s %9s %9s %10s %12s\n", "", "tasks", "edges", "took", "allocated")
	for _, n := range []int{50, 500, 10_000} {
		nodes := plannerNodes(n, defined)
		if err := e.timePlan(fmt.Sprintf("create %d nodes", n), func() (loom.Plan, error) {
			return planner.Make(loom.ClusterCreate, nodes, defined, planner.Scope{})
		}); err != nil {
			return err
		}
	}
	const large = 5_000
	nodes := plannerNodes(large+1, defined)
	return e.timePlan(fmt.Sprintf("expand %d nodes by one", large), func() (loom.Plan, error) {
		return planner.MakeChange(planner.Change{
			Action: loom.ClusterExpand,
			Before: planner.State{Nodes: nodes[:large], Services: defined},
			After:  planner.State{Nodes: nodes, Services: defined},
		})
	})
}

func (e *environment) timePlan(name string, plan func() (loom.Plan, error)) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	p, err := plan()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	fmt.Fprintf(e.Out, "  %-28s %9d %9d %7.1f ms %9.1f MB\n", name, len(p.Tasks), len(p.Edges), milliseconds(took), float64(after.TotalAlloc-before.TotalAlloc)/1e6)
	return nil
}

// plannerServices are 14 services of which each needs the three before it.
func plannerServices() map[string]loom.Service {
	defined := map[string]loom.Service{}
	var names []string
	for i := range 14 {
		s := loom.Service{Base: loom.Base{Name: fmt.Sprintf("s%02d", i)}}
		s.Provisioner.Actions = map[loom.TaskAction]loom.ServiceAction{}
		for _, action := range []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionStart} {
			s.Provisioner.Actions[action] = loom.ServiceAction{Type: "shell"}
		}
		if i > 0 {
			s.Dependencies.Install.Requires = names[max(0, i-3):i]
			s.Dependencies.Runtime.Requires = names[:1]
		}
		names, defined[s.Name] = append(names, s.Name), s
	}
	return defined
}

func plannerNodes(n int, defined map[string]loom.Service) []loom.Node {
	var names []string
	for i := range len(defined) {
		names = append(names, fmt.Sprintf("s%02d", i))
	}
	nodes := make([]loom.Node, n)
	for i := range nodes {
		nodes[i] = loom.Node{ID: loom.NodeID(fmt.Sprintf("n%05d", i)), Number: 1000 + i, Services: names}
	}
	return nodes
}
