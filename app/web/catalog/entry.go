package catalog

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// Tabs of an entry.
const (
	tabDetails  = "Details"
	tabUses     = "Used by"
	tabVersions = "Versions"
	tabJSON     = "JSON"
	tabActivity = "Activity"
	// tabTest and tabOrphans are for providers only.
	tabTest    = "Test"
	tabOrphans = "Orphans"
	// tabTry is for templates only.
	tabTry = "Try it"
)

func entryName(r *http.Request) string { return route.Segment(r.PathValue("name")) }

func entryHead(kind loom.EntityKind, entry loom.Entry, tab string) adminview.HeadModel {
	name := entry.Meta().Name
	m := adminview.HeadModel{
		Kind: kind, Name: name, Label: entry.Meta().Label, Deprecated: entry.Meta().Deprecated,
		EditHref: route.AdminEntryEdit(kind, name), Menu: entryMenu(kind, entry),
	}
	tabs := []ui.Tab{
		{Label: tabDetails, Href: route.AdminEntry(kind, name)}, {Label: tabUses, Href: adminview.EntryUses(kind, name)},
		{Label: tabVersions, Href: route.AdminEntryVersions(kind, name)}, {Label: tabJSON, Href: adminview.EntryJSON(kind, name)},
		{Label: tabActivity, Href: adminview.EntryActivity(kind, name)},
	}
	if kind == loom.KindProvider {
		tabs = append(tabs, ui.Tab{Label: tabTest, Href: route.AdminProbe(name)}, ui.Tab{Label: tabOrphans, Href: route.AdminOrphans(name)})
	}
	if kind == loom.KindTemplate {
		tabs = append(tabs, ui.Tab{Label: tabTry, Href: route.AdminTry(name)})
	}
	for _, t := range tabs {
		t.Current = t.Label == tab
		m.Tabs = append(m.Tabs, t)
	}
	return m
}

// entryMenu is what is done to an entry besides editing it.
func entryMenu(kind loom.EntityKind, entry loom.Entry) []ui.MenuItem {
	name := entry.Meta().Name
	deprecate := ui.MenuItem{Label: "Deprecate", Icon: "ban", Post: route.Query(adminview.EntryDeprecate(kind, name), adminview.FieldDeprecated, "true")}
	if entry.Meta().Deprecated {
		deprecate = ui.MenuItem{Label: "Undeprecate", Icon: "check", Post: route.Query(adminview.EntryDeprecate(kind, name), adminview.FieldDeprecated, "false")}
	}
	items := []ui.MenuItem{
		{Label: "Duplicate", Icon: "copy", Href: adminview.Duplicate(kind, name)}, {Label: "Export", Icon: "download", Href: adminview.EntryExport(kind, name), Attrs: templ.Attributes{"download": true}},
		deprecate, page.Deleting(route.AdminEntryDelete(kind, name)),
	}
	if kind.Releasable() {
		items = append([]ui.MenuItem{{Label: "Roll out", Icon: "branch", Href: route.AdminRolloutNew("entry", string(kind), "name", name, "version", strconv.Itoa(entry.Meta().Version))}}, items...)
	}
	if kind == loom.KindTemplate {
		items = append([]ui.MenuItem{{Label: "Create cluster", Icon: "plus", Href: route.Query(route.ClusterNew(), "template", name)}}, items...)
	}
	return items
}

// entryFrame is the frame of a page about an entry; last names the page when it
// is not that of the entry itself.
func entryFrame(kind loom.EntityKind, name, last string) layout.Model {
	crumbs := []ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: adminview.Plural(kind), Href: route.AdminKind(kind)}}
	title := name
	if name != "" {
		crumbs = append(crumbs, ui.Crumb{Label: name, Href: route.AdminEntry(kind, name)})
	}
	if last != "" {
		crumbs = append(crumbs, ui.Crumb{Label: last})
		title = last
		if name != "" {
			title = last + " · " + name
		}
	}
	m := page.AdminFrame(title, route.AdminKind(kind), crumbs...)
	m.Section = adminview.Plural(kind)
	return m
}

// adminEntry shows the details of an entry, or with ?as=json the document.
func (s *Server) adminEntry(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		entry, info, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		if r.URL.Query().Get("as") == "json" {
			return httpx.WriteJSON(w, entry)
		}
		m := s.entryModel(kind, entry, info)
		if err := s.addProvider(r, actor, entry, &m); err != nil {
			return err
		}
		if err := s.addNext(r, actor, entry, &m); err != nil {
			return err
		}
		if err := s.addPictures(r, actor, entry, &m); err != nil {
			return err
		}
		if err := s.addVersions(r, actor, entry, &m); err != nil {
			return err
		}
		if err := s.addLacks(r, actor, entry, &m); err != nil {
			return err
		}
		return s.Render(w, r, actor, http.StatusOK, entryFrame(kind, m.Name, ""), adminview.EntryPage(m))
	}
}

func (s *Server) entryModel(kind loom.EntityKind, entry loom.Entry, info loom.VersionInfo) adminview.EntryModel {
	facts, sections := definition(entry)
	if labels := loom.LabelTexts(entry.Meta().Labels); len(labels) > 0 {
		facts = append(facts, ui.Def{Term: "Labels", Text: strings.Join(labels, ", ")})
	}
	return adminview.EntryModel{
		HeadModel: entryHead(kind, entry, tabDetails), Now: s.Now(), Description: entry.Meta().Description, Facts: facts, Sections: sections,
		Updated: info.Time, Author: string(info.Author), Version: strconv.Itoa(info.Version),
	}
}

func (s *Server) adminJSON(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		m := adminview.EntryJSONModel{HeadModel: entryHead(kind, entry, tabJSON), JSON: entryJSON(kind, entry, route.AdminEntry(kind, entry.Meta().Name))}
		return s.Render(w, r, actor, http.StatusOK, entryFrame(kind, m.Name, tabJSON), adminview.EntryJSONPage(m))
	}
}

func (s *Server) adminUses(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		uses, err := s.usesOf(r, actor, kind, entry.Meta().Name)
		if err != nil {
			return err
		}
		m := adminview.UsesModel{HeadModel: entryHead(kind, entry, tabUses), Uses: uses}
		return s.Render(w, r, actor, http.StatusOK, entryFrame(kind, m.Name, tabUses), adminview.UsesPage(m))
	}
}

func (s *Server) adminVersions(kind loom.EntityKind) httpx.ActorHandler {
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
		m := adminview.VersionsModel{HeadModel: entryHead(kind, entry, tabVersions), Now: s.Now()}
		current := slices.IndexFunc(infos, func(v loom.VersionInfo) bool { return v.Released })
		for i, v := range infos {
			m.Rows = append(m.Rows, adminview.VersionRow{
				VersionInfo: v, Href: route.AdminEntryVersion(kind, name, v.Version), RestoreHref: restore(kind, name, v.Version),
				Current: i == current, Newest: i == 0, ClustersHref: clustersOn(name, v.Version),
			})
		}
		return s.Render(w, r, actor, http.StatusOK, entryFrame(kind, name, tabVersions), adminview.VersionsPage(m))
	}
}

// adminVersionRelease releases a version, or withdraws it.
func (s *Server) adminVersionRelease(kind loom.EntityKind, released bool) httpx.ActorHandler {
	return s.versionAct(kind, func(r *http.Request, actor loom.Actor, name string, version int) (string, error) {
		text := "Withdrew version %d of %s."
		if released {
			text = "Released version %d of %s."
		}
		return fmt.Sprintf(text, version, name), s.Catalog.ReleaseVersion(r.Context(), actor, kind, name, version, released)
	})
}

// adminVersionDeprecate gives a version a message to the owners of its clusters.
func (s *Server) adminVersionDeprecate(kind loom.EntityKind) httpx.ActorHandler {
	return s.versionAct(kind, func(r *http.Request, actor loom.Actor, name string, version int) (string, error) {
		message := r.PostForm.Get(adminview.FieldMessage)
		text := "Deprecated version %d of %s."
		if strings.TrimSpace(message) == "" {
			text = "Undeprecated version %d of %s."
		}
		return fmt.Sprintf(text, version, name), s.Catalog.DeprecateVersion(r.Context(), actor, kind, name, version, message)
	})
}

// versionAct does something with a version, says so on the list of versions, and goes there.
func (s *Server) versionAct(kind loom.EntityKind, act func(r *http.Request, actor loom.Actor, name string, version int) (string, error)) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		name := entryName(r)
		version, err := loom.ParseNumber(r.PathValue("version"))
		if err != nil {
			return loom.NewError(loom.NotFound, "There is no version “%s” of %s.", r.PathValue("version"), name)
		}
		if _, err := page.ReadForm(w, r); err != nil {
			return err
		}
		text, err := act(r, actor, name, version)
		if err != nil {
			return err
		}
		return s.Say(w, r, route.AdminEntryVersions(kind, name), httpx.Flash{Tone: "ok", Text: text})
	}
}

// restore is the editor with the body of an older version.
func restore(kind loom.EntityKind, name string, version int) string {
	return route.Query(route.AdminEntryEdit(kind, name), adminview.FieldVersion, strconv.Itoa(version))
}

// adminVersion shows one version, and what it changed.
func (s *Server) adminVersion(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		name := entryName(r)
		version, err := loom.ParseNumber(r.PathValue("version"))
		if err != nil || version < 1 {
			return loom.NewError(loom.NotFound, "There is no version “%s” of %s.", r.PathValue("version"), name)
		}
		entry, info, err := s.Catalog.Entry(r.Context(), actor, kind, name, version)
		if err != nil {
			return err
		}
		infos, err := s.Catalog.Versions(r.Context(), actor, kind, name)
		if err != nil {
			return err
		}
		m := s.entryModel(kind, entry, info)
		m.HeadModel = entryHead(kind, entry, tabVersions)
		if err := s.addProvider(r, actor, entry, &m); err != nil {
			return err
		}
		m.DeprecateAction, m.Deprecation = adminview.VersionAct(kind, name, version, adminview.VersionDeprecation), info.Deprecation
		if newest := infos[0].Version; newest != version {
			m.Old = "This is version " + strconv.Itoa(version) + "; the newest is " + strconv.Itoa(newest) + "."
			m.OldAction, m.OldHref = "Restore as new", restore(kind, name, version)
		}
		if err := s.addChanges(r, actor, kind, entry, infos, &m); err != nil {
			return err
		}
		return s.Render(w, r, actor, http.StatusOK, entryFrame(kind, name, "Version "+m.Version), adminview.EntryPage(m))
	}
}

// addChanges compares a version with the stored one before it, if any is left.
func (s *Server) addChanges(r *http.Request, actor loom.Actor, kind loom.EntityKind, entry loom.Entry, infos []loom.VersionInfo, m *adminview.EntryModel) error {
	if entry.Meta().Version == infos[len(infos)-1].Version {
		return nil // the oldest
	}
	found, err := s.Catalog.Compare(r.Context(), actor, catalog.CompareInput{Kind: kind, Name: entry.Meta().Name, To: entry.Meta().Version})
	if err != nil {
		return err
	}
	m.ShowChanges, m.Changes = true, page.ChangesOf(found)
	return nil
}

// adminEntryActivity is who did what to an entry.
func (s *Server) adminEntryActivity(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		entry, _, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		name := entry.Meta().Name
		list, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Page: s.PageOf(r), AuditFilter: account.AuditFilter{Kinds: []string{kind.Word()}, Object: name}})
		if err != nil {
			return err
		}
		head := entryHead(kind, entry, tabActivity)
		m := adminview.PageModel{
			Title: name, TabsLabel: "Parts of this " + kind.Word(), Tabs: head.Tabs,
			Intro: "What people did to it, and what that changed. Secrets are masked.",
			Parts: []templ.Component{s.AuditGrid(ui.ViewerOf(r.Context()), adminview.EntryActivity(kind, name), page.AuditQuery{}, list)},
			Calls: []ui.JSONCall{page.Call("list", http.MethodGet, route.Query("/v2/audit", "kind", kind.Word(), "object", name), "")},
		}
		return s.Sheet(w, r, actor, http.StatusOK, entryFrame(kind, name, tabActivity), m)
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
		return s.sendBundle(w, r, actor, []catalog.EntryName{{Kind: kind, Name: name}}, name)
	}
}

// sendBundle answers with entries as a bundle, in a file of a name that needs no quotes.
func (s *Server) sendBundle(w http.ResponseWriter, r *http.Request, actor loom.Actor, names []catalog.EntryName, file string) error {
	bundle, err := s.Catalog.ExportOf(r.Context(), actor, names, false)
	if err != nil {
		return err
	}
	document, err := bundle.Document()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="`+file+`.json"`)
	_, _ = w.Write(document) // that the browser went away changes nothing
	return nil
}

// adminDeprecate takes an entry out of what is offered for choosing, or back into it,
// as a new version.
func (s *Server) adminDeprecate(kind loom.EntityKind) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		if _, err := page.ReadForm(w, r); err != nil {
			return err
		}
		entry, info, err := s.Catalog.Entry(r.Context(), actor, kind, entryName(r), 0)
		if err != nil {
			return err
		}
		meta := entry.Meta()
		deprecated := r.Form.Get(adminview.FieldDeprecated) == "true"
		text := "It is so already."
		if meta.Deprecated != deprecated {
			meta.Deprecated = deprecated
			if _, _, err := s.Catalog.Save(r.Context(), actor, kind, catalog.SaveInput{Entry: entry, Expected: &info.Version, AsNewest: true}); err != nil {
				return err
			}
			text = "The " + kind.Word() + " " + meta.Name + " is offered for choosing again."
			if deprecated {
				text = "The " + kind.Word() + " " + meta.Name + " is deprecated: it is hidden from pickers. Entries that use it keep working."
			}
		}
		return s.Say(w, r, route.AdminEntry(kind, meta.Name), httpx.Flash{Tone: "ok", Text: text})
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
			m.Changes = page.ChangesOf(found)
		}
		m.Title = "From version " + strconv.Itoa(from) + " to version " + strconv.Itoa(to)
		return s.Render(w, r, actor, http.StatusOK, entryFrame(kind, name, "Compare"), adminview.ComparePage(m))
	}
}

// askedVersion is the version that a query names, usual without one.
func askedVersion(r *http.Request, field string, usual int) int {
	if n, err := loom.ParseNumber(r.URL.Query().Get(field)); err == nil && n > 0 {
		return n
	}
	return usual
}
