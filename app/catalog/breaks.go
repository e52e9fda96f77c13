package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
)

// Breaks gives what would not work any more elsewhere if a service were stored as given:
// errors of other services and of templates that they do not have now. It changes
// nothing. A service that is not stored yet breaks nothing. With solve, layouts are
// searched for the templates that have the service or what depends on it, which takes
// some seconds at most; without, a template is named only for a service of its own that
// breaks. They come by kind and name.
func (c *Catalog) Breaks(ctx context.Context, actor loom.Actor, service *loom.Service, solve bool) ([]loom.Finding, error) {
	tenant, err := readTenant(actor, loom.KindService)
	if err != nil {
		return nil, err
	}
	entry, _, err := normalize(loom.KindService, service)
	if err != nil {
		return nil, err
	}
	before, err := c.finder(ctx, c.db, tenant, loom.TenantKinds)
	if err != nil {
		return nil, err
	}
	name := entry.Meta().Name
	if _, stored := before.entries[loom.KindService][name]; !stored {
		return nil, nil
	}
	after := before.copied()
	after.add(loom.KindService, entry)
	concerned := before.templatesWith(before.dependents(name), solve)
	wanted := func(kind loom.EntityKind, n string) bool {
		return kind == loom.KindService && n != name || kind == loom.KindTemplate && concerned[n]
	}
	old, err := before.find(ctx, wanted)
	if err != nil {
		return nil, err
	}
	now, err := after.find(ctx, wanted)
	if err != nil {
		return nil, err
	}
	known := map[loom.Finding]bool{}
	for _, f := range old {
		known[rule(f)] = true
	}
	now = slices.DeleteFunc(now, func(f loom.Finding) bool { return f.Severity != loom.FindingError || known[rule(f)] })
	return after.withTemplates(now), nil
}

// rule is what stays of a finding when it is found again: that a template has no layout is
// the same trouble for whatever reason.
func rule(f loom.Finding) loom.Finding {
	same := loom.Finding{Kind: f.Kind, Name: f.Name, Code: f.Code}
	if f.Code != loom.FindingUnsolvable {
		same.Field, same.Value = f.Field, f.Value
	}
	return same
}

// dependents are a service and all that depend on it or on what it provides, directly or
// not.
func (f *finder) dependents(name string) map[string]bool {
	users := map[string][]string{} // of a name, the services that depend on it
	for user, entry := range f.entries[loom.KindService] {
		d := entry.(*loom.Service).Dependencies
		for _, n := range slices.Concat(d.Install.Requires, d.Install.Uses, d.Runtime.Requires, d.Runtime.Uses) {
			users[n] = append(users[n], user)
		}
	}
	found := map[string]bool{name: true}
	for waiting := []string{name}; len(waiting) > 0; waiting = waiting[1:] {
		names := map[string]bool{waiting[0]: true}
		if s, there := f.entries[loom.KindService][waiting[0]].(*loom.Service); there {
			names = offers(*s)
		}
		for n := range names {
			for _, user := range users[n] {
				if !found[user] {
					found[user] = true
					waiting = append(waiting, user)
				}
			}
			delete(users, n) // they are found
		}
	}
	return found
}

// templatesWith are the templates whose clusters have one of the services by default;
// none unless they are wanted.
func (f *finder) templatesWith(services map[string]bool, wanted bool) map[string]bool {
	found := map[string]bool{}
	if !wanted {
		return found
	}
	for name, entry := range f.entries[loom.KindTemplate] {
		merged := f.merge(entry.(*loom.Template))
		if merged.err == nil && slices.ContainsFunc(merged.template.Defaults.Services, func(s string) bool { return services[s] }) {
			found[name] = true
		}
	}
	f.merged = map[string]mergeResult{}
	return found
}

// withTemplates adds to findings the templates that have a service of theirs by default,
// unless something was found of them already.
func (f *finder) withTemplates(found []loom.Finding) []loom.Finding {
	has := map[EntryName]bool{}
	for _, f := range found {
		has[EntryName{f.Kind, f.Name}] = true
	}
	for _, name := range slices.Sorted(maps.Keys(f.entries[loom.KindTemplate])) {
		t := f.entries[loom.KindTemplate][name].(*loom.Template)
		merged := f.merge(t)
		if merged.err != nil || has[EntryName{loom.KindTemplate, name}] {
			continue
		}
		for _, service := range merged.template.Defaults.Services {
			if has[EntryName{loom.KindService, service}] {
				found = append(found, loom.Finding{Severity: loom.FindingError, Code: loom.FindingUnsolvable, Kind: loom.KindTemplate, Name: name, Version: t.Version,
					Field: pointer("defaults", "services"), Value: service, Message: fmt.Sprintf("Its service “%s” could no longer be in a cluster.", service), Remedy: "Fix that service, or remove it from the template."})
				break
			}
		}
	}
	return found
}
