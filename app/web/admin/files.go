package admin

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// fileType is what a plugin takes.
type fileType struct {
	loom.ResourceRef
	format string
}

// fileTypes are each resource type of each plugin.
func (s *Server) fileTypes(r *http.Request, actor loom.Actor) ([]fileType, error) {
	var found []fileType
	for _, kind := range []loom.EntityKind{loom.KindAutomatorType, loom.KindProviderType} {
		types, err := s.Catalog.PluginTypes(r.Context(), actor, kind)
		if err != nil {
			return nil, err
		}
		for _, t := range types {
			for _, name := range slices.Sorted(maps.Keys(t.ResourceTypes)) {
				found = append(found, fileType{loom.ResourceRef{Kind: string(kind), Plugin: t.Name, Type: name}, t.ResourceTypes[name].Format})
			}
		}
	}
	return found, nil
}

// adminFiles is the list of files.
func (s *Server) adminFiles(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	coming, going, err := s.Catalog.ResourcesWaiting(r.Context(), actor)
	if err != nil {
		return err
	}
	var m adminview.FilesModel
	if coming+going > 0 {
		m.Waiting = page.Capital(filesText(coming, going, "staged", "withdrawn")) + "."
	}
	kinds, err := s.fileTypes(r, actor)
	if err != nil {
		return err
	}
	f := fileFilterOf(r)
	grid, err := s.fileGrid(r, actor, f)
	if err != nil {
		return err
	}
	m.List = []templ.Component{fileFilters(f, kinds), grid}
	return s.Render(w, r, actor, http.StatusOK, page.AdminFrame("Files", route.AdminResources()), adminview.FilesPage(m))
}

// fileFilter is what the list of files is narrowed to.
type fileFilter struct{ q, plugin, kind, state, sort string }

// fileFilterOf reads the filters of the list from the address.
func fileFilterOf(r *http.Request) fileFilter {
	q := r.URL.Query()
	return fileFilter{q: q.Get("q"), plugin: q.Get(adminview.FieldPlugin), kind: q.Get(adminview.FieldType), state: q.Get("status"), sort: q.Get("sort")}
}

func (f fileFilter) any() bool { return f.q+f.plugin+f.kind+f.state != "" }

// pairs are the filters as parts of an address.
func (f fileFilter) pairs() []string {
	return []string{"q", f.q, adminview.FieldPlugin, f.plugin, adminview.FieldType, f.kind, "status", f.state}
}

func fileFilters(f fileFilter, kinds []fileType) templ.Component {
	plugins, types := []string{"", "All plugins"}, []string{"", "All types"}
	seen := map[string]bool{}
	add := func(list *[]string, of, name string) {
		if !seen[of+name] {
			seen[of+name] = true
			*list = append(*list, name, name)
		}
	}
	for _, k := range kinds {
		add(&plugins, "plugin ", k.Plugin)
		if f.plugin == "" || f.plugin == k.Plugin {
			add(&types, "type ", k.Type)
		}
	}
	m := adminview.FiltersModel{Action: route.AdminResources(), Target: "resources-list", Fields: []ui.FieldModel{
		{Name: "q", Label: "Search files", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: f.q, Placeholder: "Search name, plugin or type", Optional: true, MaxLength: 200},
		{Name: adminview.FieldPlugin, ID: "filter-plugin", Label: "Plugin", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(f.plugin, plugins...)},
		{Name: adminview.FieldType, ID: "filter-type", Label: "Type", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(f.kind, types...)},
		{Name: "status", ID: "filter-status", Label: "State", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true,
			Options: page.Options(f.state, "", "All states", "active", "In use", "staged", "Staged", "recalled", "Withdrawn", "inactive", "Inactive")},
	}}
	if f.any() {
		m.Clear = route.AdminResources()
	}
	return adminview.Filters(m)
}

// fileGrid is a page of the files, one for each name.
func (s *Server) fileGrid(r *http.Request, actor loom.Actor, f fileFilter) (templ.Component, error) {
	list, err := s.Catalog.ListResources(r.Context(), actor, catalog.ResourceListInput{Page: s.PageOf(r), Q: f.q, Plugin: f.plugin, Type: f.kind, Status: loom.ResourceStatus(f.state)})
	if err != nil {
		return nil, err
	}
	refs := make([]loom.ResourceRef, len(list.Items))
	for i, item := range list.Items {
		refs[i] = item.ResourceRef
	}
	uses, err := s.Catalog.ResourceUsers(r.Context(), actor, refs...)
	if err != nil {
		return nil, err
	}
	machines, err := s.Catalog.ResourceMachines(r.Context(), actor, refs...)
	if err != nil {
		return nil, err
	}
	with := func(sort string) string {
		return route.Query(route.AdminResources(), append(f.pairs(), "sort", sort)...)
	}
	name := ui.Column{Label: "Name", Sort: with("name")}
	switch f.sort {
	case "name":
		name.Sort, name.Sorted = with("-name"), ui.Ascending
	case "-name":
		name.Sorted = ui.Descending
	}
	m := adminview.TableModel{ID: "resources", Caption: "Files", Now: s.Now(),
		Columns: []ui.Column{name, {Label: "Kind"}, {Label: "In use"}, {Label: "Staged"}, {Label: "Nodes", Numeric: true}, {Label: "Used by"}},
		Pages:   page.Turned("Pages of files", route.AdminResources(), list.Next, list.Prev, append(f.pairs(), "sort", f.sort)...),
		Empty:   ui.EmptyModel{Icon: "file", Text: "No files yet.", Action: ui.ButtonModel{Label: "New file", Icon: "plus", Href: adminview.FileNew(loom.ResourceRef{})}},
	}
	if f.any() {
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No matches.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.AdminResources()}}
	}
	for _, item := range list.Items {
		staged := 0
		if item.SlatedVersion != item.LiveVersion {
			staged = item.SlatedVersion
		}
		nodes := adminview.Cell{Text: "–"}
		if n := machines[item.ResourceRef]; n > 0 {
			nodes.Text = strconv.Itoa(n)
		}
		inUse := versionCell(item, item.LiveVersion)
		if item.LiveVersion > 0 && item.SlatedVersion == 0 {
			inUse.Sub = "withdrawn"
		}
		m.Rows = append(m.Rows, []adminview.Cell{
			{Text: item.Name, Href: adminview.File(item.ResourceRef, 0), Mono: true}, {Text: adminview.FileKind(item.ResourceRef)},
			inUse, versionCell(item, staged), nodes, {Text: usersText(uses[item.ResourceRef])},
		})
	}
	m.CSV, m.JSON = s.ExportsOf(r)
	return adminview.Table(m), nil
}

// versionCell leads to a version; 0 is none.
func versionCell(item loom.ResourceSummary, version int) adminview.Cell {
	if version == 0 {
		return adminview.Cell{Text: "–"}
	}
	return adminview.Cell{Text: ui.Version(version), Href: adminview.File(item.ResourceRef, version)}
}

// maxUsers is how many users of a file the list names before it counts the rest.
const maxUsers = 3

// usersText names what uses a file.
func usersText(use loom.ResourceUse) string {
	var names []string
	for _, u := range use.Entries {
		names = append(names, u.Name)
	}
	for _, f := range use.Files {
		names = append(names, f.Name)
	}
	switch n := len(names); {
	case n == 0:
		return "–"
	case n > maxUsers:
		return strings.Join(names[:maxUsers], ", ") + " and " + strconv.Itoa(n-maxUsers) + " more"
	}
	return strings.Join(names, ", ")
}

// filesText counts files that come into use and such that go out of it: "1 file staged, 2 files
// withdrawn".
func filesText(coming, going int, came, went string) string {
	var parts []string
	if coming > 0 {
		parts = append(parts, ui.Count(coming, "file", "files")+" "+came)
	}
	if going > 0 {
		parts = append(parts, ui.Count(going, "file", "files")+" "+went)
	}
	return strings.Join(parts, ", ")
}
