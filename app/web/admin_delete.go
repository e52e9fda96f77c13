package web

import (
	"net/http"
	"slices"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// adminDeleteAsk asks whether to delete an entry, naming what would miss it.
func (s *Server) adminDeleteAsk(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		name := entryName(r)
		infos, err := s.Catalog.Versions(r.Context(), actor, kind, name)
		if err != nil {
			return err
		}
		uses, err := s.usesOf(r, actor, kind, name)
		if err != nil {
			return err
		}
		users := usersOf(uses)
		all := len(users)
		entries := slices.DeleteFunc(users, func(u adminview.Use) bool { return u.Kind == catalog.KindCluster.Word() })
		clusters := ""
		if made := all - len(entries); made > 0 {
			clusters = ui.Count(made, "cluster was", "clusters were") + " made from it; nothing changes there."
		}
		page := entryFrame(kind, name, "Delete")
		page.Title = "Delete " + kind.Word() + " " + name
		return s.accountConfirm(w, r, actor, page, adminview.DeleteForm(adminview.DeleteModel{
			Kind: kind, Name: name, Versions: ui.Count(len(infos), "version", "versions"), Uses: entries, Clusters: clusters, Back: route.AdminEntry(kind, name),
		}, route.AdminEntryDelete(kind, name)))
	}
}

func (s *Server) adminDelete(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		name := entryName(r)
		// Deleting what is not there is no error of the use case, but nothing to
		// announce either.
		if _, err := s.Catalog.Versions(r.Context(), actor, kind, name); err != nil {
			return err
		}
		if err := s.Catalog.Delete(r.Context(), actor, kind, name, 0); err != nil {
			return err
		}
		return s.say(w, r, route.AdminKind(kind), deletedFlash(kind, name))
	}
}
