package web

import (
	"net/http"
	"strconv"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

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
	m := listModel(kind, catalog.ListInput{Q: q}, showDeleted, catalog.List{})
	m.Deleted, m.Now, m.Text = true, s.now(), ui.Count(len(found), kind.Word(), kind.Word()+"s")
	if len(found) == catalog.MaxDeleted {
		m.Text = "The last " + m.Text
	}
	m.Rows = nil
	for _, d := range found {
		meta := d.Entry.Meta()
		m.Rows = append(m.Rows, adminview.EntryRow{
			Name: meta.Name, Label: meta.Label, Description: meta.Description, Author: string(d.By), Updated: d.Time,
			Href: route.Query(route.AdminNew(kind), fieldDeleted, strconv.FormatInt(d.ID, 10)),
		})
	}
	page := adminFrame(adminview.Plural(kind), route.AdminKind(kind))
	return s.render(w, r, actor, http.StatusOK, page, adminview.ListPage(m))
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
		d.note += " Secrets were not kept; give them anew: " + loom.And(lost) + "."
	}
	d.changed = true
	d.body, err = draftOf(d.kind, found.Entry)
	return true, err
}

// deletedFlash tells that an entry is gone, and from where it comes back.
func deletedFlash(kind loom.EntityKind, name string) httpx.Flash {
	return httpx.Flash{Tone: "ok", Text: "Deleted the " + kind.Word() + " " + name + ".", Link: "Restore it", URL: route.Query(route.AdminKind(kind), adminview.FieldShow, showDeleted)}
}
