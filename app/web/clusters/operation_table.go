package clusters

import (
	"errors"
	"fmt"
	"net/http"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// tasksShown is how many rows the table of tasks has on a page.
const tasksShown = 100

// tableQuery is which rows the table shows: a page of those that pass the filters.
type tableQuery struct {
	taskQuery
	after, before string
}

func (q tableQuery) url(ref loom.OperationRef, after, before string) string {
	return q.taskQuery.url(route.OperationTasks(ref), "after", after, "before", before)
}

func (q tableQuery) input() clusters.TaskListInput {
	in := clusters.TaskListInput{Page: loom.Page{Sort: "number", Limit: tasksShown, After: q.after, Before: q.before}, Node: loom.NodeID(q.node), Level: q.level()}
	if q.service != "" {
		in.Services = []string{q.service}
	}
	if q.action != "" {
		in.Actions = []loom.TaskAction{loom.TaskAction(q.action)}
	}
	in.Statuses, in.Again = q.statuses()
	return in
}

// operationTable is all tasks in a table with filters, page by page.
func (s *Server) operationTable(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	op, err := s.pathOperation(r, actor)
	if err != nil {
		return err
	}
	ref := op.Ref
	values := r.URL.Query()
	q := tableQuery{readTaskQuery(values), values.Get("after"), values.Get("before")}
	list, err := s.Clusters.TaskPage(r.Context(), actor, ref, q.input())
	if err != nil && !errors.Is(err, loom.Invalid) {
		return err
	}
	m := clusterview.TaskTable{Clear: route.OperationTasks(ref), Rows: list.Items}
	if list.Next != "" || list.Prev != "" {
		m.Pages = ui.PaginationModel{Label: "Pages of tasks", Text: ui.Count(len(m.Rows), "task", "tasks")}
		if !q.filtered() {
			m.Pages.Text = fmt.Sprintf("%d to %d of %d tasks", m.Rows[0].Ref.Number, m.Rows[len(m.Rows)-1].Ref.Number, op.Progress().Total)
		}
		if list.Next != "" {
			m.Pages.Next = q.url(ref, list.Next, "")
		}
		if list.Prev != "" {
			m.Pages.Prev = q.url(ref, "", list.Prev)
		}
	}
	return s.showOperation(w, r, actor, op, "table", clusterview.OperationView{Table: &m})
}
