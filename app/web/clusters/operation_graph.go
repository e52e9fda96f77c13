package clusters

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// graphQuery is what the options of the graph say: group is "" for what suits the
// size of the plan, "on" or "off"; by "" (action), "service" or "node"; only "" or
// "failed"; hide "complete" or ""; size "" or "fit"; open lists expanded groups.
type graphQuery struct {
	Group, By, Only, Hide, Size string
	Open                        []string
}

func readGraphQuery(q url.Values) graphQuery {
	g := graphQuery{Group: q.Get("group"), By: q.Get("by"), Only: q.Get("only"), Hide: q.Get("hide"), Size: q.Get("size")}
	if text := q.Get("open"); text != "" {
		g.Open = strings.Split(text, ",")
	}
	return g
}

func (g graphQuery) url(base string) string {
	return route.Query(base, "group", g.Group, "by", g.By, "only", g.Only, "hide", g.Hide, "size", g.Size, "open", strings.Join(g.Open, ","))
}

// options are what the drawing is to show.
func (g graphQuery) options(plan loom.Plan, tasks planTasks) draw.Options {
	o := draw.Options{Expanded: map[draw.Group]bool{}}
	switch g.By {
	case "service":
		o.By = draw.ByService
	case "node":
		o.By = draw.ByNode
	}
	switch g.Group {
	case "on":
		o.Grouping = draw.Always
	case "off":
		o.Grouping = draw.Never
	}
	if len(g.Open) > 0 {
		for i := range plan.Tasks {
			if key := draw.GroupOf(&plan.Tasks[i], o.By); !o.Expanded[key] && slices.Contains(g.Open, key.ID()) {
				o.Expanded[key] = true
			}
		}
	}
	switch {
	case g.Only == "failed":
		causes := failedAndCauses(plan, tasks)
		o.Only = func(n int) bool { return causes[n] }
	case g.Hide == "complete":
		o.Only = func(n int) bool { return tasks.status(n) != loom.TaskComplete && tasks.status(n) != loom.TaskSkipped }
	}
	return o
}

// failedAndCauses are the tasks that failed, or are tried again, and all that came before them.
func failedAndCauses(plan loom.Plan, tasks planTasks) map[int]bool {
	before := map[int][]int{}
	for _, e := range plan.Edges {
		before[e.To] = append(before[e.To], e.From)
	}
	seen := map[int]bool{}
	var queue []int
	for i, status := range tasks.statuses {
		if status == loom.TaskFailed || tasks.again[i+1] {
			queue = append(queue, i+1)
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
		DAG: operationDAG(op, plan, tasks, d, q), SVG: q.url(route.OperationGraphSVG(op.Ref)), Nothing: len(d.Boxes) == 0, Options: graphOptions(op.Ref, q, d.Grouped),
	}
	if d.Capped {
		m.Note = fmt.Sprintf("A picture has at most %d boxes, so the tasks are grouped by action. Hide what is complete, or use the table.", draw.MostBoxes)
	}
	var listed []loom.Task
	if op.Progress().Total <= draw.GroupAbove {
		listed = tasks.all()
	}
	if m.Stages, err = s.stageList(r.Context(), actor, op, listed); err != nil {
		return err
	}
	return s.showOperation(w, r, actor, op, "graph", clusterview.OperationView{Graph: &m})
}

func graphOptions(ref loom.OperationRef, q graphQuery, grouped bool) []clusterview.Choices {
	base := route.OperationGraph(ref)
	option := func(label string, current bool, change func(to *graphQuery)) ui.Tab {
		to := q
		change(&to)
		return ui.Tab{Label: label, Href: to.url(base), Current: current}
	}
	box := func(label, group, by string) ui.Tab {
		current := grouped == (group == "on") && (!grouped || q.By == by)
		return option(label, current, func(to *graphQuery) { to.Group, to.By, to.Open = group, by, nil })
	}
	show := clusterview.Choices{Label: "Show", Options: []ui.Tab{
		option("All", q.Only == "" && q.Hide == "", func(to *graphQuery) { to.Only, to.Hide = "", "" }),
		option("Hide complete", q.Hide != "", func(to *graphQuery) { to.Only, to.Hide = "", "complete" }),
		option("Failed and their causes", q.Only != "", func(to *graphQuery) { to.Only, to.Hide = "failed", "" }),
	}}
	boxes := clusterview.Choices{Label: "Boxes", Options: []ui.Tab{box("Tasks", "off", ""), box("By action", "on", ""), box("By service", "on", "service"), box("By node", "on", "node")}}
	if len(q.Open) > 0 {
		boxes.Options = append(boxes.Options, option("Close groups", false, func(to *graphQuery) { to.Open = nil }))
	}
	size := clusterview.Choices{Label: "Size", Options: []ui.Tab{
		option("100 %", q.Size != "fit", func(to *graphQuery) { to.Size = "" }), option("Fit width", q.Size == "fit", func(to *graphQuery) { to.Size = "fit" })}}
	return []clusterview.Choices{show, boxes, size}
}

func operationDAG(op loom.Operation, plan loom.Plan, tasks planTasks, d draw.Drawing, q graphQuery) ui.DAGModel {
	p := op.Progress()
	m := graphModel(plan, d, graphLabels{
		title: fmt.Sprintf("Plan of %s: %d of %d tasks complete", op.Action.Verb(), p.Done, p.Total),
		host:  func(t loom.PlanTask) string { return tasks.task(t.Number).NodeHostname },
		node:  func(b draw.Box) string { return page.ShortHost(tasks.task(b.Tasks[0]).NodeHostname) },
		href:  func(numbers []int) string { return route.Task(tasks.task(numbers[0]).Ref) },
		state: func(n int) ui.State { return tasks.state(n) },
		expand: func(b draw.Box) string {
			to := q
			to.Open = append(append([]string{}, q.Open...), b.Of.ID())
			return to.url(route.OperationGraph(op.Ref))
		},
	})
	m.Fit = q.Size == "fit"
	return m
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
