package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// graphQuery is what the options of the graph say: group is "", "on" or "off",
// only "" or "failed", hide "complete" or "", open lists expanded groups.
type graphQuery struct {
	Group, Only, Hide string
	Open              []string
}

func readGraphQuery(q url.Values) graphQuery {
	g := graphQuery{Group: q.Get("group"), Only: q.Get("only"), Hide: q.Get("hide")}
	if text := q.Get("open"); text != "" {
		g.Open = strings.Split(text, ",")
	}
	return g
}

func (g graphQuery) url(base string) string {
	return route.Query(base, "group", g.Group, "only", g.Only, "hide", g.Hide, "open", strings.Join(g.Open, ","))
}

// options are what the drawing is to show.
func (g graphQuery) options(plan loom.Plan, tasks map[int]loom.Task) draw.Options {
	o := draw.Options{Expanded: map[draw.Group]bool{}}
	switch g.Group {
	case "on":
		o.Grouping = draw.Always
	case "off":
		o.Grouping = draw.Never
	}
	for _, text := range g.Open {
		level, action, _ := strings.Cut(text, "-")
		if n, err := strconv.Atoi(level); err == nil {
			o.Expanded[draw.Group{Level: n, Action: loom.TaskAction(action)}] = true
		}
	}
	switch {
	case g.Only == "failed":
		causes := failedAndCauses(plan, tasks)
		o.Only = func(n int) bool { return causes[n] }
	case g.Hide == "complete":
		o.Only = func(n int) bool { return tasks[n].Status != loom.TaskComplete && tasks[n].Status != loom.TaskSkipped }
	}
	return o
}

// failedAndCauses are the failed tasks and all that came before them.
func failedAndCauses(plan loom.Plan, tasks map[int]loom.Task) map[int]bool {
	before := map[int][]int{}
	for _, e := range plan.Edges {
		before[e.To] = append(before[e.To], e.From)
	}
	seen := map[int]bool{}
	var queue []int
	for number, t := range tasks {
		if t.Status == loom.TaskFailed {
			queue = append(queue, number)
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		queue = append(queue, before[at]...)
	}
	return seen
}

// operationGraph is the plan as a picture.
func (s *Server) operationGraph(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, plan, tasks, err := s.operationPlan(r, actor)
	if err != nil {
		return err
	}
	q := readGraphQuery(r.URL.Query())
	d := draw.Draw(plan, q.options(plan, tasks))
	m := clusterview.GraphModel{
		DAG: operationDAG(op, plan, tasks, d, q), SVG: q.url(route.OperationGraphSVG(op.Ref)), Stages: stages(plan, tasks),
		Nothing: len(d.Boxes) == 0, Options: graphOptions(op.Ref, q, d.Grouped),
	}
	return s.showOperation(w, r, actor, op, "graph", clusterview.OperationView{Graph: &m})
}

func graphOptions(ref loom.OperationRef, q graphQuery, grouped bool) []ui.Tab {
	base := route.OperationGraph(ref)
	option := func(label string, to graphQuery, current bool) ui.Tab {
		return ui.Tab{Label: label, Href: to.url(base), Current: current}
	}
	all := graphQuery{Group: q.Group}
	hide, only := all, all
	hide.Hide, only.Only = "complete", "failed"
	group := q
	group.Open = nil
	if group.Group = "on"; grouped {
		group.Group = "off"
	}
	return []ui.Tab{
		option("All tasks", all, q.Only == "" && q.Hide == ""), option("Hide complete", hide, q.Hide != ""),
		option("Failed and their causes", only, q.Only != ""), option("Grouped by stage and action", group, grouped),
	}
}

func operationDAG(op loom.Operation, plan loom.Plan, tasks map[int]loom.Task, d draw.Drawing, q graphQuery) ui.DAGModel {
	p := op.Progress()
	return graphModel(plan, d, graphLabels{
		title: fmt.Sprintf("Plan of %s: %d of %d tasks complete", op.Action.Verb(), p.Done, p.Total),
		host:  func(t loom.PlanTask) string { return tasks[t.Number].NodeHostname },
		href:  func(numbers []int) string { return route.Task(tasks[numbers[0]].Ref) },
		state: func(n int) ui.State { return ui.TaskState(tasks[n].Status) },
		expand: func(b draw.Box) string {
			to := q
			to.Open = append(append([]string{}, q.Open...), fmt.Sprintf("%d-%s", b.Level, b.Action))
			return to.url(route.OperationGraph(op.Ref))
		},
	})
}

// operationGraphSVG is the same picture as a file.
func (s *Server) operationGraphSVG(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, plan, tasks, err := s.operationPlan(r, actor)
	if err != nil {
		return err
	}
	q := readGraphQuery(r.URL.Query())
	return sendSVG(w, "plan-"+op.Ref.String(), operationDAG(op, plan, tasks, draw.Draw(plan, q.options(plan, tasks)), q))
}
