package clusters

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// taskQuery is what the filters of an operation say; all its views keep to them.
type taskQuery struct{ node, service, action, status, stage string }

// What the filter of states offers beside statuses.
const (
	statusWaiting = "waiting" // blocked or ready
	statusOpen    = "open"    // neither complete nor skipped
)

func readTaskQuery(q url.Values) taskQuery {
	return taskQuery{q.Get("node"), q.Get("service"), q.Get("action"), q.Get("status"), q.Get("stage")}
}

func (q taskQuery) filtered() bool { return q != taskQuery{} }

// pairs are the parameters of a URL.
func (q taskQuery) pairs() []string {
	return []string{"status", q.status, "action", q.action, "service", q.service, "node", q.node, "stage", q.stage}
}

// url is a page that keeps to the filters, with other parameters.
func (q taskQuery) url(base string, more ...string) string {
	return route.Query(base, append(q.pairs(), more...)...)
}

func (q taskQuery) level() int {
	if n, err := strconv.Atoi(q.stage); err == nil && n > 0 && n < 1<<30 {
		return n
	}
	return 0
}

// statuses are those that pass, none for all; again adds tasks that failed and are tried again.
func (q taskQuery) statuses() (statuses []loom.TaskStatus, again bool) {
	switch status := loom.TaskStatus(q.status); status {
	case "":
		return nil, false
	case statusWaiting:
		return []loom.TaskStatus{loom.TaskBlocked, loom.TaskReady}, false
	case statusOpen:
		return []loom.TaskStatus{loom.TaskBlocked, loom.TaskReady, loom.TaskRunning, loom.TaskFailed, loom.TaskDropped}, false
	default:
		return []loom.TaskStatus{status}, status == loom.TaskFailed
	}
}

// matches reports whether a task passes.
func (q taskQuery) matches(t *loom.Task) bool {
	return (q.node == "" || string(t.Node) == q.node) && q.matchesGroup(t.Level, t.Action, t.Service, t.Status, t.Again)
}

// matchesGroup is matches for what tasks of several nodes have in common.
func (q taskQuery) matchesGroup(level int, action loom.TaskAction, service string, status loom.TaskStatus, isAgain bool) bool {
	statuses, again := q.statuses()
	return (q.service == "" || service == q.service) && (q.action == "" || string(action) == q.action) && (q.level() == 0 || level == q.level()) &&
		(statuses == nil || slices.Contains(statuses, status) || again && isAgain)
}

// only is the filter for a picture, nil where all tasks pass.
func (q taskQuery) only(tasks planTasks) func(number int) bool {
	if !q.filtered() {
		return nil
	}
	return func(number int) bool {
		t := tasks.now(number)
		return q.matches(&t)
	}
}

// filterTasks reads the tasks of an operation that pass.
func (s *Server) filterTasks(ctx context.Context, actor loom.Actor, ref loom.OperationRef, q taskQuery) ([]loom.Task, error) {
	tasks, err := s.Clusters.Tasks(ctx, actor, ref, clusters.TaskFilter{})
	return slices.DeleteFunc(tasks, func(t loom.Task) bool { return !q.matches(&t) }), err
}

// nodesOffered is how many nodes the filter lists; those of others are reached from the
// timeline and from their own pages.
const nodesOffered = 60

// taskFilters offers what occurs in the plan, on the page of a view with its own parameters.
func (s *Server) taskFilters(ctx context.Context, actor loom.Actor, op loom.Operation, q taskQuery, base string, own url.Values) (*clusterview.TaskFilters, error) {
	groups, err := s.Clusters.TaskGroups(ctx, actor, op.Ref)
	if err != nil {
		return nil, err
	}
	nodes, err := s.names.of(ctx, s.Clusters, actor, op, s.Now)
	if err != nil {
		return nil, err
	}
	m := &clusterview.TaskFilters{Action: base, Filtered: q.filtered()}
	var keep []string
	for _, name := range []string{"by", "group", "sort", "find", "errors"} {
		if value := own.Get(name); value != "" {
			m.Keep = append(m.Keep, ui.Option{Label: name, Value: value})
			keep = append(keep, name, value)
		}
	}
	m.Clear = route.Query(base, keep...)
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
		m.Nodes = append(m.Nodes, ui.Option{Value: string(n.ID), Label: ui.NodeNumber(n.Hostname), Selected: string(n.ID) == q.node})
	}
	m.Services = options("All services", q.service, slices.Sorted(maps.Keys(services)))
	m.Verbs = options("All actions", q.action, slices.Sorted(maps.Keys(actions)))
	m.Levels = []ui.Option{{Label: "All stages"}}
	for n := range levels {
		value := strconv.Itoa(n + 1)
		m.Levels = append(m.Levels, ui.Option{Value: value, Label: "Stage " + value, Selected: value == q.stage})
	}
	m.Statuses = []ui.Option{{Label: "All states"}}
	for _, o := range []ui.Option{{Value: string(loom.TaskFailed), Label: "Failed only"}, {Value: statusOpen, Label: "Not complete"}, {Value: string(loom.TaskRunning), Label: "Running"},
		{Value: statusWaiting, Label: "Waiting"}, {Value: string(loom.TaskComplete), Label: "Complete"}, {Value: string(loom.TaskSkipped), Label: "Skipped"}, {Value: string(loom.TaskDropped), Label: "Dropped"}} {
		o.Selected = q.status == o.Value
		m.Statuses = append(m.Statuses, o)
	}
	return m, nil
}
