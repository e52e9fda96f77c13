package clusters

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"loom/app/loom"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// graphQuery is what the options of the graph say: group is "" for what suits the
// size of the plan, "on" or "off"; by "" (action), "service" or "node".
type graphQuery struct {
	taskQuery
	Group, By string
}

func readGraphQuery(q url.Values) graphQuery {
	return graphQuery{readTaskQuery(q), q.Get("group"), q.Get("by")}
}

func (g graphQuery) url(base string) string {
	return g.taskQuery.url(base, "group", g.Group, "by", g.By)
}

// options are what the drawing is to show.
func (g graphQuery) options(tasks planTasks) draw.Options {
	o := draw.Options{Only: g.only(tasks)}
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
	return o
}

// tasksIn leads to the table of the tasks of a group.
func (g graphQuery) tasksIn(op loom.OperationRef, of draw.Group) string {
	q := g.taskQuery
	q.stage = strconv.Itoa(of.Level)
	if of.Action != "" {
		q.action = string(of.Action)
	}
	if of.Service != "" {
		q.service = of.Service
	}
	if of.Node != "" {
		q.node = string(of.Node)
	}
	return q.url(route.OperationTasks(op))
}

// operationGraph is the plan as a picture.
func (s *Server) operationGraph(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, plan, tasks, err := s.operationPlan(r, actor)
	if err != nil {
		return err
	}
	q := readGraphQuery(r.URL.Query())
	m := clusterview.GraphModel{SVG: q.url(route.OperationGraphSVG(op.Ref))}
	var grouped bool
	m.Pictures, grouped, m.Note = pictures(plan, q.options(tasks), func(d draw.Drawing) ui.DAGModel { return operationDAG(op, plan, tasks, d, q) })
	m.Options = graphOptions(op.Ref, q, grouped)
	if m.Stages, err = s.stageList(r.Context(), actor, op, tasks, q.taskQuery); err != nil {
		return err
	}
	return s.showOperation(w, r, actor, op, "graph", clusterview.OperationView{Graph: &m})
}

func graphOptions(ref loom.OperationRef, q graphQuery, grouped bool) []clusterview.Choices {
	box := func(label, group, by string) ui.Tab {
		return ui.Tab{Label: label, Href: graphQuery{q.taskQuery, group, by}.url(route.OperationGraph(ref)), Current: grouped == (group == "on") && (!grouped || q.By == by)}
	}
	return []clusterview.Choices{{Label: "Boxes", Options: []ui.Tab{box("Tasks", "off", ""), box("By action", "on", ""), box("By service", "on", "service"), box("By node", "on", "node")}}}
}

func operationDAG(op loom.Operation, plan loom.Plan, tasks planTasks, d draw.Drawing, q graphQuery) ui.DAGModel {
	p := op.Progress()
	return graphModel(plan, d, graphLabels{
		title:   fmt.Sprintf("Plan of %s: %d of %d tasks complete", op.Action.Verb(), p.Done, p.Total),
		host:    func(t loom.PlanTask) string { return tasks.task(t.Number).NodeHostname },
		node:    func(b draw.Box) string { return ui.NodeNumber(tasks.task(b.Tasks[0]).NodeHostname) },
		href:    func(numbers []int) string { return route.Task(tasks.task(numbers[0]).Ref) },
		state:   func(n int) ui.State { return tasks.state(n) },
		tasksIn: func(b draw.Box) string { return q.tasksIn(op.Ref, b.Of) },
	})
}

// operationGraphSVG is the same picture as a file.
func (s *Server) operationGraphSVG(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, plan, tasks, err := s.operationPlan(r, actor)
	if err != nil {
		return err
	}
	q := readGraphQuery(r.URL.Query())
	return sendSVG(w, "plan-"+op.Ref.String(), operationDAG(op, plan, tasks, draw.Draw(plan, q.options(tasks)), q))
}
