package lifecycle

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// lost finds what the services of a request need and no catalog holds (any more):
// services that the template names, and names that a service requires and nothing
// offers. No layout and no change of the request mends that, so it is said in place of
// all that a search would find; the field is the one that brings the services. A
// service that only the request names is left to the search.
func (w *world) lost(wanted []string) []loom.FieldError {
	field := "services"
	if len(wanted) == 0 {
		field = "clusterTemplate"
	}
	names := w.serviceNames(wanted)
	var errs []loom.FieldError
	for _, name := range names {
		if _, exists := w.services[name]; !exists && w.names(name) {
			errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf(
				"The template %s names the service %s, which does not exist (any more). An administrator can make it again, or take it out of the template.",
				w.template.Name, name)})
		}
	}
	return append(errs, w.lostRequirements(field, names)...)
}

// names says whether the template names a service: by default, or as one that it allows.
func (w *world) names(service string) bool {
	return slices.Contains(w.template.Defaults.Services, service) || slices.Contains(w.template.Compatibility.Services, service)
}

// lostRequirements finds what services require though nothing in the catalog is or
// provides it. A service of the request that is not there itself has been told of.
func (w *world) lostRequirements(field string, names []string) []loom.FieldError {
	var errs []loom.FieldError
	for _, name := range names {
		d := w.services[name].Dependencies
		required := slices.Concat(d.Install.Requires, d.Runtime.Requires)
		slices.Sort(required)
		for _, missing := range slices.Compact(required) {
			if w.offering(missing) == "" && !slices.Contains(names, missing) {
				errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf(
					"The service %s requires %s, which does not exist (any more), and no service provides it. An administrator can make it again, or take it out of what %s requires.",
					name, missing, name)})
			}
		}
	}
	return errs
}
