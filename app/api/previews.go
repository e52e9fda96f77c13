package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
)

func (a *api) createPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadPreview(body)
	if err != nil {
		return err
	}
	v, err := a.Clusters.Preview(r.Context(), actor, in)
	if err != nil {
		return within("request", err)
	}
	return answerPreview(w, r, v)
}

func answerPreview(w http.ResponseWriter, r *http.Request, v clusters.PreviewView) error {
	var missing any
	if len(v.Missing) > 0 {
		missing = httpx.MissingFields(v.Missing)
	}
	return answer(w, r, wire.NewPreview(v, missing))
}

func (a *api) preview(r *http.Request, actor loom.Actor) (clusters.PreviewView, error) {
	return a.Clusters.PreviewByID(r.Context(), actor, loom.PreviewID(r.PathValue("id")))
}

func (a *api) showPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := a.preview(r, actor)
	if err != nil {
		return err
	}
	return answerPreview(w, r, v)
}

func (a *api) discardPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Clusters.Discard(r.Context(), actor, loom.PreviewID(r.PathValue("id"))); err != nil {
		return err
	}
	return done(w)
}

func (a *api) applyPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadApply(body, loom.PreviewID(r.PathValue("id")))
	if err != nil {
		return err
	}
	ref, err := a.Clusters.Apply(r.Context(), actor, in)
	if err != nil {
		return err
	}
	applied := map[string]string{"id": ref.Cluster.String()}
	if ref.Number > 0 { // a sync has no operation
		applied["operationId"] = ref.String()
	}
	return answer(w, r, applied)
}

// previewChanges lists what happens to what; the order is that of the preview.
func (a *api) previewChanges(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := a.preview(r, actor)
	if err != nil {
		return err
	}
	type numbered struct {
		n int
		wire.Change
	}
	changes := make([]numbered, len(v.Changes))
	for i, c := range wire.NewChanges(v.Changes) {
		changes[i] = numbered{i, c}
	}
	return answerList(w, r, true, changes, func(c numbered) wire.Change { return c.Change },
		order[numbered]{"number", func(c numbered) string { return byNumber(c.n) }})
}

func (a *api) previewTasks(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := a.preview(r, actor)
	if err != nil {
		return err
	}
	// Until it is applied, nobody knows the operation's number but for a new cluster.
	ref := v.Applied
	if ref.Number == 0 {
		ref = loom.OperationRef{Cluster: v.Cluster, Number: 1}
	}
	waits := dependencies(v.Plan)
	shown := func(t loom.PlanTask) wire.Task {
		on := waits[t.Number]
		task := wire.NewPlannedTask(ref, t, on.DependsOn, behind(on.Behind))
		if v.Kind != loom.ChangeCreate && v.Applied.Number == 0 {
			task.ID = ""
		}
		return task
	}
	number := func(t loom.PlanTask) string { return byNumber(t.Number) }
	return answerList(w, r, true, v.Plan.Tasks, shown, order[loom.PlanTask]{"number", number}, order[loom.PlanTask]{"-number", number})
}
