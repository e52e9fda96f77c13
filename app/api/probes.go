package api

import (
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) probeRoutes() []route {
	const path = "/v2/providers/{name}/probe"
	return []route{
		{method: get, path: path, verb: loom.Administer, summary: "Read what the newest probe of a provider found; for administrators", fresh: true, answer: "Probe", handle: a.lastProbe},
		{method: post, path: path, verb: loom.Administer, summary: "Ask a provider whether it works, and for its sizes and images; waits up to 60 s; for administrators",
			fresh: true, answer: "Probe", handle: a.probe},
		{method: post, path: "/v2/providers/probe", verb: loom.Administer, summary: "Begin a probe of a provider before it is saved; secrets that are left out come from the stored provider of its name, unless its address changes; for administrators",
			fresh: true, body: "Provider", answer: "Probe", success: http.StatusAccepted, handle: a.probeDraft},
		{method: get, path: "/v2/probes/{probe}", verb: loom.Administer, summary: "Follow a probe: the steps so far, then the answer; for administrators", fresh: true, answer: "Probe", handle: a.showProbe},
	}
}

func (a *api) lastProbe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	probe, err := a.Processes.LastProbe(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProbe(probe))
}

func (a *api) probe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	probe, err := a.Processes.Probe(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProbe(probe))
}

func (a *api) probeDraft(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	draft, err := a.Catalog.ProviderDraft(r.Context(), actor, body)
	if err != nil {
		return err
	}
	id, err := a.Processes.BeginDraft(r.Context(), actor, draft)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v2/probes/"+strconv.FormatInt(id, 10))
	begun, err := a.Processes.ProbeByID(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answerStatus(w, http.StatusAccepted, wire.NewProbe(begun))
}

func (a *api) showProbe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := strconv.ParseInt(r.PathValue("probe"), 10, 64)
	if err != nil || id <= 0 {
		return loom.NewError(loom.NotFound, "There is no test “%.40s”.", r.PathValue("probe"))
	}
	probe, err := a.Processes.ProbeByID(r.Context(), actor, id)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProbe(probe))
}
