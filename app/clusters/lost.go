package clusters

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// LostService is a service that is needed and that the catalog does not hold (any
// more).
type LostService struct {
	// Name is that of the service, or a name that no service is or provides.
	Name string
	// By is the service that requires it; "" where the template Template names it.
	By, Template string
}

// String says what is missing and what an administrator can do about it.
func (l LostService) String() string {
	if l.By == "" {
		return fmt.Sprintf("The template %s names the service %s, which does not exist (any more). An administrator can make it again, or take it out of the template.", l.Template, l.Name)
	}
	return fmt.Sprintf("The service %s requires %s, which does not exist (any more), and no service provides it. An administrator can make it again, or take it out of what %s requires.", l.By, l.Name, l.By)
}

// lost is lostServices as errors of a request; the field is the one that brings the
// services.
func (w *world) lost(wanted []string) []loom.FieldError {
	field := "services"
	if len(wanted) == 0 {
		field = "clusterTemplate"
	}
	var errs []loom.FieldError
	for _, l := range w.lostServices(wanted) {
		errs = append(errs, loom.FieldError{Field: field, Message: l.String()})
	}
	return errs
}

// lostServices finds what the services of a request need and no catalog holds (any
// more): services that the template names, and names that a service requires and
// nothing offers. No layout and no change of the request mends that, so it is said in
// place of all that a search would find. A service that only the request names is left
// to the search.
func (w *world) lostServices(wanted []string) []LostService {
	names := w.serviceNames(wanted)
	var lost []LostService
	for _, name := range names {
		if _, exists := w.services[name]; !exists && w.names(name) {
			lost = append(lost, LostService{Name: name, Template: w.template.Name})
		}
	}
	return append(lost, w.lostRequirements(names)...)
}

// names says whether the template names a service: by default, or as one that it allows.
func (w *world) names(service string) bool {
	return slices.Contains(w.template.Defaults.Services, service) || slices.Contains(w.template.Compatibility.Services, service)
}

// lostRequirements finds what services require though nothing in the catalog is or
// provides it. A service of the request that is not there itself has been told of.
func (w *world) lostRequirements(names []string) []LostService {
	var lost []LostService
	offered, wanted := w.offered(), map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for _, name := range names {
		d := w.services[name].Dependencies
		required := slices.Concat(d.Install.Requires, d.Runtime.Requires)
		slices.Sort(required)
		for _, missing := range slices.Compact(required) {
			if offered[missing] == "" && !wanted[missing] {
				lost = append(lost, LostService{Name: missing, By: name})
			}
		}
	}
	return lost
}
