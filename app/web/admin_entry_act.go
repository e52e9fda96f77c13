package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// adminEntryActivity is who did what to an entry.
func (s *Server) adminEntryActivity(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		name := entry.Meta().Name
		list, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Page: s.pageOf(r), AuditFilter: account.AuditFilter{Kinds: []string{kind.Word()}, Object: name}})
		if err != nil {
			return err
		}
		head := entryHead(kind, entry, tabActivity)
		m := officeview.SheetModel{
			Title: name, TabsLabel: "Parts of this " + kind.Word(), Tabs: head.Tabs,
			Intro: "What people did to it, and what that changed. Secrets are masked.",
			Parts: []templ.Component{s.auditGrid(ui.ViewerOf(r.Context()), adminview.EntryActivity(kind, name), auditQuery{}, list)},
			Calls: []ui.JSONCall{call("list", http.MethodGet, route.Query("/v2/audit", "kind", kind.Word(), "object", name), "")},
		}
		return s.sheet(w, r, actor, http.StatusOK, entryFrame(kind, name, tabActivity), m)
	}
}

// adminEntryExport is the entry alone as a bundle, to be kept or taken elsewhere.
func (s *Server) adminEntryExport(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		name := entry.Meta().Name
		bundle, err := s.Catalog.ExportOf(r.Context(), actor, []catalog.EntryName{{Kind: kind, Name: name}}, false)
		if err != nil {
			return err
		}
		document, err := bundle.Document()
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		// A name holds nothing that would have to be quoted.
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.json"`)
		_, _ = w.Write(document) // that the browser went away changes nothing
		return nil
	}
}

// adminDeprecate takes an entry out of what is offered for choosing, or back into it,
// as a new version.
func (s *Server) adminDeprecate(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		f, err := accountForm(w, r)
		if err != nil {
			return err
		}
		entry, info, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		meta := entry.Meta()
		deprecated := f.Get(adminview.FieldDeprecated) == "true"
		text := "It is so already."
		if meta.Deprecated != deprecated {
			meta.Deprecated = deprecated
			if _, _, err := s.Catalog.Save(r.Context(), actor, kind, catalog.SaveInput{Entry: entry, Expected: &info.Version}); err != nil {
				return err
			}
			text = "The " + kind.Word() + " " + meta.Name + " is offered for choosing again."
			if deprecated {
				text = "The " + kind.Word() + " " + meta.Name + " is deprecated: it is not offered for choosing any more; what names it goes on working."
			}
		}
		return s.say(w, r, route.AdminEntry(kind, meta.Name), httpx.Flash{Tone: "ok", Text: text})
	}
}

// adminCompare shows what changed between any two versions.
func (s *Server) adminCompare(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		name := entry.Meta().Name
		infos, err := s.Catalog.Versions(r.Context(), actor, kind, name)
		if err != nil {
			return err
		}
		m := adminview.CompareModel{HeadModel: entryHead(kind, entry, tabVersions), Action: adminview.EntryCompare(kind, name)}
		from, to := askedVersion(r, adminview.FieldFrom, infos[min(1, len(infos)-1)].Version), askedVersion(r, adminview.FieldTo, infos[0].Version)
		for _, v := range infos {
			number := strconv.Itoa(v.Version)
			label := "Version " + number + " by " + string(v.Author) + ", " + ui.ViewerOf(r.Context()).Moment(v.Time)
			m.From = append(m.From, ui.Option{Value: number, Label: label, Selected: v.Version == from})
			m.To = append(m.To, ui.Option{Value: number, Label: label, Selected: v.Version == to})
		}
		if from != to {
			found, err := s.Catalog.Compare(r.Context(), actor, catalog.CompareInput{Kind: kind, Name: name, From: from, To: to})
			if err != nil {
				return err
			}
			m.Changes = changesOf(found)
		}
		m.Title = "From version " + strconv.Itoa(from) + " to version " + strconv.Itoa(to)
		return s.render(w, r, actor, http.StatusOK, entryFrame(kind, name, "Compare"), adminview.ComparePage(m))
	}
}

// askedVersion is the version that a query names, usual without one.
func askedVersion(r *http.Request, field string, usual int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(field)); err == nil && n > 0 {
		return n
	}
	return usual
}
