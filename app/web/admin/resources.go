package admin

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
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

// resourceType is what a plugin takes.
type resourceType struct {
	loom.ResourceRef
	format string
}

// resourceKinds are each resource type of each plugin.
func (s *Server) resourceKinds(r *http.Request, actor loom.Actor) ([]resourceType, error) {
	var found []resourceType
	for _, kind := range []loom.EntityKind{loom.KindAutomatorType, loom.KindProviderType} {
		types, err := s.Catalog.PluginTypes(r.Context(), actor, kind)
		if err != nil {
			return nil, err
		}
		for _, t := range types {
			for _, name := range slices.Sorted(maps.Keys(t.ResourceTypes)) {
				found = append(found, resourceType{loom.ResourceRef{Kind: string(kind), Plugin: t.Name, Type: name}, t.ResourceTypes[name].Format})
			}
		}
	}
	return found, nil
}

// uploadOptions are the choices of the upload form.
func uploadOptions(kinds []resourceType, chosen string) []ui.Option {
	var options []ui.Option
	for _, k := range kinds {
		value, label := adminview.ResourceKind(k.ResourceRef), fmt.Sprintf("%s (%s): %s", k.Plugin, loom.EntityKind(k.Kind).Word(), k.Type)
		if k.format == "archive" {
			label += ", an archive"
		}
		options = append(options, ui.Option{Value: value, Label: label, Selected: value == chosen})
	}
	return options
}

// waiting counts what a sync would put in use, and take out of use.
func waiting(resources []loom.Resource) (staged, recalled int) {
	for _, r := range resources {
		switch r.Status() {
		case loom.ResourceStaged:
			staged++
		case loom.ResourceRecalled:
			recalled++
		}
	}
	return staged, recalled
}

func (s *Server) adminResources(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m := adminview.ResourcesModel{Stage: true}
	q := r.URL.Query()
	if q.Get(adminview.FieldVersion) == "" {
		if strings.Contains(q.Get(adminview.FieldPlugin), "/") { // what an upload is for
			m.Name = q.Get(adminview.FieldName)
		}
		return s.resourcesPage(w, r, actor, http.StatusOK, m, q.Get(adminview.FieldPlugin))
	}
	from, content, err := s.resourceVersion(r, actor)
	if err != nil {
		return err
	}
	m.Name, m.Text = from.Name, content.Text
	return s.resourcesPage(w, r, actor, http.StatusOK, m, adminview.ResourceKind(from.ResourceRef))
}

// resourceVersion is the version that a request names, with what is in it.
func (s *Server) resourceVersion(r *http.Request, actor loom.Actor) (loom.Resource, catalog.ResourceContent, error) {
	ref, version, _, err := resourceRef(r.URL.Query())
	if err != nil {
		return loom.Resource{}, catalog.ResourceContent{}, err
	}
	versions, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{ResourceRef: ref})
	if err != nil {
		return loom.Resource{}, catalog.ResourceContent{}, err
	}
	at := slices.IndexFunc(versions, func(v loom.Resource) bool { return v.Version == version })
	if at < 0 {
		return loom.Resource{}, catalog.ResourceContent{}, noResource(ref, version)
	}
	content, err := s.Catalog.ResourceContent(r.Context(), actor, versions[at])
	return versions[at], content, err
}

func noResource(ref loom.ResourceRef, version int) error {
	return loom.NewError(loom.NotFound, "There is no version %d of the resource “%s”.", version, ref.Name)
}

// resourcesPage completes the page with what is stored and what plugins take. chosen is
// what the upload form uses, "" for what was stored last.
func (s *Server) resourcesPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m adminview.ResourcesModel, chosen string) error {
	coming, going, err := s.Catalog.ResourcesWaiting(r.Context(), actor)
	if err != nil {
		return err
	}
	if coming+going > 0 {
		m.Waiting = "Waiting for release: " + syncText(coming, going) + "."
	}
	if strings.Count(chosen, "/") != 2 { // a filter of the list, if anything
		if chosen, err = s.latestKind(r, actor); err != nil {
			return err
		}
	}
	kinds, err := s.resourceKinds(r, actor)
	if err != nil {
		return err
	}
	m.FileHelp = "At most " + page.SizeOf(catalog.DefaultMaxUpload) + "; a secret, such as an SSH key, at most " + page.SizeOf(catalog.MaxSealedUpload) + ". An archive is a .tar.gz or .zip with one folder at its top."
	m.Kinds, m.NoPlugins = uploadOptions(kinds, chosen), len(kinds) == 0
	f := resourceFilterOf(r)
	m.List = append(m.List, resourceFilters(f, kinds))
	grid, err := s.resourceGrid(r, actor, f)
	if err != nil {
		return err
	}
	m.List = append(m.List, grid)
	return s.Render(w, r, actor, status, page.AdminFrame("Files", route.AdminResources()), adminview.ResourcesPage(m))
}

// latestKind is that of the resource that was stored last, the likely one of the
// next; scripts where there is none.
func (s *Server) latestKind(r *http.Request, actor loom.Actor) (string, error) {
	list, err := s.Catalog.ListResources(r.Context(), actor, catalog.ResourceListInput{Page: loom.Page{Limit: 1, Sort: "-createTime"}})
	if err != nil || len(list.Items) == 0 {
		return adminview.ResourceKind(loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: page.ShellType, Type: page.ScriptsType}), err
	}
	return adminview.ResourceKind(list.Items[0].ResourceRef), nil
}

// resourceFilter is what the list of resources is narrowed to.
type resourceFilter struct{ q, plugin, kind, state, sort string }

// resourceFilterOf reads the filters of the list from the address. A request about one
// version, and a value that says what an upload is for, filter nothing.
func resourceFilterOf(r *http.Request) resourceFilter {
	q := r.URL.Query()
	f := resourceFilter{q: q.Get("q"), plugin: q.Get(adminview.FieldPlugin), kind: q.Get(adminview.FieldType), state: q.Get("status"), sort: q.Get("sort")}
	if q.Get(adminview.FieldVersion) != "" || strings.Contains(f.plugin, "/") {
		f.plugin, f.kind = "", ""
	}
	return f
}

func (f resourceFilter) any() bool { return f.q+f.plugin+f.kind+f.state != "" }

// pairs are the filters as parts of an address.
func (f resourceFilter) pairs() []string {
	return []string{"q", f.q, adminview.FieldPlugin, f.plugin, adminview.FieldType, f.kind, "status", f.state}
}

// resourceParams are the filters as parameters of the API.
func resourceParams(view url.Values) url.Values {
	q := page.SameParams("q", adminview.FieldPlugin, adminview.FieldType, "status", "sort")(view)
	if view.Get(adminview.FieldVersion) != "" || strings.Contains(q.Get(adminview.FieldPlugin), "/") {
		q.Del(adminview.FieldPlugin)
		q.Del(adminview.FieldType)
	}
	return q
}

func resourceFilters(f resourceFilter, kinds []resourceType) templ.Component {
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
		{Name: "q", Label: "Search resources", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: f.q, Placeholder: "Search name, plugin or type", Optional: true, MaxLength: 200},
		{Name: adminview.FieldPlugin, ID: "filter-plugin", Label: "Plugin", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(f.plugin, plugins...)},
		{Name: adminview.FieldType, ID: "filter-type", Label: "Resource type", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(f.kind, types...)},
		{Name: "status", ID: "filter-status", Label: "State", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true,
			Options: page.Options(f.state, "", "All states", "active", "In use", "staged", "Staged", "recalled", "Withdrawn", "inactive", "Inactive")},
	}}
	if f.any() {
		m.Clear = route.AdminResources()
	}
	return adminview.Filters(m)
}

// resourceGrid is a page of the resources, one for each name.
func (s *Server) resourceGrid(r *http.Request, actor loom.Actor, f resourceFilter) (templ.Component, error) {
	asked := s.PageOf(r)
	list, err := s.Catalog.ListResources(r.Context(), actor, catalog.ResourceListInput{Page: asked, Q: f.q, Plugin: f.plugin, Type: f.kind, Status: loom.ResourceStatus(f.state)})
	if err != nil {
		return nil, err
	}
	with := func(sort string) string {
		return route.Query(route.AdminResources(), append(f.pairs(), "sort", sort)...)
	}
	name, uploaded := ui.Column{Label: "Name", Sort: with("name")}, ui.Column{Label: "Uploaded", Sort: with("-createTime")}
	switch f.sort {
	case "name":
		name.Sort, name.Sorted = with("-name"), ui.Ascending
	case "-name":
		name.Sorted = ui.Descending
	case "-createTime":
		uploaded.Sort, uploaded.Sorted = with("createTime"), ui.Descending
	case "createTime":
		uploaded.Sorted = ui.Ascending
	}
	m := adminview.TableModel{ID: "resources", Caption: "Files", Now: s.Now(),
		Columns: []ui.Column{name, {Label: "State"}, {Label: "In use", Numeric: true}, {Label: "Staged", Numeric: true}, {Label: "Newest", Numeric: true}, {Label: "Size", Numeric: true}, uploaded, {Label: "By"}, {Label: "Actions", LabelHidden: true}},
		Pages:   page.Turned("Pages of resources", route.AdminResources(), list.Next, list.Prev, append(f.pairs(), "sort", f.sort)...),
		Empty:   ui.EmptyModel{Icon: "file", Text: "No files yet. Write or upload one below.", Action: ui.ButtonModel{Label: "Write or upload one", Icon: "plus", Href: "#upload"}},
	}
	if f.any() {
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No resource matches these filters.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.AdminResources()}}
	}
	for _, item := range list.Items {
		state := ui.ResourceState(item.Status())
		m.Rows = append(m.Rows, []adminview.Cell{
			{Text: item.Name, Href: page.ResourceURL(item.Resource), Mono: true, Sub: item.Plugin + " · " + item.Type}, {State: &state},
			s.versionCell(item, item.LiveVersion), s.versionCell(item, item.SlatedVersion), {Text: strconv.Itoa(item.Version), Sub: ofVersions(item.Versions)},
			{Text: page.SizeOf(item.Size)}, {Time: item.Created}, {Text: string(item.Author)},
			{Part: adminview.ResourceActions(resourceRow(item.Resource, item.SlatedVersion, ""))},
		})
	}
	m.CSV, m.JSON = s.ExportsOf(r)
	return adminview.Table(m), nil
}

// versionCell leads to a version; 0 is none.
func (s *Server) versionCell(item loom.ResourceSummary, version int) adminview.Cell {
	if version == 0 {
		return adminview.Cell{Text: "–"}
	}
	of := item.Resource
	of.Version = version
	return adminview.Cell{Text: strconv.Itoa(version), Href: page.ResourceURL(of)}
}

func ofVersions(n int) string {
	if n == 1 {
		return ""
	}
	return "of " + strconv.Itoa(n)
}

// resourceRow is what can be done with a version. slated is the version of its name that
// the next sync leaves in use, 0 for none; back is where the actions lead.
func resourceRow(v loom.Resource, slated int, back string) adminview.ResourceRow {
	ref := adminview.ResourceRef{Kind: v.Kind, Plugin: v.Plugin, Type: v.Type, Name: v.Name, Version: strconv.Itoa(v.Version), Back: back}
	row := adminview.ResourceRow{Ref: ref, CanStage: !v.Slated}
	if slated > 0 && (back == "" || v.Slated) {
		row.Recall = ref
		row.Recall.Version = strconv.Itoa(slated)
	}
	if v.Status() == loom.ResourceInactive && back != "" {
		row.DeleteHref = ref.Query(adminview.ResourceDelete())
	}
	return row
}

// syncText says what a sync would do.
func syncText(coming, going int) string {
	var parts []string
	if coming > 0 {
		parts = append(parts, ui.Count(coming, "version goes", "versions go")+" into use")
	}
	if going > 0 {
		parts = append(parts, ui.Count(going, "version goes", "versions go")+" out of use")
	}
	return loom.And(parts)
}
