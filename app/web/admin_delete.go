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
		action, blocked := route.AdminEntryDelete(kind, name), len(needing(users)) > 0
		if blocked {
			action = adminview.EntryDeprecate(kind, name)
		}
		return s.accountConfirm(w, r, actor, page, adminview.DeleteForm(adminview.DeleteModel{
			Kind: kind, Name: name, Versions: ui.Count(len(infos), "version", "versions"), Uses: entries, Blocked: blocked, Clusters: clusters, Back: route.AdminEntry(kind, name),
		}, action))
	}
}

// needing are the templates, and the parts of them, that would not work without an
// entry: while there are any, it is not deleted (portals.md 2.3).
func needing(users []adminview.Use) []string {
	var names []string
	for _, u := range users {
		if u.Kind == loom.KindTemplate.Word() || u.Kind == loom.KindPartialTemplate.Word() {
			names = append(names, u.Name)
		}
	}
	return names
}

func (s *Server) adminDelete(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		name := entryName(r)
		// Deleting what is not there is no error of the use case, but nothing to
		// announce either.
		if _, err := s.Catalog.Versions(r.Context(), actor, kind, name); err != nil {
			return err
		}
		uses, err := s.usesOf(r, actor, kind, name)
		if err != nil {
			return err
		}
		if by := needing(usersOf(uses)); len(by) > 0 {
			return loom.NewError(loom.Conflict, "The %s “%s” is not deleted: %s %s. Take it out there first, or deprecate it.", kind.Word(), name, loom.And(by[:min(len(by), maxAffected)]), nameIt(len(by)))
		}
		if err := s.Catalog.Delete(r.Context(), actor, kind, name, 0); err != nil {
			return err
		}
		return s.say(w, r, route.AdminKind(kind), deletedFlash(kind, name))
	}
}
