package clusters

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// clusterFacts is the line of small facts at the top of each page of a cluster; labels where
// they are not shown below with the description.
func (s *Server) clusterFacts(actor loom.Actor, v clusters.ClusterView, labelled bool) []ui.Def {
	change := ""
	if why, offered := v.Allowed[loom.ChangeLease]; offered && why == "" {
		change = route.ClusterLease(v.ID)
	}
	owner := string(v.Owner.User)
	if v.Owner == (loom.Account{User: actor.User, Tenant: actor.Tenant}) {
		owner = "yours"
	}
	facts := []ui.Def{
		{Term: "Template", Text: clusterview.TemplateText(v.Template.Base)},
		{Term: "Provider", Text: v.Provider.Name},
		{Term: "Owner", Text: owner},
		{Term: "Created", Value: clusterview.CreatedFact(v.Created, s.Now())},
	}
	if v.Status != loom.ClusterTerminated {
		facts = append(facts, ui.Def{Term: "Expiry", Value: clusterview.LeaseFact(v.Expires, s.Now(), change)})
	}
	if labelled && len(v.Labels) > 0 {
		var labels []string
		for key, value := range v.Labels {
			labels = append(labels, key+"="+value)
		}
		slices.Sort(labels)
		facts = append(facts, ui.Def{Term: "Labels", Text: strings.Join(labels, ", ")})
	}
	return append(facts, ui.Def{Term: "Id", Value: ui.CopyText(v.ID.String(), "id")})
}

const (
	// failureLines are the last lines of a failed task's log on the cluster's page.
	failureLines = 20
	// runningShown bounds the tasks that are named as running.
	runningShown = 8
	// boxesShown bounds the nodes that have a box each.
	boxesShown = 30
)

func (s *Server) clusterShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	return s.showCluster(w, r, actor, http.StatusOK, v, nil)
}

// pathCluster reads the cluster that a path names, without the history of its nodes.
func (s *Server) pathCluster(r *http.Request, actor loom.Actor) (clusters.ClusterView, error) {
	id, err := pathCluster(r)
	if err != nil {
		return clusters.ClusterView{}, err
	}
	return s.Clusters.Overview(r.Context(), actor, id)
}

// pathHistory reads the cluster that a path names with the history of its nodes.
func (s *Server) pathHistory(r *http.Request, actor loom.Actor) (clusters.ClusterView, error) {
	id, err := pathCluster(r)
	if err != nil {
		return clusters.ClusterView{}, err
	}
	return s.Clusters.Cluster(r.Context(), actor, id)
}

func (s *Server) showCluster(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v clusters.ClusterView, revealed *clusterview.RevealModel) error {
	m := clusterview.ShowModel{Head: s.clusterHead(actor, v, ""), Revealed: revealed}
	var err error
	if m.Operation, err = s.operationPart(r.Context(), actor, v); err != nil {
		return err
	}
	if m.Connect, err = s.connectPart(r.Context(), actor, v, readAddressChoice(r.URL.Query())); err != nil {
		return err
	}
	m.Sets = s.setsPart(v)
	return s.Render(w, r, actor, status, s.clusterFrame(r, v, ""), clusterview.ShowPage(m))
}

// clusterFrame is the frame of a cluster's pages; tab is the label of the tab,
// empty for the overview.
func (s *Server) clusterFrame(r *http.Request, v clusters.ClusterView, tab string) layout.Model {
	crumbs := []ui.Crumb{{Label: v.Name, Href: route.Cluster(v.ID)}}
	if tab != "" {
		crumbs = append(crumbs, ui.Crumb{Label: tab})
	}
	m := clusterPage(v.Name, "Clusters", crumbs...)
	m.Topics = []string{route.TopicCluster(v.ID)}
	m.TitlePrefix = s.titlePrefix(v.Latest)
	next := loom.OperationRef{Cluster: v.ID, Number: v.LatestOperation + 1}
	if v.Latest != nil && !v.Latest.Status.Final() {
		m.Topics = append(m.Topics, route.TopicOperation(v.Latest.Ref))
	}
	if v.Status != loom.ClusterTerminated {
		m.Topics = append(m.Topics, route.TopicOperation(next)) // which may begin while the page is open
	}
	page.Reloading(r, &m, v.Status == loom.ClusterPending)
	return m
}

// clusterPanel gives one live part of a cluster's page.
func (s *Server) clusterPanel(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	read := s.pathCluster
	switch clusterview.Part(r.URL.Query().Get("part")) {
	case clusterview.PartSaid:
		return s.clusterSaidPart(w, r, actor)
	case clusterview.PartServices:
		read = s.pathHistory
	case clusterview.PartOperation:
		r = r.WithContext(clusters.WithTaskGroups(r.Context())) // its panel tells how long it still takes
	}
	v, err := read(r, actor)
	if err != nil {
		return err
	}
	part, err := s.clusterPart(r, actor, v)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, part)
}

// clusterPart makes the part of a cluster's page that the query names.
func (s *Server) clusterPart(r *http.Request, actor loom.Actor, v clusters.ClusterView) (templ.Component, error) {
	ctx, q := r.Context(), r.URL.Query()
	switch part := clusterview.Part(q.Get("part")); part {
	case clusterview.PartHead:
		return clusterview.Head(s.clusterHead(actor, v, q.Get("tab"))), nil
	case clusterview.PartOperation:
		m, err := s.operationPart(ctx, actor, v)
		return clusterview.OperationPart(m), err
	case clusterview.PartLeftovers:
		return clusterview.LeftoversPart(v), nil
	case clusterview.PartSkipped:
		return clusterview.SkippedPart(v), nil
	case clusterview.PartConnect:
		m, err := s.connectPart(ctx, actor, v, readAddressChoice(q))
		return clusterview.ConnectPart(m), err
	case clusterview.PartAbout:
		return clusterview.AboutPart(v, q.Get("back") != ""), nil
	case clusterview.PartSets:
		return clusterview.SetsPart(s.setsPart(v)), nil
	case clusterview.PartNodes:
		m, err := s.nodesPart(ctx, actor, v, readNodesQuery(q, len(v.Nodes)))
		return clusterview.NodesPart(m), err
	case clusterview.PartServices:
		return clusterview.ServicesPart(s.servicesPart(v)), nil
	case clusterview.PartHealth:
		m, err := s.incidentsPart(ctx, actor, v, loom.Page{After: q.Get("after"), Before: q.Get("before")})
		return clusterview.IncidentsPart(m), err
	case clusterview.PartOperations:
		m, err := s.operationsPart(ctx, actor, v.ID, readOperationsQuery(q))
		return clusterview.OperationsPart(m), err
	default:
		return nil, loom.NewError(loom.NotFound, "A cluster's page has no part “%.40s”.", part)
	}
}

// clusterTabs are the parts of a cluster; the word is the last part of the path.
var clusterTabs = []struct{ word, label string }{
	{"", "Overview"}, {"nodes", "Nodes"}, {"services", "Services"}, {"health", "Health"}, {"operations", "History"}, {"config", "Config"}, {"access", "Access"},
}

func (s *Server) clusterHead(actor loom.Actor, v clusters.ClusterView, tab string) clusterview.HeadModel {
	m := clusterview.HeadModel{ClusterView: v, Tab: tab, State: s.badge(v)}
	if tab != "health" { // whose list says the same
		m.Trouble = trouble(v)
	}
	// The panel of a failed operation has the primary button, and so have what repairs a node and what shares.
	other := slices.Contains(attentionStatuses, v.Status) || tab == "health" && v.Health.Status.Bad()
	other = other || primaryFix(m.Trouble) || tab == "access" && actor.May(loom.Own, v.Object()) == nil
	if why, offered := v.Allowed[loom.ChangeStart]; offered && allServices(v, loom.ServiceStopped) && v.Status == loom.ClusterActive {
		at := route.ClusterServices(v.ID, "start")
		m.Start = ui.ButtonModel{Label: "Start", Icon: "play", Kind: ui.Primary, Href: at, WhyNot: why, Attrs: ui.OpensDialog(at)}
		other = true
	}
	if links := linkModels(v.OpenLinks); len(links) > 0 {
		m.Open, m.OpenFirst = links[0].URL, !other
	}
	if why, offered := v.Allowed[loom.ChangeExpand]; offered && why == "" && m.Start.Label == "" {
		m.Scale = ui.ButtonModel{Label: "Scale", Href: route.ClusterScale(v.ID)}
		if m.Open == "" && !other {
			m.Scale.Kind = ui.Primary
		}
	}
	m.Newer = newerOf(v)
	if v.Rollout.Number > 0 && actor.May(loom.Operate.Reading(), actor.InTenant()) == nil {
		m.RolloutHref = route.AdminRollout(v.Rollout.Number)
	}
	for _, t := range clusterTabs {
		href := route.Cluster(v.ID)
		if t.word != "" {
			href = route.ClusterTab(v.ID, t.word)
		}
		count := ""
		switch t.word {
		case "nodes":
			count = strconv.Itoa(len(v.Nodes))
		case "operations":
			count = strconv.Itoa(v.LatestOperation)
		}
		m.Tabs = append(m.Tabs, ui.Tab{Label: t.label, Href: href, Count: count, Current: t.word == tab})
	}
	m.Said = s.clusterSaid(v)
	m.Facts = s.clusterFacts(actor, v, tab != "")
	m.Actions, m.Extend = clusterActions(actor, v), s.extend(v)
	return m
}

// newerOf says what an update would be for: a deprecated version, else a newer template.
func newerOf(v clusters.ClusterView) *clusterview.NewerNotice {
	m := &clusterview.NewerNotice{Update: ui.ButtonModel{Label: "Update", Small: true, Href: route.ClusterVerb(v.ID, "update"), WhyNot: v.Allowed[loom.ChangeUpdate]}}
	switch {
	case len(v.Deprecated) > 0:
		d := v.Deprecated[0]
		m.Text, m.Deprecated = d.Name+" "+ui.Version(d.Version)+" is deprecated: "+d.Deprecation, true
		if more := len(v.Deprecated) - 1; more > 0 {
			m.Text += " (" + strconv.Itoa(more) + " more)"
		}
	case v.NewerTemplate > 0 && v.Status != loom.ClusterTerminated:
		m.Text = v.Template.Name + " " + ui.Version(v.NewerTemplate) + " is available."
	default:
		return nil
	}
	return m
}

// primaryFix makes what helps against the first bad trouble the primary button, and reports
// whether there is one.
func primaryFix(lines []clusterview.TroubleLine) bool {
	for i := range lines {
		if t := &lines[i]; t.Bad && t.Fix.Label != "" && t.Fix.WhyNot == "" {
			t.Fix.Kind = ui.Primary
			return true
		}
	}
	return false
}

// badge is what is going on with a cluster.
func (s *Server) badge(v clusters.ClusterView) ui.State {
	var p loom.Progress
	if v.Latest != nil {
		p = v.Latest.Progress()
	}
	return ui.ClusterBadge(v.Status, p, v.Health, s.Now()).Of("cluster", v.ID.String())
}

// progress is the bar of an operation with its text.
func (s *Server) progress(op loom.Operation) ui.ProgressModel {
	p := op.Progress()
	text := strconv.Itoa(p.Done) + " of " + ui.Count(p.Total, "task", "tasks")
	runs := !op.Started.IsZero() && !op.Status.Final()
	if d := s.elapsed(op.Started, op.Ended); d != "" && !runs {
		text += " · " + d
	}
	failed := op.Status == loom.OperationFailed || op.Status == loom.OperationFailing
	if failed {
		text = "Failed at " + text
	}
	m := ui.ProgressModel{Label: "Progress of " + op.Action.Verb(), Value: p.Done, Max: p.Total, Text: text, Failed: failed, Runs: runs}
	if runs {
		m.Elapsed = s.Now().Sub(op.Started)
	}
	return m
}

// elapsed is how long something took, or takes so far; empty before it began.
func (s *Server) elapsed(started, ended time.Time) string {
	if started.IsZero() {
		return ""
	}
	if ended.IsZero() {
		ended = s.Now()
	}
	return ui.Duration(ended.Sub(started))
}

// operationPart is the newest operation of a cluster.
func (s *Server) operationPart(ctx context.Context, actor loom.Actor, v clusters.ClusterView) (clusterview.OperationPanel, error) {
	m := clusterview.OperationPanel{ID: v.ID}
	op := v.Latest
	if op == nil {
		return m, nil
	}
	m.Topic = route.TopicOperation(op.Ref)
	if op.Status == loom.OperationComplete {
		retry, err := s.retryWord(ctx, actor, *op)
		if retry != "" {
			retry += ","
		}
		m.Last = &clusterview.LastChange{Operation: *op, Retry: retry}
		return m, err
	}
	m.Wide = op.Status.Final()
	m.Title = ui.Capital(op.Action.Verb())
	m.Href = route.Operation(op.Ref)
	if !op.Status.Final() {
		m.Progress = s.progress(*op)
	}
	if op.Status != loom.OperationRunning && op.Status != loom.OperationFailed { // the state of the cluster says those
		m.State = ui.OperationState(op.Status, op.Aborted)
	}
	var err error
	if m.Progress.Left, err = s.left(ctx, actor, v, *op); err != nil {
		return m, err
	}
	tasks, err := s.notableTasks(ctx, actor, *op)
	if err != nil {
		return m, err
	}
	if op.OnFailure == loom.OnFailureUndo && !op.Status.Final() {
		if m.Note = "If it fails, Loom undoes it."; op.Action == loom.ClusterCreate {
			m.Note = "If it fails, Loom deletes its machines."
		}
	}
	if op.Waiting != "" && !op.ForRetry {
		m.Note = op.Waiting
	}
	if op.Status == loom.OperationPaused && !v.Expires.IsZero() {
		m.Note += " The lease keeps running."
	}
	m.Actions = operationActions(v, *op)
	if m.Retrying, err = s.retries(ctx, actor, *op); err != nil {
		return m, err
	}
	if m.Running, err = s.runningList(ctx, actor, *op, tasks); err != nil {
		return m, err
	}
	var node loom.NodeID
	if m.Failure, node, err = s.firstFailure(ctx, actor, *op, tasks); err != nil {
		return m, err
	}
	m.Wide = m.Wide || m.Failure != nil
	restore, err := s.restoreAction(ctx, actor, v, *op)
	if err != nil {
		return m, err
	}
	if restore != nil {
		m.Actions = append(m.Actions, *restore)
	}
	if m.Actions, err = s.ways(ctx, actor, v, *op, tasks, m.Actions); err != nil {
		return m, err
	}
	m.Actions, m.Menu = headActions(append(m.Actions, failureActions(v, *op, node)...))
	return m, nil
}

// failureActions are what else can be done once an operation failed: about the node on
// which it did, and about all of the cluster.
func failureActions(v clusters.ClusterView, op loom.Operation, node loom.NodeID) []ui.ButtonModel {
	if !op.Status.Final() || v.Status == loom.ClusterTerminated || op.NeverBegan() {
		return nil
	}
	var out []ui.ButtonModel
	for _, n := range v.Nodes {
		if n.ID == node && !n.Leaving {
			out = append(out, ui.ButtonModel{Label: "Repair node " + ui.NodeNumber(n.Hostname), Icon: "shield", Href: route.ClusterRepair(v.ID, node), WhyNot: v.Allowed[loom.ChangeRepair]})
		}
	}
	if op.Status == loom.OperationFailed && op.Action == loom.ClusterDelete {
		at := route.ClusterDelete(v.ID)
		out = append(out, ui.ButtonModel{Label: "Delete again", Icon: "trash", Kind: ui.Danger, Href: at, WhyNot: v.Allowed[loom.ChangeDelete], Attrs: ui.OpensDialog(at)})
	}
	return out
}

// notableTasks are the tasks of an operation that failed and the first of those that run.
// They are looked for only where its counts say that there are any.
func (s *Server) notableTasks(ctx context.Context, actor loom.Actor, op loom.Operation) ([]loom.Task, error) {
	switch running, failed := op.Tasks[loom.TaskRunning], op.Tasks[loom.TaskFailed]; {
	case running+failed == 0:
		return nil, nil
	case failed > 0:
		return s.Clusters.Tasks(ctx, actor, op.Ref, clusters.TaskFilter{Statuses: []loom.TaskStatus{loom.TaskRunning, loom.TaskFailed}})
	}
	groups, err := s.Clusters.TaskGroups(ctx, actor, op.Ref)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, g := range groups {
		for _, n := range g.Running {
			numbers = append(numbers, int(n))
		}
	}
	slices.Sort(numbers)
	return s.Clusters.TasksNumbered(ctx, actor, op.Ref, numbers[:min(len(numbers), 2*runningShown)]) // some may have ended by now
}

// slowTask is how long a task works on a machine before lists of tasks say what it does.
const slowTask = 5 * time.Second

// runningList is the running tasks, the first few of all; the first that takes longer says what it does, as
// when an image is prepared first.
func (s *Server) runningList(ctx context.Context, actor loom.Actor, op loom.Operation, tasks []loom.Task) (clusterview.TaskList, error) {
	m := taskList(tasks, loom.TaskRunning, op.Tasks[loom.TaskRunning])
	i := slices.IndexFunc(m.Tasks, func(t loom.Task) bool {
		return speaks(t) && !t.Started.IsZero() && s.Now().Sub(t.Started) > slowTask
	})
	if i < 0 {
		return m, nil
	}
	var err error
	m.Speaks = m.Tasks[i].Ref.Number
	m.Doing, err = s.lastWord(ctx, actor, m.Tasks[i].Ref, 0)
	return m, err
}

// speaks reports whether a task says in its log what it does just now: what makes and prepares machines.
func speaks(t loom.Task) bool { return t.Service == "" }

// lastWord is the last line of an attempt's log where Loom itself wrote it, "" for other lines.
func (s *Server) lastWord(ctx context.Context, actor loom.Actor, task loom.TaskRef, attempt int) (string, error) {
	lines, _, err := s.Clusters.Log(ctx, actor, task, clusters.LogInput{Attempt: attempt, Tail: 1})
	if err != nil || len(lines) == 0 || lines[0].Stream != "loom" {
		return "", err
	}
	return lines[0].Text, nil
}

// taskList is the tasks of a status, the first few of all.
func taskList(tasks []loom.Task, status loom.TaskStatus, all int) clusterview.TaskList {
	m := clusterview.TaskList{Status: status, All: all}
	for _, t := range tasks {
		if t.Status == status && len(m.Tasks) < runningShown {
			m.Tasks = append(m.Tasks, t)
		}
	}
	return m
}

// firstFailure is the task that failed first, with the end of its log, and its node.
func (s *Server) firstFailure(ctx context.Context, actor loom.Actor, op loom.Operation, tasks []loom.Task) (*clusterview.FailureModel, loom.NodeID, error) {
	var first *loom.Task
	for i, t := range tasks {
		if t.Status == loom.TaskFailed && (first == nil || t.Ended.Before(first.Ended)) {
			first = &tasks[i]
		}
	}
	if first == nil {
		if op.Status == loom.OperationFailed && op.Message != "" {
			return &clusterview.FailureModel{Href: route.Operation(op.Ref), Cause: op.Message}, "", nil
		}
		return nil, "", nil
	}
	lines, _, err := s.Clusters.Log(ctx, actor, first.Ref, clusters.LogInput{Tail: failureLines})
	if err != nil {
		return nil, "", err
	}
	m := &clusterview.FailureModel{Task: ui.Capital(clusterview.TaskText(*first)), Href: route.Task(first.Ref), Message: first.Message, Lines: logLines(lines)}
	if m.Cause = markCause(m.Lines); m.Cause == "" {
		m.Cause, m.Message = m.Message, ""
	}
	m.Message = strings.TrimSuffix(m.Message, ": "+m.Cause)
	return m, first.Node, nil
}

// plainOf is a line of a log without its colors.
func plainOf(line string) string {
	var b strings.Builder
	for _, span := range ui.Spans(line) {
		b.WriteString(span.Text)
	}
	return b.String()
}

// causeLength bounds the line of a log that is shown as the cause of a failure.
const causeLength = 300

// markCause marks the line of a log that most likely says why something failed, the last one
// on standard error, and returns it, "" where there is none.
func markCause(lines []ui.LogLine) string {
	for i, l := range slices.Backward(lines) {
		if text := strings.TrimSpace(plainOf(l.Text)); l.Stream == "stderr" && text != "" {
			lines[i].Marked = true
			return string([]rune(text)[:min(len([]rune(text)), causeLength)])
		}
	}
	return ""
}
