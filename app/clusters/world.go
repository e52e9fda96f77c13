package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// world is the catalog that changes lead to: the newest released version of each entry, or another
// one in its place.
type world struct {
	templates map[string]*loom.Template
	partials  map[string]*loom.PartialTemplate
	providers map[string]*loom.Provider
	services  map[string]loom.Service
	hardware  []loom.HardwareType
	images    []loom.ImageType
	// offered are the names of the providers that may be chosen.
	offered []string
}

// readWorld reads the newest released entries of some kinds of a tenant.
func (u *Clusters) readWorld(ctx context.Context, tenant loom.TenantID, kinds ...loom.EntityKind) (*world, error) {
	if u.fleet != nil {
		return u.fleet.world.clone(), nil
	}
	stored, err := store.ReleasedCatalogEntries(ctx, u.q, tenant, kinds...)
	if err != nil {
		return nil, err
	}
	w := &world{templates: map[string]*loom.Template{}, partials: map[string]*loom.PartialTemplate{}, providers: map[string]*loom.Provider{}, services: map[string]loom.Service{}}
	for _, e := range stored {
		w.put(e.Entry)
	}
	return w, nil
}

// clone returns a world that can be changed by itself. Entries are shared.
func (w *world) clone() *world {
	c := *w
	c.templates, c.partials, c.providers, c.services = maps.Clone(w.templates), maps.Clone(w.partials), maps.Clone(w.providers), maps.Clone(w.services)
	c.hardware, c.images, c.offered = slices.Clone(w.hardware), slices.Clone(w.images), slices.Clone(w.offered)
	return &c
}

// version returns the version of an entry in the world, 0 where it is not there.
func (w *world) version(of store.EntryVersion) int {
	switch of.Kind {
	case loom.KindTemplate:
		if e := w.templates[of.Name]; e != nil {
			return e.Version
		}
	case loom.KindPartialTemplate:
		if e := w.partials[of.Name]; e != nil {
			return e.Version
		}
	case loom.KindService:
		return w.services[of.Name].Version
	case loom.KindHardwareType:
		for i := range w.hardware {
			if w.hardware[i].Name == of.Name {
				return w.hardware[i].Version
			}
		}
	case loom.KindImageType:
		for i := range w.images {
			if w.images[i].Name == of.Name {
				return w.images[i].Version
			}
		}
	}
	return 0
}

// put adds an entry, or takes it in place of the one of its kind and name.
func (w *world) put(entry loom.Entry) {
	switch e := entry.(type) {
	case *loom.Template:
		w.templates[e.Name] = e
	case *loom.PartialTemplate:
		w.partials[e.Name] = e
	case *loom.Provider:
		if _, there := w.providers[e.Name]; !there && !e.Deprecated {
			w.offered = append(w.offered, e.Name)
		}
		w.providers[e.Name] = e
	case *loom.Service:
		w.services[e.Name] = *e
	case *loom.HardwareType:
		w.hardware = replaced(w.hardware, *e, func(t *loom.HardwareType) bool { return t.Name == e.Name })
	case *loom.ImageType:
		w.images = replaced(w.images, *e, func(t *loom.ImageType) bool { return t.Name == e.Name })
	}
}

// replaced is a list with an element in place of the one that is, or at its end.
func replaced[T any](list []T, element T, is func(*T) bool) []T {
	for i := range list {
		if is(&list[i]) {
			list[i] = element
			return list
		}
	}
	return append(list, element)
}

// template merges a template with all that it extends and includes, and tells use of each of
// these. NotFound.
func (w *world) template(name string, use func(kind loom.EntityKind, e *loom.Base)) (loom.Template, error) {
	t, there := w.templates[name]
	if !there {
		return loom.Template{}, loom.NewError(loom.NotFound, "There is no template “%s”.", name)
	}
	use(loom.KindTemplate, &t.Base)
	return loom.MergeTemplate(*t, loom.TemplateLookup{
		Template: func(name string) (loom.Template, error) {
			parent, ok := w.templates[name]
			if !ok {
				return loom.Template{}, loom.NewError(loom.NotFound, "There is no template “%s”.", name)
			}
			use(loom.KindTemplate, &parent.Base)
			return *parent, nil
		},
		Partial: func(name string) (loom.PartialTemplate, error) {
			partial, ok := w.partials[name]
			if !ok {
				return loom.PartialTemplate{}, loom.NewError(loom.NotFound, "There is no partial template “%s”.", name)
			}
			use(loom.KindPartialTemplate, &partial.Base)
			return *partial, nil
		},
	})
}

// readVersions takes released versions of entries into a world. NotFound about the field of the request
// for a version that is not there.
func (u *Clusters) readVersions(ctx context.Context, tenant loom.TenantID, w *world, entries []store.EntryVersion) error {
	for i, named := range entries {
		if there := w.version(named); there > 0 && (named.Version == there || named.Version == 0) {
			continue
		}
		stored, err := store.ReleasedCatalogEntry(ctx, u.q, tenant, named.Kind, named.Name, named.Version)
		if isNotFound(err) {
			return missing(fmt.Sprintf("entries[%d]", i), "%s", loom.AsError(err).Message)
		}
		if err != nil {
			return err
		}
		w.put(stored.Entry)
	}
	return nil
}
