package catalog

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// CheckInput limits a check; empty lists do not.
type CheckInput struct {
	Kinds      []loom.EntityKind
	Names      []string
	Severities []loom.FindingSeverity
}

// Check gives all that would not work in the catalog of the actor's tenant: the
// newest version of each entry, held against the others and the plugin types. It
// changes nothing. Findings come by kind (in the order of an export), name,
// severity and place. Invalid for kinds and severities that do not exist.
func (c *Catalog) Check(ctx context.Context, actor loom.Actor, in CheckInput) ([]loom.Finding, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return nil, err
	}
	var errs []loom.FieldError
	for _, kind := range in.Kinds {
		if !slices.Contains(loom.TenantKinds, kind) {
			errs = append(errs, loom.FieldError{Field: "kind", Message: "A kind is one of " + loom.Or(loom.TenantKinds) + "."})
		}
	}
	for _, severity := range in.Severities {
		if !slices.Contains(loom.FindingSeverities, severity) {
			errs = append(errs, loom.FieldError{Field: "severity", Message: "A severity is one of " + loom.Or(loom.FindingSeverities) + "."})
		}
	}
	if err := loom.InvalidFields(errs); err != nil {
		return nil, err
	}
	f, err := c.finder(ctx, c.db, actor.Tenant, loom.TenantKinds)
	if err != nil {
		return nil, err
	}
	wanted := func(kind loom.EntityKind, name string) bool {
		return (len(in.Kinds) == 0 || slices.Contains(in.Kinds, kind)) && (len(in.Names) == 0 || slices.Contains(in.Names, name))
	}
	found, err := f.find(ctx, wanted)
	if err == nil {
		found = append(found, f.unchecked(wanted)...)
	}
	return slices.DeleteFunc(found, func(f loom.Finding) bool {
		return len(in.Severities) > 0 && !slices.Contains(in.Severities, f.Severity)
	}), err
}

// CheckEntry gives what would not work if an entry were stored now; it need not
// be. What of it is sealed already counts as given. It changes nothing, so that
// reading is enough of a right.
func (c *Catalog) CheckEntry(ctx context.Context, actor loom.Actor, kind loom.EntityKind, entry loom.Entry) ([]loom.Finding, error) {
	tenant, err := readTenant(actor, kind)
	if err != nil {
		return nil, err
	}
	entry, _, err = normalize(kind, entry)
	if err != nil {
		return nil, err
	}
	if p, ok := entry.(*loom.Provider); ok {
		sealed, err := store.Secrets(ctx, c.db, tenant, store.ProviderSecrets(p.Name))
		if err != nil {
			return nil, err
		}
		for field := range sealed {
			p.Sealed = append(p.Sealed, field)
		}
	}
	return c.findings(ctx, tenant, kind, entry)
}

// findings looks at one entry in the place of the stored one, and then at what is
// made from it: the templates that a template or a part goes into.
func (c *Catalog) findings(ctx context.Context, tenant loom.TenantID, kind loom.EntityKind, entry loom.Entry) ([]loom.Finding, error) {
	if kind.Global() {
		return nil, nil
	}
	f, err := c.finder(ctx, c.db, tenant, needs(kind))
	if err != nil {
		return nil, err
	}
	f.add(kind, entry)
	name := entry.Meta().Name
	children := f.children(kind, name)
	found, err := f.find(ctx, func(k loom.EntityKind, n string) bool {
		return k == kind && n == name || k == loom.KindTemplate && children[n]
	})
	isOwn := func(f loom.Finding) bool { return f.Kind == kind && f.Name == name }
	slices.SortStableFunc(found, func(a, b loom.Finding) int {
		switch {
		case isOwn(a) == isOwn(b):
			return 0
		case isOwn(a):
			return -1
		}
		return 1
	})
	return found, err
}

// needs gives the kinds that entries of a kind are held against; an entry of a
// small kind need not wait for the whole catalog to be read.
func needs(kind loom.EntityKind) []loom.EntityKind {
	switch kind {
	case loom.KindProvider:
		return nil
	case loom.KindHardwareType, loom.KindImageType:
		return []loom.EntityKind{loom.KindProvider}
	case loom.KindService:
		return []loom.EntityKind{loom.KindService}
	}
	return loom.TenantKinds
}

// finder reads the newest entries of some kinds, and the plugin types with the
// tenant's resources.
func (c *Catalog) finder(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kinds []loom.EntityKind) (*finder, error) {
	f := newFinder()
	f.plain = c.PlainHTTP
	hosts, err := store.LocalHostsAllTenants(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		if most, _, err := loom.ParseLocalLimits(host.Max); err == nil {
			f.local = append(f.local, most)
		}
	}
	stored, err := store.NewestCatalogEntries(ctx, q, tenant, kinds...)
	if err != nil {
		return nil, err
	}
	plugins, err := store.NewestCatalogEntries(ctx, q, loom.SuperTenant, loom.KindProviderType, loom.KindAutomatorType)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(stored, plugins) {
		f.add(s.Kind, s.Entry)
	}
	resources, err := store.Resources(ctx, q, tenant, loom.ResourceRef{})
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		if r.Live || r.Slated {
			f.resources[r.ResourceRef] = true
		}
	}
	return f, nil
}

// children gives the templates that extend a template, directly or not, or
// include a partial template.
func (f *finder) children(kind loom.EntityKind, name string) map[string]bool {
	found := map[string]bool{}
	if kind != loom.KindTemplate && kind != loom.KindPartialTemplate {
		return found
	}
	extenders := map[string][]string{}
	var waiting []string
	for child, entry := range f.entries[loom.KindTemplate] {
		t := entry.(*loom.Template)
		if t.Extends != nil {
			extenders[t.Extends.Name] = append(extenders[t.Extends.Name], child)
		}
		if kind == loom.KindPartialTemplate && slices.Contains(t.Includes, loom.NameRef{Name: name}) {
			found[child] = true
			waiting = append(waiting, child)
		}
	}
	if kind == loom.KindTemplate {
		waiting = []string{name}
	}
	for len(waiting) > 0 {
		next := waiting[0]
		waiting = waiting[1:]
		for _, child := range extenders[next] {
			if !found[child] {
				found[child] = true
				waiting = append(waiting, child)
			}
		}
	}
	return found
}
