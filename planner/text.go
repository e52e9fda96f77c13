package planner

import (
	"fmt"
	"strings"

	"loom/app/loom"
)

// TextBy writes a plan for people, one line per task: number, level, rank, "*" on
// the critical path, node, what is done, what it waits for. Nodes go by the names
// that the caller knows them by.
func TextBy(plan loom.Plan, node func(loom.PlanTask) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d tasks, %d levels, %d gates, %d edges\n",
		plan.Action, len(plan.Tasks), plan.Levels(), len(plan.Gates), len(plan.Edges))
	orders := Dependencies(plan)
	for i, t := range plan.Tasks {
		critical := " "
		if t.Critical {
			critical = "*"
		}
		fmt.Fprintf(&b, "%4d  level %d  rank %d %s node %s  %s", t.Number, t.Level, t.Rank, critical, node(t), label(t.Service, t.Action))
		var waits []string
		for _, n := range orders[i].DependsOn {
			waits = append(waits, fmt.Sprint(n))
		}
		for _, g := range orders[i].Behind {
			waits = append(waits, fmt.Sprintf("all %d %s", g.Count, label(g.Service, g.Action)))
		}
		if len(waits) > 0 {
			fmt.Fprintf(&b, "  after %s", strings.Join(waits, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// DOTBy writes a plan in the language of Graphviz: tasks are boxes, gates points,
// the critical path is bold. Nodes go by the names that the caller knows them by.
func DOTBy(plan loom.Plan, node func(loom.PlanTask) string) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n\trankdir=LR;\n\tnode [shape=box];\n")
	for _, t := range plan.Tasks {
		style := ""
		if t.Critical {
			style = ", penwidth=2"
		}
		fmt.Fprintf(&b, "\tv%d [label=%q%s];\n", t.Number, fmt.Sprintf("%d %s\nnode %s", t.Number, label(t.Service, t.Action), node(t)), style)
	}
	for i, g := range plan.Gates {
		name := "end"
		if g.Action != "" {
			name = "all " + label(g.Service, g.Action)
		}
		fmt.Fprintf(&b, "\tv%d [shape=point, xlabel=%q];\n", len(plan.Tasks)+1+i, name)
	}
	for _, e := range plan.Edges {
		fmt.Fprintf(&b, "\tv%d -> v%d;\n", e.From, e.To)
	}
	b.WriteString("}\n")
	return b.String()
}

func label(service string, action loom.TaskAction) string {
	if service == "" {
		return string(action)
	}
	return string(action) + " " + service
}
