package clusters

import (
	"context"
	"errors"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/solver"
)

// Order is where the actions of a service fall while a cluster is made.
type Order struct {
	// Plan is that of the smallest cluster of the template with the service; it has no
	// tasks when there is none, for what Unsat says.
	Plan     loom.Plan
	Machines int
	Unsat    *loom.Unsat
	// Lost are services that are needed and do not exist (any more): there is no plan
	// then, either.
	Lost []LostService
	// With are the services that are there besides the template's own: the service
	// itself, and what it requires. Sorted.
	With []string
	// Allowed says that clusters of the template may have these. Where they may not,
	// the plan is made as if they might.
	Allowed bool
}

// Order works out the plan of a new cluster of a template with a service, which
// need not be stored: in the place of the stored one of its name. It keeps nothing,
// and looks at no quota and no provider fields. Errors: NotFound for the template or
// its provider; Invalid for services that wait for each other in a circle;
// Unavailable when the search takes too long.
func (u *Clusters) Order(ctx context.Context, actor loom.Actor, template string, service loom.Service) (Order, error) {
	var o Order
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return o, err
	}
	w, err := u.readWorld(ctx, actor.Tenant, template, "")
	if err != nil {
		return o, err
	}
	w.services = maps.Clone(w.services)
	w.services[service.Name] = service
	names := w.withRequired(service.Name)
	if o.Lost = w.lostServices(slices.Concat(w.template.Defaults.Services, names)); len(o.Lost) > 0 {
		return o, nil
	}
	allowed := w.template.Compatibility.Services
	o.Allowed = true
	for _, name := range names {
		if !slices.Contains(w.template.Defaults.Services, name) {
			o.With = append(o.With, name)
		}
		o.Allowed = o.Allowed && (len(allowed) == 0 || slices.Contains(allowed, name))
	}
	if !o.Allowed {
		w.template.Compatibility.Services = slices.Concat(allowed, names)
	}
	least, _ := w.template.Constraints.Size.Bounds()
	p := &prepared{world: w, in: loom.CreateInput{Template: template, Services: names, Machines: max(1, least)}}
	layout, err := u.smallest(ctx, actor.Tenant, p, &o)
	if err != nil || o.Unsat != nil {
		return o, err
	}
	c := p.bare(0, layout)
	o.Machines = len(c.After.Nodes)
	err = u.makePlan(ctx, actor.Tenant, c)
	o.Plan = c.plan
	return o, err
}

// smallest looks for a layout of the template's least size, or of the least one
// that works.
func (u *Clusters) smallest(ctx context.Context, tenant loom.TenantID, p *prepared, o *Order) (loom.Layout, error) {
	solving, stop := u.solving(ctx, tenant, u.opts.CheckTime)
	defer stop()
	for {
		_, layout, unsat, err := solver.Create(solving, u.input(p))
		switch {
		case errors.Is(err, loom.Unavailable) && ctx.Err() == nil:
			return nil, loom.NewError(loom.Unavailable, "The search for a layout took too long; choose a template with fewer services.")
		case err != nil || unsat == nil:
			return layout, err
		case unsat.Sizes == nil || unsat.Sizes.Min <= p.in.Machines:
			o.Unsat = unsat
			return nil, nil
		}
		p.in.Machines = unsat.Sizes.Min
	}
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
