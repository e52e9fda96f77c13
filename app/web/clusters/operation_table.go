package clusters

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// tasksShown is how many rows the table of tasks has on a page.
const tasksShown = 100

// tableQuery is what the filters of the table say.
type tableQuery struct {
	node, service, action, status, stage, after, before string
}

func readTableQuery(q url.Values) tableQuery {
	return tableQuery{q.Get("node"), q.Get("service"), q.Get("action"), q.Get("status"), q.Get("stage"), q.Get("after"), q.Get("before")}
}

func (q tableQuery) filtered() bool {
	q.after, q.before = "", ""
	return q != tableQuery{}
}

func (q tableQuery) url(ref loom.OperationRef, after, before string) string {
	return route.Query(route.OperationTasks(ref), "status", q.status, "action", q.action, "service", q.service, "node", q.node, "stage", q.stage, "after", after, "before", before)
}

func (q tableQuery) input() clusters.TaskListInput {
	in := clusters.TaskListInput{Page: loom.Page{Sort: "number", Limit: tasksShown, After: q.after, Before: q.before}, Node: loom.NodeID(q.node)}
	if q.service != "" {
		in.Services = []string{q.service}
	}
	if q.action != "" {
		in.Actions = []loom.TaskAction{loom.TaskAction(q.action)}
	}
	switch status := loom.TaskStatus(q.status); status {
	case "":
	case "waiting":
		in.Statuses = []loom.TaskStatus{loom.TaskBlocked, loom.TaskReady}
	default:
		in.Statuses = []loom.TaskStatus{status}
	}
	if n, err := strconv.Atoi(q.stage); err == nil && n > 0 && n < 1<<30 {
		in.Level = n
	}
	return in
}

// operationTable is all tasks in a table with filters, page by page.
func (s *Server) operationTable(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, err := s.pathOperation(r, actor)
	if err != nil {
		return err
	}
	ref := op.Ref
	q := readTableQuery(r.URL.Query())
	list, err := s.Clusters.TaskPage(r.Context(), actor, ref, q.input())
	if err != nil && !errors.Is(err, loom.Invalid) {
		return err
	}
	m := clusterview.TaskTable{Action: route.OperationTasks(ref), Filtered: q.filtered(), Now: s.Now()}
	for _, t := range list.Items {
		m.Rows = append(m.Rows, s.taskRow(t.Task))
	}
	if list.Next != "" || list.Prev != "" {
		m.Pages = ui.PaginationModel{Label: "Pages of tasks", Text: ui.Count(len(m.Rows), "task", "tasks")}
		if !m.Filtered {
			m.Pages.Text = fmt.Sprintf("%s to %s of %d tasks", m.Rows[0].Number, m.Rows[len(m.Rows)-1].Number, op.Progress().Total)
		}
		if list.Next != "" {
			m.Pages.Next = q.url(ref, list.Next, "")
		}
		if list.Prev != "" {
			m.Pages.Prev = q.url(ref, "", list.Prev)
		}
	}
	if !page.Wants(r, clusterview.OperationViewID) {
		groups, err := s.Clusters.TaskGroups(r.Context(), actor, ref)
		if err != nil {
			return err
		}
		nodes, err := s.names.of(r.Context(), s.Clusters, actor, op, s.Now)
		if err != nil {
			return err
		}
		tableOptions(&m, groups, nodes, q)
	}
	return s.showOperation(w, r, actor, op, "table", clusterview.OperationView{Table: &m})
}

func (s *Server) taskRow(t loom.Task) clusterview.TaskRow {
	row := clusterview.TaskRow{
		Number: strconv.Itoa(t.Ref.Number), Href: route.Task(t.Ref), Stage: strconv.Itoa(t.Level), Node: page.ShortHost(t.NodeHostname),
		NodeHref: route.Node(t.Ref.Operation.Cluster, t.Node), Service: t.Service, Action: string(t.Action), State: ui.TaskStateOf(&t),
		Started: t.Started, Ended: t.Ended, Undo: t.Undo,
	}
	if t.Attempt > 0 {
		row.Attempt = strconv.Itoa(t.Attempt)
	}
	return row
}

// nodesOffered is how many nodes the filter of the table lists; those of others are
// reached from the timeline and from their own pages.
const nodesOffered = 60

// tableOptions offers what occurs in the plan.
func tableOptions(m *clusterview.TaskTable, groups []clusters.TaskGroup, nodes []clusters.NodeName, q tableQuery) {
	services, actions, levels := map[string]bool{}, map[string]bool{}, 0
	for _, g := range groups {
		actions[string(g.Action)] = true
		levels = max(levels, g.Level)
		if g.Service != "" {
			services[g.Service] = true
		}
	}
	options := func(label, chosen string, values []string) []ui.Option {
		out := []ui.Option{{Label: label}}
		for _, value := range values {
			out = append(out, ui.Option{Value: value, Label: value, Selected: value == chosen})
		}
		return out
	}
	m.Nodes = []ui.Option{{Label: "All nodes"}}
	if len(nodes) > nodesOffered {
		m.Nodes[0].Label = fmt.Sprintf("All %d nodes, the first %d listed", len(nodes), nodesOffered)
	}
	for i, n := range nodes {
		if i >= nodesOffered && string(n.ID) != q.node {
			continue
		}
		m.Nodes = append(m.Nodes, ui.Option{Value: string(n.ID), Label: page.ShortHost(n.Hostname), Selected: string(n.ID) == q.node})
	}
	m.Services = options("All services", q.service, slices.Sorted(maps.Keys(services)))
	m.Verbs = options("All actions", q.action, slices.Sorted(maps.Keys(actions)))
	m.Levels = []ui.Option{{Label: "All stages"}}
	for n := range levels {
		value := strconv.Itoa(n + 1)
		m.Levels = append(m.Levels, ui.Option{Value: value, Label: "Stage " + value, Selected: value == q.stage})
	}
	m.Statuses = []ui.Option{{Label: "All states"}, {Value: "waiting", Label: "Waiting", Selected: q.status == "waiting"}}
	for _, st := range []loom.TaskStatus{loom.TaskRunning, loom.TaskComplete, loom.TaskFailed, loom.TaskSkipped, loom.TaskDropped} {
		m.Statuses = append(m.Statuses, ui.Option{Value: string(st), Label: ui.TaskState(st).Word, Selected: q.status == string(st)})
	}
}
