package api

import (
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/loom"
)

func (a *api) orphanRoutes() []route {
	return []route{
		{method: get, path: "/v2/orphans", summary: "List machines of Loom that no live node claims; for superadmins", fresh: true, paged: true,
			answer: "[]Orphan", handle: a.listOrphans},
		{method: del, path: "/v2/orphans/{id}", summary: "Remove such a machine at its provider; waits up to 60 s; for superadmins", fresh: true, handle: a.removeOrphan},
		{method: get, path: "/v2/leftovers", summary: "List machines that deletes of clusters left behind; for superadmins", fresh: true, paged: true,
			answer: "[]LeftBehind", handle: a.listLeftovers},
	}
}

func (a *api) listLeftovers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	leftovers, err := a.Fleet.Leftovers(r.Context(), actor)
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
	orphans, err := a.Fleet.Orphans(r.Context(), actor)
	if err != nil {
		return err
	}
	id := func(o loom.Orphan) string { return byNumber(int(o.ID)) }
	return answerList(w, r, true, orphans, wire.NewOrphan,
		order[loom.Orphan]{"-firstSeen", func(o loom.Orphan) string { return byNumber(int(o.FirstSeen.UnixMilli())) + id(o) }},
		order[loom.Orphan]{"id", id})
}

func (a *api) removeOrphan(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := actor.RequireSuperadmin(); err != nil {
		return err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return loom.NewError(loom.NotFound, "There is no orphaned machine “%.40s”.", r.PathValue("id"))
	}
	if err := a.Fleet.RemoveOrphan(r.Context(), actor, id); err != nil {
		return err
	}
	return done(w)
}
