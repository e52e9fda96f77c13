package clusters

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/planner/draw"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// lanesShown is how many nodes a page of the timeline shows; above it, it opens by
// step.
const lanesShown = 40

// timeQuery is what the options of the timeline say: by is "node" or "step", sort ""
// or "busy", page counts from 1.
type timeQuery struct {
	taskQuery
	By, Sort string
	Page     int
}

func readTimeQuery(q url.Values, nodes int) timeQuery {
	t := timeQuery{taskQuery: readTaskQuery(q), By: q.Get("by"), Sort: q.Get("sort"), Page: 1}
	if t.By != "node" && t.By != "step" {
		if t.By = "node"; nodes > lanesShown && t.node == "" {
			t.By = "step"
		}
	}
	if t.node != "" {
		t.By = "node" // rows of actions are of all nodes
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 1 {
		t.Page = min(n, (nodes+lanesShown-1)/lanesShown)
	}
	t.Page = max(t.Page, 1)
	return t
}

func (t timeQuery) url(ref loom.OperationRef) string {
	page := ""
	if t.Page > 1 {
		page = strconv.Itoa(t.Page)
	}
	return t.taskQuery.url(route.OperationTimeline(ref), "by", t.By, "sort", t.Sort, "page", page)
}

// operationTimeline is what ran when.
func (s *Server) operationTimeline(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, err := s.pathOperation(r, actor)
	if err != nil {
		return err
	}
	ref := op.Ref
	groups, err := s.Clusters.TaskGroups(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	names, err := s.names.of(r.Context(), s.Clusters, actor, op, s.Now)
	if err != nil {
		return err
	}
	q := readTimeQuery(r.URL.Query(), len(names))
	m := clusterview.TimelineView{Options: timeOptions(ref, q), Chart: ui.TimelineModel{ID: "timeline"}}
	axis := s.operationAxis(op, groups)
	if q.By == "step" {
		s.stepLanes(&m, op, axis, slices.DeleteFunc(slices.Clone(groups), func(g clusters.TaskGroup) bool {
			return !q.matchesGroup(g.Level, g.Action, g.Service, g.Status, g.Again > 0)
		}))
	} else if err := s.nodeLanes(r, actor, &m, op, axis, q); err != nil {
		return err
	}
	for _, t := range axis.Ticks {
		text := ui.Duration(t.After)
		if t.After == 0 {
			text = "0"
		}
		m.Chart.Ticks = append(m.Chart.Ticks, ui.TimelineTick{X: t.X, Text: text})
	}
	m.Filtered = q.filtered()
	m.Nothing = !slices.ContainsFunc(m.Chart.Lanes, func(l ui.TimelineLane) bool { return len(l.Bars) > 0 })
	return s.showOperation(w, r, actor, op, "timeline", clusterview.OperationView{Time: &m})
}

func timeOptions(ref loom.OperationRef, q timeQuery) []clusterview.Choices {
	option := func(label string, to timeQuery) ui.Tab {
		to.taskQuery = q.taskQuery
		return ui.Tab{Label: label, Href: to.url(ref), Current: to.By == q.By && to.Sort == q.Sort}
	}
	rows := clusterview.Choices{Label: "Rows", Options: []ui.Tab{option("Nodes", timeQuery{By: "node", Sort: q.Sort}), option("Actions", timeQuery{By: "step", Sort: q.Sort})}}
	if q.node != "" {
		return nil
	}
	if q.By == "step" {
		return []clusterview.Choices{rows}
	}
	return []clusterview.Choices{rows, {Label: "Order", Options: []ui.Tab{
		option("By number", timeQuery{By: "node"}), option("Busiest first", timeQuery{By: "node", Sort: "busy"})}}}
}

// operationAxis goes from the start of the operation to its end, or to now.
func (s *Server) operationAxis(op loom.Operation, groups []clusters.TaskGroup) draw.Axis {
	start, end := op.Started, op.Ended
	for i := range groups {
		g := &groups[i]
		if !g.Started.IsZero() && (start.IsZero() || g.Started.Before(start)) {
			start = g.Started
		}
		if !op.Ended.IsZero() && g.Ended.After(end) {
			end = g.Ended
		}
	}
	if end.IsZero() {
		end = s.Now()
	}
	if start.IsZero() {
		start = end
	}
	return draw.NewAxis(start, end)
}

// nodeLanes has a lane for each node of the page, with a bar for each task.
func (s *Server) nodeLanes(r *http.Request, actor loom.Actor, m *clusterview.TimelineView, op loom.Operation, axis draw.Axis, q timeQuery) error {
	nodes, err := s.Clusters.NodeProgress(r.Context(), actor, op.Ref)
	if err != nil {
		return err
	}
	m.Chart.Label = "Nodes"
	if q.Sort == "busy" {
		slices.SortStableFunc(nodes, func(a, b clusters.NodeProgress) int { return cmp.Compare(b.Busy, a.Busy) })
	}
	var passes map[loom.NodeID]bool
	if q.filtered() {
		tasks, err := s.filterTasks(r.Context(), actor, op.Ref, q.taskQuery)
		if err != nil {
			return err
		}
		passes = map[loom.NodeID]bool{}
		for _, t := range tasks {
			passes[t.Node] = true
		}
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n clusters.NodeProgress) bool { return !passes[n.Node] })
		q.Page = max(1, min(q.Page, (len(nodes)+lanesShown-1)/lanesShown))
	}
	from := (q.Page - 1) * lanesShown
	shown := nodes[min(from, len(nodes)):min(from+lanesShown, len(nodes))]
	if len(nodes) > lanesShown {
		m.Pages = ui.PaginationModel{Label: "Pages of nodes", Text: fmt.Sprintf("%d–%d of %d nodes", from+1, from+len(shown), len(nodes))}
		if q.Page > 1 {
			m.Pages.Prev = timeQuery{q.taskQuery, q.By, q.Sort, q.Page - 1}.url(op.Ref)
		}
		if from+len(shown) < len(nodes) {
			m.Pages.Next = timeQuery{q.taskQuery, q.By, q.Sort, q.Page + 1}.url(op.Ref)
		}
	}
	ids := make([]loom.NodeID, len(shown))
	for i, n := range shown {
		ids[i] = n.Node
	}
	tasks, err := s.Clusters.TasksOn(r.Context(), actor, op.Ref, ids)
	if err != nil {
		return err
	}
	attempts, err := s.Clusters.AttemptsOn(r.Context(), actor, op.Ref, ids)
	if err != nil {
		return err
	}
	of, names := map[loom.NodeID][]try{}, map[loom.NodeID]string{}
	for i := range tasks {
		t := &tasks[i]
		if t.NodeNumber > 0 {
			names[t.Node] = strconv.Itoa(t.NodeNumber)
		}
		if !q.matches(t) {
			continue
		}
		for _, a := range attempts[t.Ref.Number] {
			of[t.Node] = append(of[t.Node], try{t, a, len(attempts[t.Ref.Number])})
		}
	}
	for _, n := range shown {
		name, href := cmp.Or(names[n.Node], ui.NodeNumber(n.Hostname)), route.Node(op.Ref.Cluster, n.Node)
		lane := ui.TimelineLane{ID: string(n.Node), Label: name, Href: href, Note: ui.Duration(n.Busy), Bars: s.tryBars(op, axis, of[n.Node])}
		m.Chart.Lanes = append(m.Chart.Lanes, lane)
		m.Nodes = append(m.Nodes, s.courseRow(axis, clusterview.CourseRow{
			Name: name, Href: href, Tasks: fmt.Sprintf("%d of %d", n.Done, n.Tasks), Busy: ui.Duration(n.Busy), Failed: n.Failed,
			TasksIn: route.Query(route.OperationTasks(op.Ref), "node", string(n.Node)),
		}, n.Started, n.Ended, n.Running > 0, n.Busy))
	}
	return nil
}

// courseRow fills in when it began and ended, and how long nothing ran between.
func (s *Server) courseRow(axis draw.Axis, row clusterview.CourseRow, started, ended time.Time, running bool, busy time.Duration) clusterview.CourseRow {
	if started.IsZero() {
		return row
	}
	row.Begin = ui.Duration(started.Sub(axis.Start))
	if running {
		ended = s.Now()
	} else {
		row.End = ui.Duration(ended.Sub(axis.Start))
	}
	if busy > 0 {
		row.Idle = ui.Duration(max(0, ended.Sub(started)-busy))
	}
	return row
}

// endOf is when something of an operation ended, or until when it is drawn.
func (s *Server) endOf(op loom.Operation, ended time.Time) time.Time {
	switch {
	case !ended.IsZero():
		return ended
	case !op.Ended.IsZero():
		return op.Ended
	}
	return s.Now()
}

// try is an attempt of a task, which has so many.
type try struct {
	task    *loom.Task
	attempt loom.Attempt
	of      int
}

// tryBars has a bar for each attempt.
func (s *Server) tryBars(op loom.Operation, axis draw.Axis, tries []try) []ui.TimelineBar {
	slices.SortStableFunc(tries, func(a, b try) int { return a.attempt.Started.Compare(b.attempt.Started) })
	spans := make([]draw.Span, len(tries))
	for i, t := range tries {
		spans[i] = draw.Span{Start: t.attempt.Started, End: s.endOf(op, t.attempt.Ended)}
	}
	bars := make([]ui.TimelineBar, len(tries))
	for i, p := range axis.Place(spans) {
		t := tries[i]
		state := ui.AttemptState(t.attempt.Status)
		words := []string{clusterview.TaskText(*t.task), strings.ToLower(state.Word), ui.Duration(spans[i].End.Sub(spans[i].Start)), "after " + ui.Duration(spans[i].Start.Sub(axis.Start))}
		href := route.Task(t.task.Ref)
		if t.of > 1 {
			words, href = append(words, fmt.Sprintf("attempt %d of %d", t.attempt.Number, t.of)), route.TaskAttempt(t.task.Ref, t.attempt.Number)
		}
		if t.task.Critical && !op.Status.Final() {
			words = append(words, "on the critical path")
		}
		bars[i] = ui.TimelineBar{
			X: p.X, Width: p.Width, Look: ui.LookOf(state), Text: stepText(t.task.Action, t.task.Service, false), Label: strings.Join(words, ", "),
			Href: href, Critical: t.task.Critical && !op.Status.Final(),
		}
	}
	return bars
}

// stepLanes has a lane for each step, from its first start to its last end on any node.
func (s *Server) stepLanes(m *clusterview.TimelineView, op loom.Operation, axis draw.Axis, groups []clusters.TaskGroup) {
	m.Chart.Label = "Actions"
	type key struct {
		action  loom.TaskAction
		service string
		undo    bool
	}
	type step struct {
		key
		sumOfTasks
		started, ended time.Time
	}
	steps := map[key]*step{}
	var order []*step
	for i := range groups {
		g := &groups[i]
		k := key{g.Action, g.Service, g.Undo}
		if steps[k] == nil {
			steps[k] = &step{key: k}
			order = append(order, steps[k])
		}
		st := steps[k]
		st.add(g)
		if !g.Started.IsZero() && (st.started.IsZero() || g.Started.Before(st.started)) {
			st.started = g.Started
		}
		if g.Ended.After(st.ended) {
			st.ended = g.Ended
		}
	}
	for n, st := range order {
		text := stepText(st.action, st.service, st.undo)
		href := route.Query(route.OperationTasks(op.Ref), "action", string(st.action), "service", st.service)
		state, detail := st.state()
		lane := ui.TimelineLane{ID: strconv.Itoa(n + 1), Label: text, Href: href}
		running := st.count[loom.TaskRunning] > 0
		if !st.started.IsZero() {
			end := st.ended
			if running || end.IsZero() {
				end = s.endOf(op, time.Time{})
			}
			p := axis.Place([]draw.Span{{Start: st.started, End: end}})[0]
			lane.Note = ui.Duration(end.Sub(st.started))
			lane.Bars = []ui.TimelineBar{{
				X: p.X, Width: p.Width, Look: ui.LookOf(state), Text: fmt.Sprintf("%d of %d", st.count[loom.TaskComplete]+st.count[loom.TaskSkipped], st.total),
				Label: text + ", " + detail + ", " + lane.Note + ", after " + ui.Duration(st.started.Sub(axis.Start)), Href: href, Critical: st.critical,
			}}
		}
		m.Chart.Lanes = append(m.Chart.Lanes, lane)
		m.Nodes = append(m.Nodes, s.courseRow(axis, clusterview.CourseRow{
			Name: text, Href: href, TasksIn: href, Busy: lane.Note, Failed: st.count[loom.TaskFailed],
			Tasks: fmt.Sprintf("%d of %d", st.count[loom.TaskComplete]+st.count[loom.TaskSkipped], st.total),
		}, st.started, st.ended, running, 0))
	}
}
