package catalog

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// conflictPage compares what was to be saved with what somebody stored meanwhile.
// Whoever was deleted meanwhile can be stored again as a new entry.
func (s *Server) conflictPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, name, body string, e *loom.Error, c *catalog.VersionConflict) error {
	mine, note, err := s.shownDraft(r, actor, kind, body)
	if err != nil {
		return err
	}
	m := adminview.ConflictModel{
		Name: name, Action: route.AdminEntry(kind, name), Message: e.Message, Now: s.Now(), Mine: mine, Note: note,
		Expected: strconv.Itoa(c.StoredInfo.Version), TakeHref: route.AdminEntry(kind, name),
		StepURL: stepURL(kind, name), HasForm: formMakers[kind] != nil && c.Stored != nil,
	}
	if c.Stored == nil {
		m.Gone, m.TakeHref = true, route.AdminKind(kind)
		m.Theirs = "(deleted)"
	} else if err := s.compareVersions(r, actor, c, mine, &m); err != nil {
		return err
	}
	return s.Render(w, r, actor, httpx.PageStatus(loom.Conflict), entryFrame(kind, name, "Conflict"), adminview.ConflictPage(m))
}

// compareVersions fills in the three sides of the comparison.
func (s *Server) compareVersions(r *http.Request, actor loom.Actor, c *catalog.VersionConflict, mine string, m *adminview.ConflictModel) error {
	var err error
	m.Author, m.Time, m.Version = string(c.StoredInfo.Author), c.StoredInfo.Time, strconv.Itoa(c.StoredInfo.Version)
	if m.Theirs, err = draftOf(c.Kind, c.Stored); err != nil {
		return err
	}
	if base, _, err := s.Catalog.Entry(r.Context(), actor, c.Kind, m.Name, c.Expected); err == nil {
		if m.Base, err = draftOf(c.Kind, base); err != nil {
			return err
		}
	}
	shown, err := catalog.Decode(c.Kind, []byte(mine))
	if err != nil {
		return err
	}
	given, err := draftOf(c.Kind, shown)
	if err != nil {
		return err
	}
	m.Changes = page.ChangesOf(catalog.Differences(page.ParseTree([]byte(m.Theirs)), page.ParseTree([]byte(given))))
	return nil
}

// adminNew is the editor with a skeleton, or with a copy of the entry "from".
func (s *Server) adminNew(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		d := draft{kind: kind, body: loom.Skeleton(kind), asJSON: asksJSON(r)}
		if restored, err := s.deletedDraft(r, actor, &d); err != nil {
			return err
		} else if restored {
			return s.editorPage(w, r, actor, http.StatusOK, d)
		}
		if from := r.URL.Query().Get("from"); from != "" {
			entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, from, 0)
			if err != nil {
				return err
			}
			entry.Meta().Name = from + "-copy"
			if p, ok := entry.(*loom.Provider); ok && len(p.Sealed) > 0 {
				d.note = "Sealed fields are not copied. Enter them again: " + loom.And(p.Sealed) + "."
			}
			if d.body, err = draftOf(kind, entry); err != nil {
				return err
			}
		} else if named := namedSkeleton(r, kind); named != "" {
			d.body, d.changed = named, true
		} else if err := s.useOffer(r, actor, &d); err != nil {
			return err
		} else if !d.changed {
			if err := s.restoreDraft(r, actor, &d); err != nil {
				return err
			}
		}
		return s.editorPage(w, r, actor, http.StatusOK, d)
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
		d := draft{kind: kind, name: name, expected: strconv.Itoa(info.Version), asJSON: asksJSON(r)}
		version, _ := loom.ParseNumber(r.URL.Query().Get(adminview.FieldVersion)) // what is no number asks for none
		older := version > 0 && version != info.Version
		if older {
			if entry, _, err = s.Catalog.Entry(r.Context(), actor, kind, name, version); err != nil {
				return err
			}
			d.note = "This is the definition of version " + strconv.Itoa(version) + ". Saving stores it as a new version."
		}
		if d.body, err = draftOf(kind, entry); err != nil {
			return err
		}
		if !older {
			if err := s.restoreDraft(r, actor, &d); err != nil {
				return err
			}
			if err := s.useOffer(r, actor, &d); err != nil {
				return err
			}
		}
		return s.editorPage(w, r, actor, http.StatusOK, d)
	}
}

func asksJSON(r *http.Request) bool { return r.URL.Query().Get("view") == "json" }

// editorPage shows a draft: as the form of its kind, or as JSON where the kind has
// none, where that was asked for and where the text cannot be read as a form.
func (s *Server) editorPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, d draft) error {
	m := adminview.EditorModel{
		Kind: d.kind, Name: d.name, Expected: d.expected, Body: d.body, Note: d.note, Changed: d.changed, Restored: d.restored, Now: s.Now(),
		Action: route.AdminKind(d.kind), StepURL: stepURL(d.kind, d.name),
	}
	page := entryFrame(d.kind, d.name, "New "+d.kind.Word())
	if d.name != "" {
		m.Action = route.AdminEntry(d.kind, d.name)
		page = entryFrame(d.kind, d.name, "Edit")
	}
	if err := s.addForm(r, actor, d, &m); err != nil {
		return err
	}
	if err := s.addConnection(r, actor, d, &m); err != nil {
		return err
	}
	addPane(r, d, &m)
	if err := s.addAffected(r, actor, &m); err != nil {
		return err
	}
	if !m.FormMode {
		addJSONErrors(d, &m)
		var err error
		if m.Types, err = s.pluginHelp(r, actor, d.kind); err != nil {
			return err
		}
	}
	if err := s.addRotation(r, actor, d, &m); err != nil {
		return err
	}
	return s.Render(w, r, actor, status, page, adminview.EditorPage(m))
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
	d, err := s.readEditor(w, r, actor, kind, name)
	if err != nil {
		return err
	}
	if err := s.readPane(r, actor, &d, true); err != nil {
		return err
	}
	if d.pane.failure != nil {
		return s.refused(w, r, actor, d, d.pane.failure)
	}
	if _, err := s.takeUploads(r, actor, &d); err != nil {
		return err
	}
	in := catalog.SaveInput{OnlyNew: name == "", AskRotate: r.PostForm.Get(catalog.FieldRotate) != "true", Unreleased: r.PostForm.Get(adminview.FieldRelease) == "false"}
	if name != "" {
		expected, err := loom.ParseNumber(d.expected)
		if err != nil {
			return loom.InvalidFields([]loom.FieldError{{Field: adminview.FieldExpected, Message: "The form does not say which version it started from; open the editor again."}})
		}
		in.Expected = &expected
	}
	saved, found, err := s.saveDraft(r, actor, d, in)
	var conflict *catalog.VersionConflict
	switch {
	case err == nil:
		if err := s.dropDraft(r, actor, kind, name); err != nil {
			return err
		}
		return s.Say(w, r, route.AdminEntry(kind, saved.Meta().Name), tellStored(savedFlash(kind, saved, found, in.Unreleased), d.stored))
	case errors.As(err, &conflict):
		return s.conflictPage(w, r, actor, kind, name, d.body, loom.AsError(err), conflict)
	}
	return s.refused(w, r, actor, d, err)
}

// saveDraft stores a draft. What the form could not take is told together with
// what is wrong with the entry.
func (s *Server) saveDraft(r *http.Request, actor loom.Actor, d draft, in catalog.SaveInput) (loom.Entry, []loom.Finding, error) {
	if errs := d.formErrors(); len(errs) > 0 {
		_, err := readDraft(d.kind, d.body)
		return nil, nil, loom.InvalidFields(append(errs, loom.AsError(err).Fields...))
	}
	return s.saveBody(r, actor, d.kind, d.name, d.body, in)
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
		return nil, tooLargeDraft()
	}
	return catalog.Decode(kind, []byte(body))
}

// savedFlash says that an entry was stored; its page, which comes next, says what of it
// would not work.
func savedFlash(kind loom.EntityKind, saved loom.Entry, found []loom.Finding, unreleased bool) httpx.Flash {
	meta := saved.Meta()
	text := "Saved the " + kind.Word() + " " + meta.Name + " as version " + strconv.Itoa(meta.Version) + "."
	if unreleased {
		text += " It is not released."
	}
	if len(found) == 0 {
		return httpx.Flash{Tone: "ok", Text: text}
	}
	return httpx.Flash{Tone: "warn", Text: text + " Not all of it works yet; its page says what is missing."}
}

// refused shows the editor again with what is wrong. Other errors are returned.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, actor loom.Actor, d draft, err error) error {
	e := loom.AsError(err)
	switch e.Kind {
	case loom.Invalid, loom.Conflict, loom.Throttled:
	default:
		return err
	}
	d.failure, d.title = e, "The "+d.kind.Word()+" was not saved."
	if err := s.hideSecrets(r, actor, &d); err != nil {
		return err
	}
	return s.editorPage(w, r, actor, httpx.PageStatus(e.Kind), d)
}

// hideSecrets makes a draft fit to be shown again.
func (s *Server) hideSecrets(r *http.Request, actor loom.Actor, d *draft) error {
	shown, note, err := s.shownDraft(r, actor, d.kind, d.body)
	d.body, d.changed = shown, true
	if note != "" {
		d.note = note
	}
	return err
}

// addJSONErrors shows what is wrong with a draft in the JSON editor.
func addJSONErrors(d draft, m *adminview.EditorModel) {
	e := d.failure
	if e == nil {
		return
	}
	m.Errors, _, _ = page.FormErrors(e, d.title)
	for i := range m.Errors.Items {
		// A path breaks after its dots, since it may be longer than a narrow page.
		m.Errors.Items[i].Label = strings.ReplaceAll(m.Errors.Items[i].Field, ".", ".\u200b")
		m.Errors.Items[i].FieldID = ui.FieldID("", adminview.FieldBody)
	}
	m.Line, m.Column = syntaxPosition(e.Message)
	if len(e.Fields) == 0 {
		m.Message = e.Message
	}
	m.Check = adminview.CheckModel{Checked: true, Problems: problems(m.Body, e)}
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
		return loom.LooksSecret(field) || slices.ContainsFunc(types, func(t loom.PluginType) bool { return t.Seals(field) })
	})
	if len(emptied) > 0 {
		note = "Secrets are not sent back to the browser. Enter them again, or leave empty to keep the saved ones: " + loom.And(emptied) + "."
	}
	return shown, note, nil
}
