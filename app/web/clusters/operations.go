package clusters

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// operationsShown is how many operations a page of the tab has.
const operationsShown = 25

// operationsQuery is what the filters of the tab of operations say.
type operationsQuery struct{ action, result, after, before string }

func readOperationsQuery(q url.Values) operationsQuery {
	return operationsQuery{q.Get("action"), q.Get("result"), q.Get("after"), q.Get("before")}
}

func (q operationsQuery) url(base string) string {
	return route.Query(base, "action", q.action, "result", q.result, "after", q.after, "before", q.before)
}

func (q operationsQuery) input() clusters.OperationListInput {
	in := clusters.OperationListInput{Page: loom.Page{Sort: "-number", Limit: operationsShown, After: q.after, Before: q.before}}
	if q.action != "" {
		in.Actions = []loom.ClusterAction{loom.ClusterAction(q.action)}
	}
	switch q.result {
	case "":
	case "running":
		for _, status := range loom.OperationStatuses {
			if !status.Final() {
				in.Statuses = append(in.Statuses, status)
			}
		}
	default:
		in.Statuses = []loom.OperationStatus{loom.OperationStatus(q.result)}
	}
	return in
}

func (s *Server) clusterOperations(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := s.pathCluster(r, actor)
	if err != nil {
		return err
	}
	q := readOperationsQuery(r.URL.Query())
	m, err := s.operationsPart(r.Context(), actor, v.ID, q)
	if err != nil {
		return err
	}
	m.Filters = operationFilters(v, q)
	events, err := s.clusterEvents(r.Context(), actor, v)
	if err != nil {
		return err
	}
	page := clusterview.HistoryPage(s.clusterHead(actor, v, "operations"), m, events)
	return s.Render(w, r, actor, http.StatusOK, s.clusterFrame(r, v, "History"), page)
}

// operationsPart is a page of the operations of a cluster, newest first.
func (s *Server) operationsPart(ctx context.Context, actor loom.Actor, id loom.ClusterID, q operationsQuery) (clusterview.OperationsModel, error) {
	base := route.ClusterOperations(id)
	m := clusterview.OperationsModel{ID: id, Live: q.url(clusterview.PartURL(id, clusterview.PartOperations)), Clear: base}
	list, err := s.Clusters.OperationPage(ctx, actor, id, q.input())
	if err != nil && !errors.Is(err, loom.Invalid) { // no operation is what no filter is
		return m, err
	}
	if err := s.fillOperations(ctx, actor, &m, list.Items); err != nil {
		return m, err
	}
	if list.Next != "" || list.Prev != "" {
		m.Pages = ui.PaginationModel{Label: "Pages of operations", Text: ui.Count(len(m.Rows), "operation", "operations")}
		next, prev := q, q
		if next.after, next.before = list.Next, ""; list.Next != "" {
			m.Pages.Next = next.url(base)
		}
		if prev.after, prev.before = "", list.Prev; list.Prev != "" {
			m.Pages.Prev = prev.url(base)
		}
	}
	return m, nil
}

func (s *Server) fillOperations(ctx context.Context, actor loom.Actor, m *clusterview.OperationsModel, operations []loom.Operation) error {
	for _, op := range operations {
		retry, err := s.retryWord(ctx, actor, op)
		if err != nil {
			return err
		}
		m.Rows = append(m.Rows, clusterview.OperationRow{Operation: op, Retry: retry})
	}
	return nil
}

// byWhom names who did something.
func byWhom(actor loom.Actor, user loom.UserID) string {
	if user == actor.User {
		return "you"
	}
	return string(user)
}

// operationFilters offers actions and results.
func operationFilters(v clusters.ClusterView, q operationsQuery) *clusterview.OperationFilters {
	f := &clusterview.OperationFilters{
		Action: route.ClusterOperations(v.ID), Filtered: q.action+q.result != "",
		Actions: []ui.Option{{Label: "All actions"}}, Results: []ui.Option{{Label: "All results"}, {Value: "running", Label: "Running", Selected: q.result == "running"}},
	}
	for _, action := range loom.ClusterActions {
		f.Actions = append(f.Actions, ui.Option{Value: string(action), Label: ui.Capital(action.Verb()), Selected: string(action) == q.action})
	}
	for _, status := range loom.OperationStatuses {
		if status.Final() {
			f.Results = append(f.Results, ui.Option{Value: string(status), Label: ui.OperationState(status, false).Word, Selected: string(status) == q.result})
		}
	}
	return f
}
