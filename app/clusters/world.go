package clusters

import (
	"context"
	"fmt"
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

// missing is NotFound about a field of the request.
func missing(field, format string, args ...any) error {
	e := loom.NewError(loom.NotFound, format, args...)
	e.Fields = []loom.FieldError{{Field: field, Message: e.Message}}
	return e
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
