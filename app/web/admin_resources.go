package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) adminResources(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m := adminview.ResourcesModel{Stage: true}
	q := r.URL.Query()
	if q.Get(adminview.FieldVersion) == "" {
		return s.resourcesPage(w, r, actor, http.StatusOK, m, q.Get(adminview.FieldPlugin))
	}
	from, content, err := s.resourceVersion(r, actor)
	if err != nil {
		return err
	}
	m.Name, m.Text = from.Name, content.Text
	return s.resourcesPage(w, r, actor, http.StatusOK, m, resourceKind(from.ResourceRef))
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

// resourceKind is the value by which the upload form knows what uses a resource.
func resourceKind(ref loom.ResourceRef) string { return ref.Kind + "/" + ref.Plugin + "/" + ref.Type }

// latestKind is that of the resource that was stored last, the likely one of the
// next; scripts where there is none.
func latestKind(resources []loom.Resource) string {
	if len(resources) == 0 {
		return resourceKind(loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: shellType, Type: scriptsType})
	}
	return resourceKind(slices.MaxFunc(resources, func(a, b loom.Resource) int { return a.Created.Compare(b.Created) }).ResourceRef)
}

// resourcesPage completes the page with what is stored and what plugins take.
func (s *Server) resourcesPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m adminview.ResourcesModel, chosen string) error {
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	m.Now, m.Groups = s.now(), resourceGroups(resources)
	if staged, recalled := waiting(resources); staged+recalled > 0 {
		m.Waiting = "Waiting for a sync: " + syncText(staged, recalled) + "."
	}
	if m.Kinds, err = s.resourceKinds(r, actor, cmp.Or(chosen, latestKind(resources))); err != nil {
		return err
	}
	m.NoPlugins = len(m.Kinds) == 0
	return s.render(w, r, actor, status, adminFrame("Plugin resources", route.AdminResources()), adminview.ResourcesPage(m))
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

func syncText(staged, recalled int) string {
	var parts []string
	if staged > 0 {
		parts = append(parts, ui.Count(staged, "version goes", "versions go")+" into use")
	}
	if recalled > 0 {
		parts = append(parts, ui.Count(recalled, "version goes", "versions go")+" out of use")
	}
	return and(parts)
}

// resourceKinds are the choices of the upload form: each resource type of each
// plugin. The value is that of parseResourceKind.
func (s *Server) resourceKinds(r *http.Request, actor loom.Actor, chosen string) ([]ui.Option, error) {
	var options []ui.Option
	for _, kind := range []loom.EntityKind{loom.KindAutomatorType, loom.KindProviderType} {
		types, err := s.Catalog.PluginTypes(r.Context(), actor, kind)
		if err != nil {
			return nil, err
		}
		for _, t := range types {
			for _, name := range slices.Sorted(maps.Keys(t.ResourceTypes)) {
				value := string(kind) + "/" + t.Name + "/" + name
				options = append(options, ui.Option{
					Value: value, Label: fmt.Sprintf("%s (%s): %s", t.Name, kind.Word(), name), Selected: value == chosen,
				})
			}
		}
	}
	return options, nil
}

// resourceGroups puts together versions of the same plugin and type, the newest
// version of a name first.
func resourceGroups(resources []loom.Resource) []adminview.ResourceGroup {
	groups := map[string][]loom.Resource{}
	for _, r := range resources {
		title := r.Plugin + " · " + r.Type
		groups[title] = append(groups[title], r)
	}
	var found []adminview.ResourceGroup
	for i, title := range slices.Sorted(maps.Keys(groups)) {
		g := adminview.ResourceGroup{ID: adminview.GroupID(i), Title: title}
		list := groups[title]
		slices.SortStableFunc(list, func(a, b loom.Resource) int {
			if a.Name != b.Name {
				return slices.Compare([]string{a.Name}, []string{b.Name})
			}
			return b.Version - a.Version
		})
		for n, r := range list {
			row := resourceRow(r)
			row.First = n == 0 || list[n-1].Name != r.Name
			g.Rows = append(g.Rows, row)
		}
		found = append(found, g)
	}
	return found
}

func resourceRow(r loom.Resource) adminview.ResourceRow {
	row := adminview.ResourceRow{
		Ref:   adminview.ResourceRef{Kind: r.Kind, Plugin: r.Plugin, Type: r.Type, Name: r.Name, Version: strconv.Itoa(r.Version)},
		State: ui.ResourceState(r.Status()), Size: sizeOf(r.Size), Sum: r.SHA256[:min(12, len(r.SHA256))], Author: string(r.Author), Created: r.Created,
	}
	if r.Slated {
		row.RecallHref = row.Ref.Query(adminview.ResourceRecall())
	} else {
		row.CanStage = true
	}
	if r.Status() == loom.ResourceInactive {
		row.DeleteHref = row.Ref.Query(adminview.ResourceDelete())
	}
	return row
}

// sizeOf writes a number of bytes for people.
func sizeOf(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 1, 64) + " MiB"
	case bytes >= 1<<10:
		return strconv.FormatFloat(float64(bytes)/(1<<10), 'f', 1, 64) + " KiB"
	}
	return ui.Count(int(bytes), "byte", "bytes")
}
