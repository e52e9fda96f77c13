package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// world is the part of the catalog that a create is computed from, as it was at
// one moment.
type world struct {
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

func (w *world) use(kind loom.EntityKind, e *loom.Base) {
	w.used = append(w.used, store.EntryVersion{Kind: kind, Name: e.Name, Version: e.Version})
}

// readWorld reads the catalog for a template and a provider; provider "" means
// the template's. NotFound, with the field of a create request, for a template,
// provider or provider type that does not exist.
func (u *Clusters) readWorld(ctx context.Context, tenant loom.TenantID, template, provider string) (*world, error) {
	return u.readWorldWith(ctx, tenant, template, nil, provider)
}

// readWorldWith is readWorld with a template, unless nil, that stands in for the
// stored one of the name.
func (u *Clusters) readWorldWith(ctx context.Context, tenant loom.TenantID, template string, draft *loom.Template, provider string) (*world, error) {
	entries, err := store.NewestCatalogEntries(ctx, u.db, tenant, loom.TenantKinds...)
	if err != nil {
		return nil, err
	}
	w := &world{services: map[string]loom.Service{}}
	templates := map[string]*loom.Template{}
	partials := map[string]*loom.PartialTemplate{}
	providers := map[string]*loom.Provider{}
	for _, stored := range entries {
		switch e := stored.Entry.(type) {
		case *loom.Template:
			templates[e.Name] = e
		case *loom.PartialTemplate:
			partials[e.Name] = e
		case *loom.Provider:
			providers[e.Name] = e
			if !e.Deprecated {
				w.providers = append(w.providers, e.Name)
			}
		case *loom.Service:
			w.services[e.Name] = *e
		case *loom.HardwareType:
			w.hardware = append(w.hardware, *e)
		case *loom.ImageType:
			w.images = append(w.images, *e)
		}
	}
	if draft != nil {
		templates[template] = draft
	}
	t, ok := templates[template]
	if !ok {
		err := missing("clusterTemplate", "There is no template “%s”.", template)
		if _, known := providers[provider]; provider != "" && !known {
			e := loom.AsError(err)
			e.Fields = append(e.Fields, unknownProvider(provider))
		}
		return nil, err
	}
	w.use(loom.KindTemplate, &t.Base)
	w.template, err = loom.MergeTemplate(*t, loom.TemplateLookup{
		Template: func(name string) (loom.Template, error) {
			parent, ok := templates[name]
			if !ok {
				return loom.Template{}, loom.NewError(loom.NotFound, "There is no template “%s”.", name)
			}
			w.use(loom.KindTemplate, &parent.Base)
			return *parent, nil
		},
		Partial: func(name string) (loom.PartialTemplate, error) {
			partial, ok := partials[name]
			if !ok {
				return loom.PartialTemplate{}, loom.NewError(loom.NotFound, "There is no partial template “%s”.", name)
			}
			w.use(loom.KindPartialTemplate, &partial.Base)
			return *partial, nil
		},
	})
	if err != nil {
		return nil, templateError(template, err)
	}
	if provider == "" {
		provider = w.template.Defaults.Provider
	}
	if provider == "" {
		return w, missing("provider", "Choose a provider; the template names none.")
	}
	p, ok := providers[provider]
	if !ok {
		f := unknownProvider(provider)
		return w, missing(f.Field, "%s", f.Message)
	}
	w.provider = *p
	return w, u.readProviderType(ctx, w)
}

func (u *Clusters) readProviderType(ctx context.Context, w *world) error {
	stored, err := store.CatalogEntry(ctx, u.db, loom.SuperTenant, loom.KindProviderType, w.provider.Type, 0)
	if err != nil {
		if isNotFound(err) {
			return missing("provider", "The provider “%s” is of the type “%s”, which no plugin offers.", w.provider.Name, w.provider.Type)
		}
		return err
	}
	t, ok := stored.Entry.(*loom.PluginType)
	if !ok {
		return fmt.Errorf("provider type %s is stored as %T", w.provider.Type, stored.Entry)
	}
	w.providerType = *t
	w.use(loom.KindProviderType, &t.Base)
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

// serviceNames gives the services of a request, or the template's.
func (w *world) serviceNames(wanted []string) []string {
	if len(wanted) == 0 {
		wanted = w.template.Defaults.Services
	}
	names := slices.Clone(wanted)
	slices.Sort(names)
	return slices.Compact(names)
}

// hardwareType and imageType find what a layout names.
func (w *world) hardwareType(name string) *loom.HardwareType {
	for i := range w.hardware {
		if w.hardware[i].Name == name {
			return &w.hardware[i]
		}
	}
	return &loom.HardwareType{}
}

func (w *world) imageType(name string) *loom.ImageType {
	for i := range w.images {
		if w.images[i].Name == name {
			return &w.images[i]
		}
	}
	return &loom.ImageType{}
}

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

// config gives the config of a request: its own, whole; else
// the defaults of the services, below those of the template, with the request's
// patch on top.
func (w *world) config(in loom.CreateInput) map[string]any {
	if in.Config != nil {
		return in.Config
	}
	config := map[string]any{}
	for _, name := range w.serviceNames(in.Services) {
		if d := w.services[name].DefaultConfig; d != nil {
			config = loom.MergePatch(config, d)
		}
	}
	if d := w.template.Defaults.Config; d != nil {
		config = loom.MergePatch(config, d)
	}
	if in.ConfigPatch != nil {
		config = loom.MergePatch(config, in.ConfigPatch)
	}
	return config
}

// withRequired gives the template's services and one more, with all that these
// require: of several that provide a name, the first by name. Sorted. What nobody
// provides stays out; the search says so.
func (w *world) withRequired(service string) []string {
	here, provided, offered := map[string]bool{}, map[string]bool{}, w.offered()
	var added []string
	add := func(name string) {
		s, known := w.services[name]
		if here[name] || !known {
			return
		}
		here[name], provided[name] = true, true
		added = append(added, name)
		for _, also := range s.Dependencies.Provides {
			provided[also] = true
		}
	}
	for _, name := range w.template.Defaults.Services {
		add(name)
	}
	add(service)
	for len(added) > 0 {
		last := added
		added = nil
		slices.Sort(last)
		for _, name := range last {
			c := w.services[name].Dependencies
			for _, required := range slices.Concat(c.Install.Requires, c.Runtime.Requires) {
				if found := offered[required]; found != "" && !provided[required] {
					add(found)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(here))
}

// offered gives for each name the service of that name, or else the first that provides it.
func (w *world) offered() map[string]string {
	offered := map[string]string{}
	for _, service := range slices.Sorted(maps.Keys(w.services)) {
		for _, name := range w.services[service].Dependencies.Provides {
			if offered[name] == "" {
				offered[name] = service
			}
		}
	}
	for service := range w.services {
		offered[service] = service
	}
	return offered
}

// readTypes reads the hardware and image types of the catalog.
func (u *Clusters) readTypes(ctx context.Context, tenant loom.TenantID) (*world, error) {
	entries, err := store.NewestCatalogEntries(ctx, u.db, tenant, loom.KindHardwareType, loom.KindImageType)
	if err != nil {
		return nil, err
	}
	w := &world{}
	for _, stored := range entries {
		switch e := stored.Entry.(type) {
		case *loom.HardwareType:
			w.hardware = append(w.hardware, *e)
		case *loom.ImageType:
			w.images = append(w.images, *e)
		}
	}
	return w, nil
}

// automatorsOf gives the automator types that any action of the services uses.
func automatorsOf(names []string, services map[string]loom.Service) []string {
	used := map[string]bool{}
	for _, name := range names {
		for _, action := range services[name].Provisioner.Actions {
			used[action.Type] = true
		}
	}
	return slices.Sorted(maps.Keys(used))
}
