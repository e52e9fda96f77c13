package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// adminNew is the editor with a skeleton, or with a copy of the entry "from".
func (s *Server) adminNew(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		m := adminview.EditorModel{Kind: kind, Body: skeletons[kind]}
		if from := r.URL.Query().Get("from"); from != "" {
			entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, from, 0)
			if err != nil {
				return err
			}
			entry.Meta().Name = from + "-copy"
			if p, ok := entry.(*loom.Provider); ok && len(p.Sealed) > 0 {
				m.Note = "Sealed fields are not copied; give them anew: " + and(p.Sealed) + "."
			}
			if m.Body, err = draftOf(kind, entry); err != nil {
				return err
			}
		}
		return s.editorPage(w, r, actor, http.StatusOK, m)
	}
}

// adminEdit is the editor with the newest version, or the body of an older one.
func (s *Server) adminEdit(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		name := entryName(r)
		entry, info, err := s.Catalog.Entry(r.Context(), actor, kind, name, 0)
		if err != nil {
			return err
		}
		m := adminview.EditorModel{Kind: kind, Name: name, Expected: strconv.Itoa(info.Version)}
		if version, err := strconv.Atoi(r.URL.Query().Get(adminview.FieldVersion)); err == nil && version > 0 && version != info.Version {
			if entry, _, err = s.Catalog.Entry(r.Context(), actor, kind, name, version); err != nil {
				return err
			}
			m.Note = "This is the definition of version " + strconv.Itoa(version) + ". Saving stores it as a new version."
		}
		if m.Body, err = draftOf(kind, entry); err != nil {
			return err
		}
		return s.editorPage(w, r, actor, http.StatusOK, m)
	}
}

// editorPage completes the editor: where it saves, and its help.
func (s *Server) editorPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m adminview.EditorModel) error {
	m.Action, m.Back = route.AdminKind(m.Kind), route.AdminKind(m.Kind)
	page := entryFrame(m.Kind, m.Name, "New "+m.Kind.Word())
	if m.Name != "" {
		m.Action, m.Back = route.AdminEntry(m.Kind, m.Name), route.AdminEntry(m.Kind, m.Name)
		page = entryFrame(m.Kind, m.Name, "Edit")
	}
	var err error
	if m.Types, err = s.pluginHelp(r, actor, m.Kind); err != nil {
		return err
	}
	return s.render(w, r, actor, status, page, adminview.EditorPage(m))
}

func (s *Server) adminCreate(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		return s.save(w, r, actor, kind, "")
	}
}

func (s *Server) adminUpdate(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		return s.save(w, r, actor, kind, entryName(r))
	}
}

// save stores what the editor sent: as a new entry when name is empty.
func (s *Server) save(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, name string) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	body := strings.ReplaceAll(f.Get(adminview.FieldBody), "\r\n", "\n")
	in := catalog.SaveInput{OnlyNew: name == ""}
	if name != "" {
		expected, err := strconv.Atoi(f.Get(adminview.FieldExpected))
		if err != nil {
			return loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldExpected, Message: "The form does not say which version it started from; open the editor again."}})
		}
		in.Expected = &expected
	}
	saved, found, err := s.saveBody(r, actor, kind, name, body, in)
	var conflict *catalog.VersionConflict
	switch {
	case err == nil:
		return s.say(w, r, route.AdminEntry(kind, saved.Meta().Name), savedFlash(kind, saved, found))
	case errors.As(err, &conflict):
		return s.conflictPage(w, r, actor, kind, name, body, loom.AsError(err), conflict)
	}
	return s.refused(w, r, actor, kind, name, f.Get(adminview.FieldExpected), body, err)
}

func (s *Server) saveBody(r *http.Request, actor loom.Actor, kind loom.EntityKind, name, body string, in catalog.SaveInput) (loom.Entry, []loom.Finding, error) {
	entry, err := readDraft(kind, body)
	if err != nil {
		return nil, nil, err
	}
	if given := entry.Meta().Name; name != "" && given != name {
		return nil, nil, loom.InvalidFields([]loom.FieldError{{Field: "name",
			Message: "The name cannot be changed from “" + name + "” to “" + given + "”. Duplicate the entry to have it under another name."}})
	}
	in.Entry = entry
	return s.Catalog.Save(r.Context(), actor, kind, in)
}

func readDraft(kind loom.EntityKind, body string) (loom.Entry, error) {
	if len(body) > adminview.MaxBody {
		return nil, loom.NewError(loom.Invalid, "The definition is larger than 256 KiB.")
	}
	return catalog.Decode(kind, []byte(body))
}

// maxToldFindings is how many findings the message after a save tells; all are on
// the overview.
const maxToldFindings = 5

func savedFlash(kind loom.EntityKind, saved loom.Entry, found []loom.Finding) httpx.Flash {
	meta := saved.Meta()
	text := "Saved the " + kind.Word() + " " + meta.Name + " as version " + strconv.Itoa(meta.Version) + "."
	if len(found) == 0 {
		return httpx.Flash{Tone: "ok", Text: text}
	}
	return httpx.Flash{Tone: "warn", Text: text + " Not all will work yet: " + strings.Join(sentences(found[:min(len(found), maxToldFindings)]), " "), URL: route.Admin(), Link: "All findings"}
}

// refused shows the editor again with what is wrong. Other errors are returned.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, name, expected, body string, err error) error {
	errs, status, ok := accountErrors(err, "The "+kind.Word()+" was not saved.")
	if !ok {
		return err
	}
	e := loom.AsError(err)
	m := adminview.EditorModel{Kind: kind, Name: name, Expected: expected, Errors: errs}
	for i := range m.Errors.Items {
		// A path breaks after its dots, since it may be longer than a narrow page.
		m.Errors.Items[i].Label = strings.ReplaceAll(m.Errors.Items[i].Field, ".", ".\u200b")
		m.Errors.Items[i].FieldID = ui.FieldID("", adminview.FieldBody)
	}
	m.Line, m.Column = syntaxPosition(e.Message)
	if len(e.Fields) == 0 {
		m.Message = e.Message
	}
	if m.Body, m.Note, err = s.shownDraft(r, actor, kind, body); err != nil {
		return err
	}
	m.Check = adminview.CheckModel{Checked: true, Problems: problems(m.Body, e)}
	return s.editorPage(w, r, actor, status, m)
}

// shownDraft is a draft fit to be shown again: secrets of providers are emptied,
// and the note names them.
func (s *Server) shownDraft(r *http.Request, actor loom.Actor, kind loom.EntityKind, body string) (shown, note string, err error) {
	if kind != loom.KindProvider {
		return body, "", nil
	}
	types, err := s.Catalog.PluginTypes(r.Context(), actor, loom.KindProviderType)
	if err != nil {
		return "", "", err
	}
	shown, emptied := withoutSecrets(body, func(field string) bool {
		for _, t := range types {
			for _, group := range t.Parameters {
				if f, ok := group.Fields[field]; ok && f.IsSensitive() {
					return true
				}
			}
		}
		return loom.LooksSecret(field)
	})
	if len(emptied) > 0 {
		note = "Secrets are not sent back to the browser. Give anew, or leave empty to keep what is stored: " + and(emptied) + "."
	}
	return shown, note, nil
}
