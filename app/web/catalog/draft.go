package catalog

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
)

// Names of the values of a kept draft, besides those of the editor.
const draftView = "view"

// draftSubject names the draft of an entry; there is one for each new entry of a
// kind, and one for each entry that is edited.
func draftSubject(kind loom.EntityKind, name string) string {
	return "catalog/" + string(kind) + "/" + name
}

// keepDraft keeps what was typed, without secrets, until it is saved. That it cannot
// be kept stops nobody from going on.
func (s *Server) keepDraft(r *http.Request, actor loom.Actor, d draft) {
	body, _, err := s.shownDraft(r, actor, d.kind, d.body)
	if err == nil {
		values := map[string][]string{adminview.FieldBody: {body}, adminview.FieldExpected: {d.expected}}
		if d.asJSON {
			values[draftView] = []string{adminview.DoJSON}
		}
		err = s.Accounts.SaveDraft(r.Context(), actor, draftSubject(d.kind, d.name), values)
	}
	if err != nil && !errors.Is(err, loom.Invalid) {
		s.Log.Error("a draft could not be kept", "request_id", httpx.RequestID(r), "error", err.Error())
	}
}

// restoreDraft puts the draft that the actor did not save in place of what is
// stored, if there is one that differs.
func (s *Server) restoreDraft(r *http.Request, actor loom.Actor, d *draft) error {
	kept, err := s.Accounts.Draft(r.Context(), actor, draftSubject(d.kind, d.name))
	if errors.Is(err, loom.NotFound) {
		return nil
	}
	if err != nil {
		// A key that is gone, say: the draft is lost, the page is not.
		s.Log.Error("a draft could not be read", "request_id", httpx.RequestID(r), "error", err.Error())
		return nil
	}
	first := func(name string) string {
		if values := kept.Values[name]; len(values) > 0 {
			return values[0]
		}
		return ""
	}
	body := first(adminview.FieldBody)
	if tree := page.ParseTree([]byte(body)); body == "" || tree != nil && reflect.DeepEqual(tree, page.ParseTree([]byte(d.body))) {
		return nil // nothing was changed
	}
	if d.name == "" && s.alreadySaved(r, actor, d.kind, body) || d.name != "" && s.savedSince(r, actor, d, first(adminview.FieldExpected)) {
		return nil
	}
	d.body, d.expected, d.changed, d.restored = body, first(adminview.FieldExpected), true, kept.Saved
	d.asJSON = d.asJSON || first(draftView) == adminview.DoJSON
	return nil
}

// alreadySaved reports whether the draft of a new entry is what is stored under its name:
// the last keystrokes may be kept after the entry that they made.
func (s *Server) alreadySaved(r *http.Request, actor loom.Actor, kind loom.EntityKind, body string) bool {
	made, err := readDraft(kind, body)
	if err != nil {
		return false
	}
	stored, _, err := s.Catalog.Entry(r.Context(), actor, kind, made.Meta().Name, 0)
	if err != nil {
		return false
	}
	before, err := draftOf(kind, stored)
	if err != nil {
		return false
	}
	after, err := draftOf(kind, made)
	return err == nil && after == before
}

// savedSince reports whether the actor saved the entry after the version that a draft began with:
// the last keystrokes may be kept after that, and are not unfinished.
func (s *Server) savedSince(r *http.Request, actor loom.Actor, d *draft, began string) bool {
	from, err := strconv.Atoi(began)
	if err != nil || began == d.expected {
		return false
	}
	_, info, err := s.Catalog.Entry(r.Context(), actor, d.kind, d.name, 0)
	return err == nil && info.Version > from && info.Author == actor.User
}

// dropDraft forgets the draft of what was saved, or is not wanted any more.
func (s *Server) dropDraft(r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) error {
	return s.Accounts.DropDraft(r.Context(), actor, draftSubject(kind, name))
}

// leaveDraft forgets a draft and goes back: to the editor with what is stored, or to
// the entry.
func (s *Server) leaveDraft(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, name string, stay bool) error {
	if err := s.dropDraft(r, actor, kind, name); err != nil {
		return err
	}
	to := route.AdminKind(kind)
	switch {
	case stay:
		to = stepURL(kind, name)
	case name != "":
		to = route.AdminEntry(kind, name)
	}
	return httpx.SeeOther(w, r, to)
}
