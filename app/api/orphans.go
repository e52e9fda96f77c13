package api

import (
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) orphanRoutes() []route {
	return []route{
		{method: get, path: "/v2/orphans", verb: loom.Install, summary: "List machines of Loom that no live node claims; for superadmins", fresh: true, paged: true,
			answer: "[]Orphan", handle: a.listOrphans},
		{method: del, path: "/v2/orphans/{id}", verb: loom.Install, summary: "Remove such a machine at its provider; waits up to 60 s; for superadmins", fresh: true, handle: a.removeOrphan},
		{method: get, path: "/v2/leftovers", verb: loom.Install, summary: "List machines that deletes of clusters left behind; for superadmins", fresh: true, paged: true,
			answer: "[]LeftBehind", handle: a.listLeftovers},
		{method: get, path: "/v2/sweeps", verb: loom.Install, summary: "List the last search of each provider for unused machines; for superadmins", fresh: true, paged: true,
			answer: "[]Sweep", handle: a.listSweeps},
		{method: post, path: "/v2/sweeps", verb: loom.Install, summary: "Search all providers with machines for unused ones, now; does not wait; for superadmins", fresh: true, handle: a.beginSweeps},
		{method: get, path: "/v2/providers/{name}/sweep", verb: loom.Publish, summary: "Read the last search of a provider for unused machines; for administrators", fresh: true, answer: "Sweep", handle: a.sweep},
		{method: post, path: "/v2/providers/{name}/sweep", verb: loom.Publish, summary: "Search a provider for unused machines, now; does not wait; for administrators", fresh: true, answer: "Sweep", handle: a.beginSweep},
	}
}

func (a *api) listLeftovers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	leftovers, err := a.Processes.Leftovers(r.Context(), actor)
	if err != nil {
		return err
	}
	tenants, err := a.Accounts.Tenants(r.Context(), actor)
	if err != nil {
		return err
	}
	names := make(map[loom.TenantID]string, len(tenants))
	for _, t := range tenants {
		names[t.ID] = t.Name
	}
	id := func(l loom.Leftover) string { return byNumber(int(l.ID)) }
	return answerList(w, r, true, leftovers, func(l loom.Leftover) wire.LeftBehind { return wire.NewLeftBehind(l, names[l.Tenant]) },
		order[loom.Leftover]{"-firstSeen", func(l loom.Leftover) string { return byNumber(int(l.First.UnixMilli())) + id(l) }},
		order[loom.Leftover]{"id", id})
}

func (a *api) listOrphans(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	orphans, err := a.Processes.Orphans(r.Context(), actor)
	if err != nil {
		return err
	}
	id := func(o loom.Orphan) string { return byNumber(int(o.ID)) }
	return answerList(w, r, true, orphans, wire.NewOrphan,
		order[loom.Orphan]{"-firstSeen", func(o loom.Orphan) string { return byNumber(int(o.FirstSeen.UnixMilli())) + id(o) }},
		order[loom.Orphan]{"id", id})
}

func (a *api) removeOrphan(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return loom.NewError(loom.NotFound, "There is no orphaned machine “%.40s”.", r.PathValue("id"))
	}
	if err := a.Processes.RemoveOrphan(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}

func (a *api) listSweeps(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	sweeps, err := a.Processes.Sweeps(r.Context(), actor)
	if err != nil {
		return err
	}
	return answerList(w, r, true, sweeps, wire.NewSweep,
		order[loom.Sweep]{"provider", func(s loom.Sweep) string { return s.Provider + " " + s.TenantName }})
}

func (a *api) beginSweeps(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if _, err := a.Processes.BeginSweeps(r.Context(), actor); err != nil {
		return err
	}
	return done(w)
}

func (a *api) sweep(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	sweep, _, err := a.Processes.Sweep(r.Context(), actor, r.PathValue("name"))
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewSweep(sweep))
}

func (a *api) beginSweep(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := a.Processes.BeginSweep(r.Context(), actor, r.PathValue("name")); err != nil {
		return err
	}
	return a.sweep(w, r, actor)
}
