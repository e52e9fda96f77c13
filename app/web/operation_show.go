package web

import (
	"context"
	"net/http"
	"strconv"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// viewCookie remembers which view of plans a browser shows first.
const viewCookie = "loom-plan-view"

// operationShow opens the plan in the view that was looked at last.
func (s *Server) operationShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if c, err := r.Cookie(viewCookie); err == nil {
		switch c.Value {
		case "stages":
			return s.operationStages(w, r, actor)
		case "table":
			return s.operationTable(w, r, actor)
		}
	}
	return s.operationGraph(w, r, actor)
}

// operationPanel is the head of the page, fetched again while it runs.
func (s *Server) operationPanel(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathOperation(r)
	if err != nil {
		return err
	}
	op, err := s.Clusters.Operation(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	v, err := s.Clusters.Cluster(r.Context(), actor, ref.Cluster)
	if err != nil {
		return err
	}
	m, err := s.operationHead(r.Context(), actor, op)
	if err != nil {
		return err
	}
	m.Actions = operationActions(v, op)
	return s.fragment(w, r, http.StatusOK, clusterview.OperationHeadPart(m))
}

func (s *Server) operationHead(ctx context.Context, actor loom.Actor, op loom.Operation) (clusterview.OperationHead, error) {
	m := clusterview.OperationHead{
		Ref: op.Ref, Title: capital(op.Action.Verb()) + " · operation " + strconv.Itoa(op.Ref.Number),
		State: ui.OperationState(op.Status, op.Aborted), Message: op.Message, Waiting: op.Waiting,
	}
	p := op.Progress()
	m.Segments = ui.SegmentsModel{ID: "segments", Complete: p.Done, Running: op.Tasks[loom.TaskRunning], Failed: op.Tasks[loom.TaskFailed]}
	if op.Tasks[loom.TaskDropped] > 0 {
		m.Segments.RestWord = "dropped"
	}
	m.Segments.Rest = p.Total - m.Segments.Complete - m.Segments.Running - m.Segments.Failed
	m.Facts = []ui.Def{
		{Term: "By", Text: string(op.RequestedBy)},
		{Term: "Started", Value: ui.Time(op.Started, s.now())},
		{Term: "Duration", Text: s.elapsed(op.Started, op.Ended)},
		{Term: "Tasks", Text: strconv.Itoa(p.Done) + " of " + strconv.Itoa(p.Total)},
	}
	tasks, err := s.Clusters.Tasks(ctx, actor, op.Ref, lifecycle.TaskFilter{Statuses: []loom.TaskStatus{loom.TaskRunning, loom.TaskFailed}})
	if err != nil {
		return m, err
	}
	m.Running, m.Failed = s.taskLinks(tasks, loom.TaskRunning), s.taskLinks(tasks, loom.TaskFailed)
	if len(m.Failed) > 0 && m.Message == "" {
		m.Message = ui.Count(op.Tasks[loom.TaskFailed], "task failed.", "tasks failed.")
	}
	return m, nil
}

// viewWords are the views of a plan; the word is the last part of the path.
var viewWords = []struct{ word, label string }{{"graph", "Graph"}, {"stages", "Stages"}, {"table", "Table"}}

func viewURL(ref loom.OperationRef, word string) string {
	switch word {
	case "stages":
		return route.OperationStages(ref)
	case "table":
		return route.OperationTasks(ref)
	}
	return route.OperationGraph(ref)
}

// showOperation answers with a view: its part alone when htmx asks for it, else
// the whole page, and remembers the choice.
func (s *Server) showOperation(w http.ResponseWriter, r *http.Request, actor loom.Actor, op loom.Operation, word string, m clusterview.OperationView) error {
	m.Ref = op.Ref
	m.Live = viewURL(op.Ref, word)
	if r.URL.RawQuery != "" {
		m.Live += "?" + r.URL.RawQuery
	}
	if wants(r, clusterview.OperationViewID) {
		return s.fragment(w, r, http.StatusOK, clusterview.OperationLivePart(m))
	}
	for _, v := range viewWords {
		m.Views = append(m.Views, ui.Tab{Label: v.label, Href: viewURL(op.Ref, v.word), Current: v.word == word})
	}
	head, err := s.operationHead(r.Context(), actor, op)
	if err != nil {
		return err
	}
	v, err := s.Clusters.Cluster(r.Context(), actor, op.Ref.Cluster)
	if err != nil {
		return err
	}
	head.Actions = operationActions(v, op)
	page := s.operationFrame(r, v, op)
	http.SetCookie(w, &http.Cookie{Name: viewCookie, Value: word, Path: route.Clusters(), SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: r.TLS != nil})
	return s.render(w, r, actor, http.StatusOK, page, clusterview.OperationPage(clusterview.OperationModel{Head: head, View: m}))
}

func (s *Server) operationFrame(r *http.Request, v lifecycle.ClusterView, op loom.Operation, more ...ui.Crumb) layout.Model {
	crumbs := []ui.Crumb{{Label: v.Name, Href: route.Cluster(v.ID)}, {Label: "Operation " + strconv.Itoa(op.Ref.Number), Href: route.Operation(op.Ref)}}
	m := clusterPage(capital(op.Action.Verb())+" "+v.Name, "Operations", append(crumbs, more...)...)
	if !op.Status.Final() {
		m.Topics = []string{route.TopicOperation(op.Ref)}
		p := op.Progress()
		m.TitlePrefix = "(" + strconv.Itoa(p.Done) + "/" + strconv.Itoa(p.Total) + ")"
	}
	reloading(r, &m, !op.Status.Final())
	return m
}

// operationStages is the plan as nested lists.
func (s *Server) operationStages(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, plan, tasks, err := s.operationPlan(r, actor)
	if err != nil {
		return err
	}
	return s.showOperation(w, r, actor, op, "stages", clusterview.OperationView{Stages: stages(plan, tasks)})
}

func (s *Server) operationPlan(r *http.Request, actor loom.Actor) (loom.Operation, loom.Plan, map[int]loom.Task, error) {
	ref, err := pathOperation(r)
	if err != nil {
		return loom.Operation{}, loom.Plan{}, nil, err
	}
	op, err := s.Clusters.Operation(r.Context(), actor, ref)
	if err != nil {
		return op, loom.Plan{}, nil, err
	}
	plan, tasks, err := s.Clusters.PlanOf(r.Context(), actor, ref)
	return op, plan, tasks, err
}

func stages(plan loom.Plan, tasks map[int]loom.Task) []clusterview.Stage {
	out := make([]clusterview.Stage, plan.Levels())
	for i := range out {
		out[i].Number = i + 1
	}
	for _, p := range plan.Tasks {
		t := tasks[p.Number]
		out[p.Level-1].Tasks = append(out[p.Level-1].Tasks, clusterview.StageTask{
			Number: strconv.Itoa(p.Number), Action: string(p.Action), Service: p.Service, Host: shortHost(t.NodeHostname),
			State: ui.TaskState(t.Status), Href: route.Task(t.Ref), Critical: p.Critical, Undo: p.Undo,
		})
	}
	return out
}
