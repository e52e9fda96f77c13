package web

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// operationTable is all tasks in a table with filters.
func (s *Server) operationTable(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := pathOperation(r)
	if err != nil {
		return err
	}
	op, err := s.Clusters.Operation(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	all, err := s.Clusters.Tasks(r.Context(), actor, ref, lifecycle.TaskFilter{})
	if err != nil {
		return err
	}
	q := r.URL.Query()
	f := lifecycle.TaskFilter{Node: loom.NodeID(q.Get("node")), Service: q.Get("service"), Action: loom.TaskAction(q.Get("action"))}
	switch status := loom.TaskStatus(q.Get("status")); status {
	case "":
	case "waiting":
		f.Statuses = []loom.TaskStatus{loom.TaskBlocked, loom.TaskReady}
	default:
		f.Statuses = []loom.TaskStatus{status}
	}
	tasks, err := s.Clusters.Tasks(r.Context(), actor, ref, f)
	if err != nil && !errors.Is(err, loom.Invalid) {
		return err
	}
	m := clusterview.TaskTable{Action: route.OperationTasks(ref), Filtered: q.Encode() != "", Total: len(all)}
	for _, t := range tasks {
		m.Rows = append(m.Rows, s.taskRow(t))
	}
	tableOptions(&m, all, q.Get("status"), f)
	return s.showOperation(w, r, actor, op, "table", clusterview.OperationView{Table: &m})
}

func (s *Server) taskRow(t loom.Task) clusterview.TaskRow {
	row := clusterview.TaskRow{
		Number: strconv.Itoa(t.Ref.Number), Href: route.Task(t.Ref), Stage: strconv.Itoa(t.Level), Node: shortHost(t.NodeHostname),
		NodeHref: route.Node(t.Ref.Operation.Cluster, t.Node), Service: t.Service, Action: string(t.Action), State: ui.TaskState(t.Status),
		Duration: s.elapsed(t.Started, t.Ended), Undo: t.Undo,
	}
	if t.Attempt > 0 {
		row.Attempt = strconv.Itoa(t.Attempt)
	}
	if !t.Started.IsZero() {
		row.Started = ui.Relative(t.Started, s.now())
	}
	return row
}

// tableOptions offers what occurs in the plan.
func tableOptions(m *clusterview.TaskTable, all []loom.Task, status string, f lifecycle.TaskFilter) {
	nodes, services, actions := map[string]string{}, map[string]string{}, map[string]string{}
	for _, t := range all {
		nodes[string(t.Node)] = shortHost(t.NodeHostname)
		actions[string(t.Action)] = string(t.Action)
		if t.Service != "" {
			services[t.Service] = t.Service
		}
	}
	options := func(label string, values map[string]string, chosen string) []ui.Option {
		out := []ui.Option{{Label: label}}
		keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
			if values[a] < values[b] {
				return -1
			}
			return 1
		})
		for _, key := range keys {
			out = append(out, ui.Option{Value: key, Label: values[key], Selected: key == chosen})
		}
		return out
	}
	m.Nodes = options("All nodes", nodes, string(f.Node))
	m.Services = options("All services", services, f.Service)
	m.Verbs = options("All actions", actions, string(f.Action))
	m.Statuses = []ui.Option{{Label: "All states"}, {Value: "waiting", Label: "Waiting", Selected: status == "waiting"}}
	for _, st := range []loom.TaskStatus{loom.TaskRunning, loom.TaskComplete, loom.TaskFailed, loom.TaskSkipped, loom.TaskDropped} {
		m.Statuses = append(m.Statuses, ui.Option{Value: string(st), Label: ui.TaskState(st).Word, Selected: status == string(st)})
	}
}
