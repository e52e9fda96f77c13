package api

import (
	"net/http"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) probeRoutes() []route {
	const path = "/v2/providers/{name}/probe"
	return []route{
		{method: get, path: path, summary: "Read what the newest probe of a provider found; for administrators", fresh: true, answer: "Probe", handle: a.lastProbe},
		{method: post, path: path, summary: "Ask a provider whether it works, and for its sizes and images; waits up to 60 s; for administrators",
			fresh: true, answer: "Probe", handle: a.probe},
	}
}

func (a *api) lastProbe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	probe, err := a.Fleet.LastProbe(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProbe(probe))
}

func (a *api) probe(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	probe, err := a.Fleet.Probe(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewProbe(probe))
}
