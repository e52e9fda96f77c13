package api

import (
	"context"
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
)

// rolloutRoutes are about changes of many clusters. All are for administrators.
func (a *api) rolloutRoutes() []route {
	const one = "/v2/rollouts/{id}"
	routes := []route{
		{method: get, path: "/v2/rollouts", verb: loom.Operate, summary: "List rollouts, the newest first", fresh: true, paged: true, answer: "[]Rollout", handle: a.listRollouts,
			query: []param{{"status", "string", "Statuses, separated by commas: ready, running, stopped, complete or aborted."}}},
		{method: post, path: "/v2/rollouts", verb: loom.Operate, summary: "Work out a change of many clusters in waves; nothing happens before its start", fresh: true, once: true, body: "RolloutRequest", answer: "Rollout", handle: a.makeRollout},
		{method: get, path: one, verb: loom.Operate, summary: "Read a rollout", fresh: true, answer: "Rollout", handle: a.showRollout},
		{method: get, path: one + "/clusters", verb: loom.Operate, summary: "List the clusters of a rollout in the order of their turns, those left out last", fresh: true, paged: true, answer: "[]RolloutCluster", handle: a.rolloutClusters,
			query: []param{
				{"wave", "integer", "A wave; with 0 those that are left out."},
				{"status", "string", "Statuses, separated by commas: waiting, running, done, failed, undone or skipped."},
				{"effect", "string", "Effects, separated by commas: in_place, restart, replace or impossible."},
			}},
		{method: post, path: one + "/start", verb: loom.Operate, summary: "Start a rollout as it was shown", fresh: true, body: "RolloutStart", answer: "Rollout", handle: a.startRollout},
	}
	for _, s := range []struct {
		word, summary string
		do            func(*clusters.Clusters) steerRollout
	}{
		{"stop", "Begin nothing more of a rollout; operations that run continue", func(u *clusters.Clusters) steerRollout { return u.StopRollout }},
		{"resume", "Let a stopped rollout go on; clusters that failed get another turn", func(u *clusters.Clusters) steerRollout { return u.ResumeRollout }},
		{"continue", "Let the next wave begin without waiting", func(u *clusters.Clusters) steerRollout { return u.ContinueRollout }},
		{"abort", "End a rollout; operations that run are aborted", func(u *clusters.Clusters) steerRollout { return u.AbortRollout }},
	} {
		routes = append(routes, route{method: post, path: one + "/" + s.word, verb: loom.Operate, summary: s.summary, fresh: true, answer: "Rollout", handle: a.steerRollout(s.do)})
	}
	return routes
}

func (a *api) listRollouts(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	statuses, err := oneOf(r, "status", loom.RolloutStatuses)
	if err != nil {
		return err
	}
	views, next, prev, err := a.Clusters.Rollouts(r.Context(), actor, textsOf(statuses), page)
	if err != nil {
		return err
	}
	return answerPage(w, r, views, wire.NewRollout, next, prev)
}

func textsOf[T ~string](values []T) []string {
	var all []string
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

func (a *api) makeRollout(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadRollout(body)
	if err != nil {
		return err
	}
	v, err := a.Clusters.MakeRollout(r.Context(), actor, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewRollout(v))
}

func rolloutNumber(r *http.Request) (int, error) {
	n, err := strconv.ParseInt(r.PathValue("id"), 10, 32)
	if err != nil || n <= 0 {
		return 0, loom.NewError(loom.NotFound, "There is no rollout “%.20s”.", r.PathValue("id"))
	}
	return int(n), nil
}

func (a *api) showRollout(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := rolloutNumber(r)
	if err != nil {
		return err
	}
	v, err := a.Clusters.Rollout(r.Context(), actor, n)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewRollout(v))
}

func (a *api) rolloutClusters(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := rolloutNumber(r)
	if err != nil {
		return err
	}
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	var f clusters.RolloutFilter
	if text := r.URL.Query().Get("wave"); text != "" {
		wave, err := strconv.ParseInt(text, 10, 32)
		if err != nil || wave < 0 {
			return loom.InvalidFields([]loom.FieldError{{Field: "wave", Message: "Give the number of a wave."}})
		}
		f.Wave = new(int(wave))
	}
	statuses, err := oneOf(r, "status", loom.RolloutClusterStatuses)
	if err != nil {
		return err
	}
	effects, err := oneOf(r, "effect", clusters.Effects)
	if err != nil {
		return err
	}
	f.Statuses, f.Effects = textsOf(statuses), textsOf(effects)
	list, err := a.Clusters.RolloutClusters(r.Context(), actor, n, f, page)
	if err != nil {
		return err
	}
	return answerPage(w, r, list.Items, wire.NewRolloutCluster, list.Next, list.Prev)
}

func (a *api) startRollout(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	n, err := rolloutNumber(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	in, err := wire.ReadRolloutStart(body)
	if err != nil {
		return err
	}
	v, err := a.Clusters.StartRollout(r.Context(), actor, n, in)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewRollout(v))
}

// steerRollout stops, resumes, continues or aborts a rollout.
type steerRollout func(ctx context.Context, actor loom.Actor, number int) (clusters.RolloutView, error)

func (a *api) steerRollout(do func(*clusters.Clusters) steerRollout) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		n, err := rolloutNumber(r)
		if err != nil {
			return err
		}
		v, err := do(a.Clusters)(r.Context(), actor, n)
		if err != nil {
			return err
		}
		return answer(w, r, wire.NewRollout(v))
	}
}
