package web

import (
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
	return s.resourcesPage(w, r, actor, http.StatusOK, adminview.ResourcesModel{Stage: true}, r.URL.Query().Get(adminview.FieldPlugin))
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
	if m.Kinds, err = s.resourceKinds(r, actor, chosen); err != nil {
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
