package clusters

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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

// left says how long an operation that runs may still take, "" where that is not known: nothing
// of the kind ran before, or a task that failed waits to be tried again.
func (s *Server) left(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation) (string, error) {
	if op.Status != loom.OperationRunning || op.Started.IsZero() || op.Again > 0 {
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
	d, known, late := typical.Remaining(groups, s.Now())
	switch {
	case !known:
		return "", nil
	case late:
		return "longer than usual", nil
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
	what := ui.Capital(op.Action.Verb()) + " of " + name
	if op.Action == loom.ClusterAuthorize {
		what = "Adding keys to " + name
	}
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
		v.Allowed[verb] = clusters.WhyNot(actor, c, verb, latest)
	}
	return v, err
}

func (s *Server) operationHead(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation) (clusterview.OperationHead, error) {
	m := clusterview.OperationHead{
		Ref: op.Ref, Title: ui.Capital(op.Action.Verb()) + " " + v.Name, State: ui.OperationState(op.Status, op.Aborted).Of("operation", op.Ref.String()), Message: op.Message, Said: s.operationSaid(&op, v.Name),
	}
	switch {
	case op.Status == loom.OperationPaused && m.Message != "":
		m.Message += " Nothing starts until it is resumed."
	case !op.ForRetry: // those are named one by one
		m.Waiting = op.Waiting
	}
	m.Tone = ui.ToneBad
	if len(op.Tasks) > 0 && op.Tasks[loom.TaskFailed] == 0 && (op.Status == loom.OperationPaused || op.Status == loom.OperationAborted) {
		m.Tone = m.State.Tone
	}
	p := op.Progress()
	if op.Status != loom.OperationComplete {
		m.Segments = &ui.SegmentsModel{ID: "segments", Complete: p.Done, Running: op.Tasks[loom.TaskRunning], Failed: op.Tasks[loom.TaskFailed], Retrying: op.Again}
		if op.Tasks[loom.TaskDropped] > 0 {
			m.Segments.RestWord = "dropped"
		}
		m.Segments.Rest = p.Total - m.Segments.Complete - m.Segments.Running - m.Segments.Failed - m.Segments.Retrying
	}
	if err := s.operationFacts(ctx, actor, v, op, &m); err != nil {
		return m, err
	}
	actions := operationActions(v, op)
	var err error
	if m.Retrying, err = s.retries(ctx, actor, op); err != nil {
		return m, err
	}
	tasks, err := s.notableTasks(ctx, actor, op)
	if err != nil {
		return m, err
	}
	if actions, err = s.ways(ctx, actor, v, op, tasks, actions); err != nil {
		return m, err
	}
	m.Actions, m.Menu = headActions(actions)
	if op.Status == loom.OperationPaused {
		m.Actions[0].Kind = ui.Primary // to resume it
	}
	m.Failed = taskList(tasks, loom.TaskFailed, op.Tasks[loom.TaskFailed])
	m.Running, err = s.runningList(ctx, actor, op, tasks)
	return m, err
}

// headShown is how many actions stand in the head of a page; its menu has the others.
const headShown = 2

// headActions are the buttons of a head, and the others as a menu.
func headActions(all []ui.ButtonModel) (shown []ui.ButtonModel, menu []ui.MenuItem) {
	shown = all[:min(len(all), headShown)]
	for _, b := range all[len(shown):] {
		menu = append(menu, ui.MenuItem{Label: b.Label, Icon: b.Icon, Href: b.Href, Post: b.FormAction, WhyNot: b.WhyNot, Attrs: b.Attrs, Danger: b.Kind == ui.Danger})
	}
	return shown, menu
}

// operationFacts is the line below the title, and the number of a retry in it.
func (s *Server) operationFacts(ctx context.Context, actor loom.Actor, v clusters.ClusterView, op loom.Operation, m *clusterview.OperationHead) error {
	add := func(term, text string) { m.Facts = append(m.Facts, ui.Def{Term: term, Text: text}) }
	switch {
	case op.Started.IsZero():
	case op.Status.Final():
		add("Duration", s.elapsed(op.Started, op.Ended))
	default:
		m.Facts = append(m.Facts, ui.Def{Term: "Duration", Value: ui.Elapsed(s.Now().Sub(op.Started))})
	}
	left, err := s.left(ctx, actor, v, op)
	if err != nil {
		return err
	}
	if left != "" {
		add("Remaining", left)
	}
	by := "by you"
	if op.RequestedBy != actor.User {
		by = "by " + string(op.RequestedBy)
	}
	add("Requested", by)
	at := op.Started
	if at.IsZero() {
		at = op.Created
	}
	m.Facts = append(m.Facts, ui.Def{Term: "Started", Value: ui.Time(at, s.Now())})
	add("Number", "operation "+strconv.Itoa(op.Ref.Number))
	if op.Concerns > 0 && !op.Continues() {
		m.Facts = append(m.Facts, operationLink("rolls back", op, op.Concerns))
	}
	return s.retryFacts(ctx, actor, op, m)
}

// retryFacts number a retry, and lead to the operation before it and the one after it.
func (s *Server) retryFacts(ctx context.Context, actor loom.Actor, op loom.Operation, m *clusterview.OperationHead) error {
	if !op.Continues() && (!op.Status.Final() || op.Status == loom.OperationComplete) {
		return nil // nothing retries it
	}
	chain, err := s.Clusters.Retries(ctx, actor, op.Ref)
	if err != nil {
		return err
	}
	at := slices.Index(chain, op.Ref.Number)
	if at > 0 {
		m.Title += fmt.Sprintf(", retry %d of %d", at, len(chain)-1)
		m.Facts = append(m.Facts, operationLink("continues", op, op.Concerns))
	}
	if at >= 0 && at+1 < len(chain) {
		m.Facts = append(m.Facts, operationLink("continued by", op, chain[at+1]))
	}
	return nil
}

// retryWord names an operation that continues another, ", retry 2", and is empty for others.
func (s *Server) retryWord(ctx context.Context, actor loom.Actor, op loom.Operation) (string, error) {
	if !op.Continues() {
		return "", nil
	}
	chain, err := s.Clusters.Retries(ctx, actor, op.Ref)
	if at := slices.Index(chain, op.Ref.Number); err == nil && at > 0 {
		return fmt.Sprintf(", retry %d", at), nil
	}
	return "", err
}

// operationLink is a fact that leads to another operation of the cluster.
func operationLink(how string, op loom.Operation, number int) ui.Def {
	other := loom.OperationRef{Cluster: op.Ref.Cluster, Number: number}
	return ui.Def{Term: "Related", Value: clusterview.TextLink(how+" operation "+strconv.Itoa(number), route.Operation(other))}
}

// operationViews are the views of an operation; the word is the last part of the path.
var operationViews = []struct {
	word, label string
	url         func(loom.OperationRef) string
}{
	{"timeline", "Timeline", route.OperationTimeline}, {"graph", "Graph", route.OperationGraph}, {"table", "Tasks", route.OperationTasks}, {"log", "Log", route.OperationLog},
}

// showOperation answers with a view: its part alone when htmx asks for it, else the whole page.
func (s *Server) showOperation(w http.ResponseWriter, r *http.Request, actor loom.Actor, op loom.Operation, word string, m clusterview.OperationView) error {
	m.Ref = op.Ref
	q := readTaskQuery(r.URL.Query())
	base := ""
	for _, v := range operationViews {
		if v.word == word {
			base = v.url(op.Ref)
		}
		m.Views = append(m.Views, ui.Tab{Label: v.label, Href: q.url(v.url(op.Ref)), Current: v.word == word})
	}
	if m.Live = base; r.URL.RawQuery != "" {
		m.Live += "?" + r.URL.RawQuery
	}
	if page.Wants(r, clusterview.OperationViewID) {
		return s.Fragment(w, r, http.StatusOK, clusterview.OperationLivePart(m))
	}
	var err error
	if m.Filters, err = s.taskFilters(r.Context(), actor, op, q, base, r.URL.Query()); err != nil {
		return err
	}
	v, err := s.briefCluster(r.Context(), actor, op.Ref.Cluster)
	if err != nil {
		return err
	}
	head, err := s.operationHead(r.Context(), actor, v, op)
	if err != nil {
		return err
	}
	return s.Render(w, r, actor, http.StatusOK, s.operationFrame(r, v, op), clusterview.OperationPage(clusterview.OperationModel{Head: head, View: m}))
}

func (s *Server) operationFrame(r *http.Request, v clusters.ClusterView, op loom.Operation, more ...ui.Crumb) layout.Model {
	crumbs := []ui.Crumb{{Label: v.Name, Href: route.Cluster(v.ID)}, {Label: "Operation " + strconv.Itoa(op.Ref.Number), Href: route.Operation(op.Ref)}}
	m := clusterPage(ui.Capital(op.Action.Verb())+" "+v.Name, "Operations", append(crumbs, more...)...)
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
