package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// catalogView is the part of the catalog that a create is computed from, as it was at one
// moment.
type catalogView struct {
	// template is resolved.
	template     loom.Template
	provider     loom.Provider
	providerType loom.PluginType
	services     map[string]loom.Service
	hardware     []loom.HardwareType
	images       []loom.ImageType
	// providers are the names of those that may be chosen.
	providers []string
	// used are the template with its parts, the provider and its type.
	used []store.EntryVersion
}

func (cv *catalogView) use(kind loom.EntityKind, e *loom.Base) {
	cv.used = append(cv.used, store.EntryVersion{Kind: kind, Name: e.Name, Version: e.Version})
}

// readCatalog reads the catalog for a template and a provider; provider "" means
// the template's. NotFound, with the field of a create request, for a template,
// provider or provider type that does not exist.
func (u *Clusters) readCatalog(ctx context.Context, tenant loom.TenantID, template, provider string) (*catalogView, error) {
	return u.readCatalogWith(ctx, tenant, template, nil, provider)
}

// readCatalogWith is readCatalog with a template, unless nil, that stands in for the
// stored one of the name.
func (u *Clusters) readCatalogWith(ctx context.Context, tenant loom.TenantID, template string, draft *loom.Template, provider string) (*catalogView, error) {
	w, err := u.readWorld(ctx, tenant, loom.TenantKinds...)
	if err != nil {
		return nil, err
	}
	if draft != nil {
		w.templates[template] = draft
	}
	cv := &catalogView{services: w.services, hardware: w.hardware, images: w.images, providers: w.offered}
	if _, ok := w.templates[template]; !ok {
		err := missing("clusterTemplate", "There is no template “%s”.", template)
		if _, known := w.providers[provider]; provider != "" && !known {
			e := loom.AsError(err)
			e.Fields = append(e.Fields, unknownProvider(provider))
		}
		return nil, err
	}
	if cv.template, err = w.template(template, cv.use); err != nil {
		return nil, templateError(template, err)
	}
	if provider == "" {
		provider = cv.template.Defaults.Provider
	}
	if provider == "" {
		return cv, missing("provider", "Choose a provider; the template names none.")
	}
	p, ok := w.providers[provider]
	if !ok {
		f := unknownProvider(provider)
		return cv, missing(f.Field, "%s", f.Message)
	}
	cv.provider = *p
	return cv, u.readProviderType(ctx, cv)
}

func (u *Clusters) readProviderType(ctx context.Context, cv *catalogView) error {
	stored, err := store.CatalogEntry(ctx, u.q, loom.SuperTenant, loom.KindProviderType, cv.provider.Type, 0)
	if err != nil {
		if isNotFound(err) {
			return missing("provider", "The provider “%s” is of the type “%s”, which no plugin offers.", cv.provider.Name, cv.provider.Type)
		}
		return err
	}
	t, ok := stored.Entry.(*loom.PluginType)
	if !ok {
		return fmt.Errorf("provider type %s is stored as %T", cv.provider.Type, stored.Entry)
	}
	cv.providerType = *t
	cv.use(loom.KindProviderType, &t.Base)
	return nil
}

func unknownProvider(name string) loom.FieldError {
	return loom.FieldError{Field: "provider", Message: fmt.Sprintf("There is no provider “%s”.", name)}
}

// templateError says what is wrong with a template that does not resolve, at
// the field in which the request names it.
func templateError(template string, err error) error {
	e := loom.AsError(err)
	if e.Kind == loom.Internal {
		return err
	}
	message := fmt.Sprintf("The template “%s” cannot be used: %s", template, e.Message)
	return &loom.Error{Kind: e.Kind, Message: message, Err: err,
		Fields: []loom.FieldError{{Field: "clusterTemplate", Message: message}}}
}

// serviceNames returns the services of a request, or the template's.
func (cv *catalogView) serviceNames(wanted []string) []string {
	if len(wanted) == 0 {
		wanted = cv.template.Defaults.Services
	}
	names := slices.Clone(wanted)
	slices.Sort(names)
	return slices.Compact(names)
}

// chosen are the services of a request, or the template's.
func (cv *catalogView) chosen(wanted []string) map[string]loom.Service {
	chosen := map[string]loom.Service{}
	for _, name := range cv.serviceNames(wanted) {
		if s, there := cv.services[name]; there {
			chosen[name] = s
		}
	}
	return chosen
}

// hardwareType and imageType find what a layout names.
func (cv *catalogView) hardwareType(name string) *loom.HardwareType {
	for i := range cv.hardware {
		if cv.hardware[i].Name == name {
			return &cv.hardware[i]
		}
	}
	return &loom.HardwareType{}
}

func (cv *catalogView) imageType(name string) *loom.ImageType {
	for i := range cv.images {
		if cv.images[i].Name == name {
			return &cv.images[i]
		}
	}
	return &loom.ImageType{}
}

// MissingService is a service that is needed and that the catalog does not hold (any
// more).
type MissingService struct {
	// Name is that of the service, or a name that no service is or provides.
	Name string
	// By is the service that requires it; "" where the template Template names it.
	By, Template string
}

// String says what is missing and what an administrator can do about it.
func (l MissingService) String() string {
	if l.By == "" {
		return fmt.Sprintf("The template %s uses the service %s, which does not exist. An administrator can create it, or remove it from the template.", l.Template, l.Name)
	}
	return fmt.Sprintf("The service %s requires %s, which does not exist, and no service provides it. An administrator can create it, or remove it from the dependencies of %s.", l.By, l.Name, l.By)
}

// lost is lostServices as errors of a request; the field is the one that brings the
// services.
func (cv *catalogView) missing(wanted []string) []loom.FieldError {
	field := "services"
	if len(wanted) == 0 {
		field = "clusterTemplate"
	}
	var errs []loom.FieldError
	for _, l := range cv.missingServices(wanted) {
		errs = append(errs, loom.FieldError{Field: field, Message: l.String()})
	}
	return errs
}

// missingServices finds what the services of a request need and no catalog holds (any
// more): services that the template names, and names that a service requires and
// nothing offers. No layout and no change of the request mends that, so it is said in
// place of all that a search would find. A service that only the request names is left
// to the search.
func (cv *catalogView) missingServices(wanted []string) []MissingService {
	names := cv.serviceNames(wanted)
	var lost []MissingService
	for _, name := range names {
		if _, exists := cv.services[name]; !exists && cv.allows(name) {
			lost = append(lost, MissingService{Name: name, Template: cv.template.Name})
		}
	}
	return append(lost, cv.missingRequirements(names)...)
}

// allows reports whether the template names a service: by default, or as one that it allows.
func (cv *catalogView) allows(service string) bool {
	return slices.Contains(cv.template.Defaults.Services, service) || slices.Contains(cv.template.Compatibility.Services, service)
}

// missingRequirements finds what services require though nothing in the catalog is or
// provides it. A service of the request that is not there itself has been told of.
func (cv *catalogView) missingRequirements(names []string) []MissingService {
	var lost []MissingService
	offered, wanted := cv.serviceFor(), map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for _, name := range names {
		d := cv.services[name].Dependencies
		required := slices.Concat(d.Install.Requires, d.Runtime.Requires)
		slices.Sort(required)
		for _, missing := range slices.Compact(required) {
			if offered[missing] == "" && !wanted[missing] {
				lost = append(lost, MissingService{Name: missing, By: name})
			}
		}
	}
	return lost
}

// config returns the config of a request: its own, whole; else
// the defaults of the services, below those of the template, with the request's
// patch on top.
func (cv *catalogView) config(in loom.CreateInput) map[string]any {
	if in.Config != nil {
		return in.Config
	}
	config := map[string]any{}
	for _, name := range cv.serviceNames(in.Services) {
		s := cv.services[name]
		config = loom.MergePatch(config, s.Defaults())
	}
	if d := cv.template.Defaults.Config; d != nil {
		config = loom.MergePatch(config, d)
	}
	if in.ConfigPatch != nil {
		config = loom.MergePatch(config, in.ConfigPatch)
	}
	return config
}

// withRequired returns the template's services and one more, with all that these
// require: of several that provide a name, the first by name. Sorted. What nobody
// provides stays out; the search says so.
func (cv *catalogView) withRequired(service string) []string {
	here, provided, offered := map[string]bool{}, map[string]bool{}, cv.serviceFor()
	var added []string
	add := func(name string) {
		s, known := cv.services[name]
		if here[name] || !known {
			return
		}
		here[name], provided[name] = true, true
		added = append(added, name)
		for _, also := range s.Dependencies.Provides {
			provided[also] = true
		}
	}
	for _, name := range cv.template.Defaults.Services {
		add(name)
	}
	add(service)
	for len(added) > 0 {
		last := added
		added = nil
		slices.Sort(last)
		for _, name := range last {
			c := cv.services[name].Dependencies
			for _, required := range slices.Concat(c.Install.Requires, c.Runtime.Requires) {
				if found := offered[required]; found != "" && !provided[required] {
					add(found)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(here))
}

// serviceFor returns for each name the service of that name, or else the first that provides it.
func (cv *catalogView) serviceFor() map[string]string {
	offered := map[string]string{}
	for _, service := range slices.Sorted(maps.Keys(cv.services)) {
		for _, name := range cv.services[service].Dependencies.Provides {
			if offered[name] == "" {
				offered[name] = service
			}
		}
	}
	for service := range cv.services {
		offered[service] = service
	}
	return offered
}

// readTypes reads the hardware and image types of the catalog.
func (u *Clusters) readTypes(ctx context.Context, tenant loom.TenantID) (*catalogView, error) {
	w, err := u.readWorld(ctx, tenant, loom.KindHardwareType, loom.KindImageType)
	if err != nil {
		return nil, err
	}
	return &catalogView{hardware: w.hardware, images: w.images}, nil
}

// automatorsOf returns the automator types that any action of the services uses.
func automatorsOf(names []string, services map[string]loom.Service) []string {
	used := map[string]bool{}
	for _, name := range names {
		for _, action := range services[name].Provisioner.Actions {
			used[action.Type] = true
		}
	}
	return slices.Sorted(maps.Keys(used))
}
