package web

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"loom/app/loom"
	"loom/views/ui"
)

// resourceType is what a plugin takes.
type resourceType struct {
	loom.ResourceRef
	format string
}

// resourceKind is the value by which the upload form knows what uses a resource.
func resourceKind(ref loom.ResourceRef) string { return ref.Kind + "/" + ref.Plugin + "/" + ref.Type }

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
		value, label := resourceKind(k.ResourceRef), fmt.Sprintf("%s (%s): %s", k.Plugin, loom.EntityKind(k.Kind).Word(), k.Type)
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
