package clusters

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"loom/app/cache"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// estimatesKept is how long what is usual is remembered, estimatesMost for how many
// tenants and types of provider.
const (
	estimatesKept = time.Minute
	estimatesMost = 500
)

// left says how long an operation that runs may still take, "" where that is not known.
func (s *Server) left(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation) (string, error) {
	if op.Status != loom.OperationRunning || op.Started.IsZero() {
		return "", nil
	}
	key := [2]string{string(actor.Tenant), v.Provider.Type}
	typical, err := s.typical.Get(ctx, key, s.Now, func(ctx context.Context) (clusters.Typical, error) {
		return s.Clusters.Typical(ctx, actor, v.Provider.Type)
	})
	if err != nil {
		return "", err
	}
	groups, err := s.Clusters.TaskGroups(ctx, actor, op.Ref)
	if err != nil {
		return "", err
	}
	tries, err := nextTries(ctx, s.Clusters, actor, op)
	if err != nil {
		return "", err
	}
	pause := time.Duration(0)
	if len(tries) > 0 {
		pause = tries[len(tries)-1].At.Sub(s.Now())
	}
	d, known := typical.Remaining(groups, s.Now(), pause)
	switch {
	case !known:
		return "", nil
	case d < time.Second:
		return "nearly done", nil
	}
	return "about " + ui.Duration(roughly(d)) + " left", nil
}

// roughly leaves out what an estimate cannot know.
func roughly(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return d.Round(time.Second)
	case d < time.Minute:
		return d.Round(5 * time.Second)
	case d < 10*time.Minute:
		return d.Round(30 * time.Second)
	case d < time.Hour:
		return d.Round(time.Minute)
	}
	return d.Round(10 * time.Minute)
}

// namesKept is of how many large operations the names of nodes are kept.
const namesKept = 100

// nodeNames keeps which nodes large operations are about: to find them all tasks are
// looked at, and they do not change but with the plan. Their host names may be as old as
// those of kept plans.
type nodeNames struct {
	cache.Cache[planKey, []clusters.NodeName]
}

// of gives the nodes of an operation that the actor has just read, by number.
func (n *nodeNames) of(ctx context.Context, uc *clusters.Clusters, actor loom.Actor, op loom.Operation, now func() time.Time) ([]clusters.NodeName, error) {
	key := planKey{op.Row, op.Progress().Total}
	if key.tasks <= draw.GroupAbove {
		return uc.OperationNodes(ctx, actor, op.Ref)
	}
	return n.Get(ctx, key, now, func(ctx context.Context) ([]clusters.NodeName, error) {
		return uc.OperationNodes(ctx, actor, op.Ref)
	})
}

// titleEnds is for how long the titles of pages tell how an operation ended.
const titleEnds = 10 * time.Minute

// titlePrefix is what a title begins with: how far an operation is, "(49/81)", or how
// it ended, "(failed)". It is empty long after the end.
func (s *Server) titlePrefix(op *loom.Operation) string {
	if op == nil {
		return ""
	}
	word := strings.ToLower(ui.OperationState(op.Status, op.Aborted).Word)
	if op.Status.Final() {
		if s.Now().Sub(op.Ended) > titleEnds {
			return ""
		}
		return "(" + word + ")"
	}
	p := op.Progress()
	text := strconv.Itoa(p.Done) + "/" + strconv.Itoa(p.Total)
	if op.Status != loom.OperationRunning {
		text += ", " + word
	}
	return "(" + text + ")"
}

// operationSaid is what those hear of an operation who do not see the page: that it
// began, each quarter, that it paused, and how it ended. Its text changes no oftener.
func (s *Server) operationSaid(op *loom.Operation, name string) string {
	if op == nil || op.Status.Final() && s.Now().Sub(op.Ended) > titleEnds {
		return ""
	}
	what := page.Capital(op.Action.Verb()) + " of " + name
	because := ""
	if op.Message != "" {
		because = " " + op.Message
	}
	switch op.Status {
	case loom.OperationNotSubmitted:
		return what + " waits for a hook."
	case loom.OperationPaused:
		return what + " is paused."
	case loom.OperationFailing:
		if op.Aborted {
			return what + " is being aborted."
		}
		return what + " is failing." + because
	case loom.OperationRollingBack:
		return what + " failed and is rolled back." + because
	case loom.OperationComplete:
		return what + " is complete."
	case loom.OperationFailed:
		return what + " failed." + because
	case loom.OperationAborted:
		return what + " was aborted."
	case loom.OperationRolledBack:
		return what + " was rolled back." + because
	}
	if op.Tasks[loom.TaskFailed] > 0 {
		return what + " continues with tasks that do not depend on a failed one." + because
	}
	p := op.Progress()
	return what + [...]string{" has begun.", ": a quarter is done.", ": half is done.", ": three quarters are done.", ": all but the end is done."}[4*p.Done/max(p.Total, 1)]
}

// clusterSaid is the part of all pages of a cluster that keeps their titles and what is
// said up to date.
func (s *Server) clusterSaid(v clusters.ClusterView) clusterview.SaidModel {
	m := clusterview.SaidModel{ID: v.ID, Said: s.operationSaid(v.Latest, v.Name), Topics: []string{route.TopicCluster(v.ID)}}
	if v.Latest != nil {
		m.Topics = append(m.Topics, route.TopicOperation(v.Latest.Ref))
	}
	return m
}

// clusterSaidPart answers with that part, and the title of the page that asks.
func (s *Server) clusterSaidPart(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := pathCluster(r)
	if err != nil {
		return err
	}
	v, err := s.briefCluster(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, layout.Titled(s.clusterFrame(r, v, ""), clusterview.SaidPart(s.clusterSaid(v))))
}

// viewCookie remembers which view of plans a browser shows first.
const viewCookie = "loom-plan-view"

// operationShow opens the plan in the view that was looked at last.
func (s *Server) operationShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if c, err := r.Cookie(viewCookie); err == nil {
		switch c.Value {
		case "stages":
			return s.operationStages(w, r, actor)
		case "timeline":
			return s.operationTimeline(w, r, actor)
		case "table":
			return s.operationTable(w, r, actor)
		}
	}
	return s.operationGraph(w, r, actor)
}

// operationPanel is the head of the page, fetched again while it runs.
func (s *Server) operationPanel(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, err := s.pathOperation(r, actor)
	if err != nil {
		return err
	}
	v, err := s.briefCluster(r.Context(), actor, op.Ref.Cluster)
	if err != nil {
		return err
	}
	m, err := s.operationHead(r.Context(), actor, v, op)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, layout.Titled(s.operationFrame(r, v, op), clusterview.OperationHeadPart(m)))
}

// briefCluster is a cluster with its latest operation and what can be done, without
// its nodes and their history: pages of operations ask for it every second.
func (s *Server) briefCluster(ctx context.Context, actor loom.Actor, id loom.ClusterID) (clusters.ClusterView, error) {
	c, latest, err := s.Clusters.Latest(ctx, actor, id)
	v := clusters.ClusterView{Cluster: c, Latest: latest, Allowed: map[loom.ChangeKind]string{}}
	for _, verb := range loom.ClusterChanges {
		v.Allowed[verb] = c.WhyNot(verb, latest)
	}
	return v, err
}

func (s *Server) operationHead(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation) (clusterview.OperationHead, error) {
	m := clusterview.OperationHead{
		Ref: op.Ref, Title: page.Capital(op.Action.Verb()) + " · operation " + strconv.Itoa(op.Ref.Number),
		State: ui.OperationState(op.Status, op.Aborted), Message: op.Message, Said: s.operationSaid(&op, v.Name),
	}
	if !op.ForRetry { // those are named one by one
		m.Waiting = op.Waiting
	}
	m.Tone = ui.ToneBad
	if len(op.Tasks) > 0 && op.Tasks[loom.TaskFailed] == 0 && (op.Status == loom.OperationPaused || op.Status == loom.OperationAborted) {
		m.Tone = m.State.Tone
	}
	p := op.Progress()
	m.Segments = ui.SegmentsModel{ID: "segments", Complete: p.Done, Running: op.Tasks[loom.TaskRunning], Failed: op.Tasks[loom.TaskFailed], Retrying: op.Again}
	if op.Tasks[loom.TaskDropped] > 0 {
		m.Segments.RestWord = "dropped"
	}
	m.Segments.Rest = p.Total - m.Segments.Complete - m.Segments.Running - m.Segments.Failed - m.Segments.Retrying
	m.Facts = []ui.Def{
		{Term: "By", Text: string(op.RequestedBy)},
		{Term: "Started", Value: ui.Time(op.Started, s.Now())},
		{Term: "Duration", Text: s.elapsed(op.Started, op.Ended)},
		{Term: "Tasks", Text: strconv.Itoa(p.Done) + " of " + strconv.Itoa(p.Total)},
	}
	if !op.Status.Final() && !op.Started.IsZero() {
		m.Facts[2].Value = ui.Elapsed(s.Now().Sub(op.Started))
	}
	left, err := s.left(ctx, actor, v, op)
	if err != nil {
		return m, err
	}
	if left != "" {
		m.Facts = append(m.Facts, ui.Def{Term: "Remaining", Text: left})
	}
	m.Facts = append(m.Facts, relatedFacts(op)...)
	m.Actions = operationActions(v, op)
	if m.Retrying, err = s.retries(ctx, actor, op); err != nil {
		return m, err
	}
	tasks, err := s.notableTasks(ctx, actor, op)
	if err != nil {
		return m, err
	}
	if m.Actions, err = s.ways(ctx, actor, v, op, tasks, m.Actions); err != nil {
		return m, err
	}
	m.Running, m.Failed = s.taskLinks(tasks, loom.TaskRunning, op.Tasks[loom.TaskRunning]), s.taskLinks(tasks, loom.TaskFailed, op.Tasks[loom.TaskFailed])
	if len(m.Failed) > 0 && m.Message == "" {
		m.Message = ui.Count(op.Tasks[loom.TaskFailed], "task failed.", "tasks failed.")
	}
	return m, nil
}

// relatedFacts lead to the operation that this one retries or takes back.
func relatedFacts(op loom.Operation) []ui.Def {
	if op.Concerns == 0 {
		return nil
	}
	term := "Rolls back"
	if op.Retries {
		term = "Continues"
	}
	other := loom.OperationRef{Cluster: op.Ref.Cluster, Number: op.Concerns}
	return []ui.Def{{Term: term, Value: clusterview.TextLink("operation "+strconv.Itoa(op.Concerns), route.Operation(other))}}
}

// viewWords are the views of a plan; the word is the last part of the path.
var viewWords = []struct{ word, label string }{{"graph", "Graph"}, {"stages", "Stages"}, {"timeline", "Timeline"}, {"table", "Table"}, {"log", "Log"}}

func viewURL(ref loom.OperationRef, word string) string {
	switch word {
	case "stages":
		return route.OperationStages(ref)
	case "timeline":
		return route.OperationTimeline(ref)
	case "table":
		return route.OperationTasks(ref)
	case "log":
		return route.OperationLog(ref)
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
	if page.Wants(r, clusterview.OperationViewID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.OperationLivePart(m))
	}
	for _, v := range viewWords {
		m.Views = append(m.Views, ui.Tab{Label: v.label, Href: viewURL(op.Ref, v.word), Current: v.word == word})
	}
	v, err := s.briefCluster(r.Context(), actor, op.Ref.Cluster)
	if err != nil {
		return err
	}
	head, err := s.operationHead(r.Context(), actor, v, op)
	if err != nil {
		return err
	}
	page := s.operationFrame(r, v, op)
	if word == "log" {
		return s.Render(w, r, actor, http.StatusOK, page, clusterview.OperationPage(clusterview.OperationModel{Head: head, View: m}))
	}
	http.SetCookie(w, &http.Cookie{Name: viewCookie, Value: word, Path: route.Clusters(), SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: r.TLS != nil})
	return s.Render(w, r, actor, http.StatusOK, page, clusterview.OperationPage(clusterview.OperationModel{Head: head, View: m}))
}

func (s *Server) operationFrame(r *http.Request, v clusters.ClusterView, op loom.Operation, more ...ui.Crumb) layout.Model {
	crumbs := []ui.Crumb{{Label: v.Name, Href: route.Cluster(v.ID)}, {Label: "Operation " + strconv.Itoa(op.Ref.Number), Href: route.Operation(op.Ref)}}
	m := clusterPage(page.Capital(op.Action.Verb())+" "+v.Name, "Operations", append(crumbs, more...)...)
	if !op.Status.Final() {
		m.Topics = []string{route.TopicOperation(op.Ref)}
	}
	m.TitlePrefix = s.titlePrefix(&op)
	page.Reloading(r, &m, !op.Status.Final())
	return m
}

func (s *Server) operationPlan(r *http.Request, actor loom.Actor) (loom.Operation, loom.Plan, planTasks, error) {
	op, err := s.pathOperation(r, actor)
	if err != nil {
		return op, loom.Plan{}, planTasks{}, err
	}
	plan, tasks, err := s.plans.of(r.Context(), s.Clusters, actor, op, s.Now)
	return op, plan, tasks, err
}
