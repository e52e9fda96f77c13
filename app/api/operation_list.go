package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/loom"
)

// listOperations and listTasks leave filters and pages to the database: a plan may
// have hundreds of thousands of tasks.
func (a *api) listOperations(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	in := clusters.OperationListInput{Page: page, Statuses: wordsOf[loom.OperationStatus](r, "status"), Actions: wordsOf[loom.ClusterAction](r, "action")}
	found, err := a.Clusters.OperationPage(r.Context(), actor, id, in)
	if err != nil {
		return err
	}
	linkPages(w, r, found.Next, found.Prev)
	out := make([]wire.Operation, len(found.Items))
	for i, op := range found.Items {
		out[i] = wire.NewOperation(op)
	}
	return answer(w, r, out)
}

func (a *api) listTasks(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := operationRef(r)
	if err != nil {
		return err
	}
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	in := clusters.TaskListInput{
		Page: page, Statuses: wordsOf[loom.TaskStatus](r, "status"), Node: loom.NodeID(r.URL.Query().Get("node")),
		Services: wordsOf[string](r, "service"), Actions: wordsOf[loom.TaskAction](r, "action"),
	}
	found, err := a.Clusters.TaskPage(r.Context(), actor, ref, in)
	if err != nil {
		return err
	}
	linkPages(w, r, found.Next, found.Prev)
	out := make([]wire.Task, len(found.Items))
	for i, t := range found.Items {
		out[i] = wire.NewTask(t.Task, t.DependsOn, behind(t.Behind))
	}
	return answer(w, r, out)
}

// wordsOf reads a comma-separated parameter; the use case knows the valid values.
func wordsOf[T ~string](r *http.Request, name string) []T {
	var out []T
	for _, word := range words(r.URL.Query().Get(name)) {
		out = append(out, T(word))
	}
	return out
}
