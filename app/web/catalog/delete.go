package catalog

import (
	"net/http"
	"slices"
	"strconv"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
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
		return s.Confirm(w, r, actor, page, adminview.DeleteForm(adminview.DeleteModel{
			Kind: kind, Name: name, Versions: ui.Count(len(infos), "version", "versions"), Uses: entries, Blocked: blocked, Clusters: clusters, Back: route.AdminEntry(kind, name),
		}, action))
	}
}

// needing are the templates, and the parts of them, that would not work without an
// entry: while there are any, it is not deleted.
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
		if err := s.deleteEntry(r, actor, kind, name); err != nil {
			return err
		}
		return s.Say(w, r, route.AdminKind(kind), deletedFlash(kind, name))
	}
}

// deleteEntry deletes an entry that no template needs. Conflict.
func (s *Server) deleteEntry(r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) error {
	uses, err := s.usesOf(r, actor, kind, name)
	if err != nil {
		return err
	}
	if by := needing(usersOf(uses)); len(by) > 0 {
		return loom.NewError(loom.Conflict, "The %s “%s” is not deleted: %s %s. Remove it there first, or deprecate it.", kind.Word(), name, loom.And(by[:min(len(by), maxAffected)]), nameIt(len(by)))
	}
	return s.Catalog.Delete(r.Context(), actor, kind, name, 0)
}

// showDeleted lists what was deleted of a kind, to have it again.
const showDeleted = "deleted"

// fieldDeleted is the query with which a new entry starts as one that was deleted.
const fieldDeleted = "deleted"

// deletedList is the list of a kind with what was deleted of it.
func (s *Server) deletedList(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, q string) error {
	found, err := s.Catalog.DeletedEntries(r.Context(), actor, kind, q)
	if err != nil {
		return err
	}
	m := listModel(listQuery{Kind: kind, Q: q, Show: showDeleted}, catalog.List{})
	m.Deleted, m.Now, m.Text = true, s.Now(), ui.Count(len(found), kind.Word(), kind.Word()+"s")
	if len(found) == catalog.MaxDeleted {
		m.Text = "The last " + m.Text
	}
	m.Rows = nil
	for _, d := range found {
		m.Rows = append(m.Rows, adminview.EntryRow{
			Entry: d.Entry.Meta(), Info: loom.VersionInfo{Author: d.By, Time: d.Time},
			Href: route.Query(route.AdminNew(kind), fieldDeleted, strconv.FormatInt(d.ID, 10)),
		})
	}
	page := page.AdminFrame(adminview.Plural(kind), route.AdminKind(kind))
	return s.Render(w, r, actor, http.StatusOK, page, adminview.ListPage(m))
}

// deletedDraft makes a deleted entry the draft of a new one, where the query names one.
func (s *Server) deletedDraft(r *http.Request, actor loom.Actor, d *draft) (bool, error) {
	text := r.URL.Query().Get(fieldDeleted)
	if text == "" {
		return false, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return false, loom.NewError(loom.NotFound, "There is no deleted %s “%.40s”.", d.kind.Word(), text)
	}
	found, err := s.Catalog.DeletedEntry(r.Context(), actor, d.kind, id)
	if err != nil {
		return false, err
	}
	d.note = "This is what the " + d.kind.Word() + " said when " + string(found.By) + " deleted it. Saving stores it again, as version 1."
	lost := found.Lost
	if p, ok := found.Entry.(*loom.Provider); ok {
		lost = append(lost, p.Sealed...)
	}
	if len(lost) > 0 {
		d.note += " Secrets were not kept. Enter them again: " + loom.And(lost) + "."
	}
	d.changed = true
	d.body, err = draftOf(d.kind, found.Entry)
	return true, err
}

// deletedFlash tells that an entry is gone, and from where it comes back.
func deletedFlash(kind loom.EntityKind, name string) httpx.Flash {
	return httpx.Flash{Tone: "ok", Text: "Deleted the " + kind.Word() + " " + name + ".", Link: "Restore it", URL: route.Query(route.AdminKind(kind), adminview.FieldShow, showDeleted)}
}
