package web

import (
	"net/http"
	"strconv"

	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
)

// conflictPage compares what was to be saved with what somebody stored meanwhile.
// Whoever was deleted meanwhile can be stored again as a new entry.
func (s *Server) conflictPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, kind loom.EntityKind, name, body string, e *loom.Error, c *catalog.VersionConflict) error {
	mine, note, err := s.shownDraft(r, actor, kind, body)
	if err != nil {
		return err
	}
	m := adminview.ConflictModel{
		Name: name, Action: route.AdminEntry(kind, name), Message: e.Message, Now: s.now(), Mine: mine, Note: note,
		Expected: strconv.Itoa(c.StoredInfo.Version), TakeHref: route.AdminEntry(kind, name),
		StepURL: stepURL(kind, name), HasForm: formMakers[kind] != nil && c.Stored != nil,
	}
	if c.Stored == nil {
		m.Gone, m.TakeHref = true, route.AdminKind(kind)
		m.Theirs = "(deleted)"
	} else if err := s.compareVersions(r, actor, c, mine, &m); err != nil {
		return err
	}
	return s.render(w, r, actor, httpx.PageStatus(loom.Conflict), entryFrame(kind, name, "Conflict"), adminview.ConflictPage(m))
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
	m.Changes = changesOf(catalog.Differences(parseTree([]byte(m.Theirs)), parseTree([]byte(given))))
	return nil
}
