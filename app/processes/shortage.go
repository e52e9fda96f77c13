package processes

import (
	"context"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// TenantWorkers is what a tenant wants, has been dealt and uses.
type TenantWorkers struct {
	Tenant              loom.TenantID
	Wanted, Dealt, Busy int
	// Paused says since when the tenant's queue is paused, and by whom; zero when it is
	// not. A paused tenant is dealt no workers, however many it wants.
	Paused Pause
}

// Shortage compares the workers that tenants want with the live capacity.
type Shortage struct {
	// Capacity of all live provisioners; 0 for actors who may not know it.
	Capacity int
	// Wanted and Dealt sum up Tenants; what paused ones want is left out.
	Wanted, Dealt int
	// Tenants by id; only the actor's own unless it is a superadmin.
	Tenants []TenantWorkers
}

// Short reports whether somebody has fewer workers than wanted.
func (s *Shortage) Short() bool { return s.Dealt < s.Wanted }

// Shortage says how many of the wanted workers could be dealt: a superadmin sees
// all tenants, anybody else their own.
func (f *Processes) Shortage(ctx context.Context, actor loom.Actor) (Shortage, error) {
	return f.shortage(ctx, actor, func() ([]store.LiveProcess, error) {
		return store.LiveProcessesAllTenants(ctx, f.db, loom.ProcessProvisioner)
	})
}

// ShortageAtRest is Shortage without what the workers do, which has to be looked up in all
// nodes at work: for who only wants to know whether there are enough of them.
func (f *Processes) ShortageAtRest(ctx context.Context, actor loom.Actor) (Shortage, error) {
	return f.shortage(ctx, actor, func() ([]store.LiveProcess, error) { return store.LiveProvisionersAllTenants(ctx, f.db) })
}

func (f *Processes) shortage(ctx context.Context, actor loom.Actor, provisioners func() ([]store.LiveProcess, error)) (Shortage, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return Shortage{}, err
	}
	live, err := provisioners()
	if err != nil {
		return Shortage{}, err
	}
	wanted, err := store.WantedWorkersAllTenants(ctx, f.db)
	if err != nil {
		return Shortage{}, err
	}
	all := map[loom.TenantID]*TenantWorkers{}
	of := func(t loom.TenantID) *TenantWorkers {
		if all[t] == nil {
			all[t] = &TenantWorkers{Tenant: t}
		}
		return all[t]
	}
	paused, err := store.PausedTenantsAllTenants(ctx, f.db)
	if err != nil {
		return Shortage{}, err
	}
	var s Shortage
	for tenant, n := range wanted {
		of(tenant).Wanted = n
	}
	for tenant, p := range paused {
		of(tenant).Paused = p
	}
	for _, p := range live {
		s.Capacity += p.Capacity
		for tenant, n := range p.Workers {
			of(tenant).Dealt += n
		}
		for tenant, n := range p.Busy {
			of(tenant).Busy += n
		}
	}
	if actor.May(loom.Install.Reading(), loom.Installation) != nil {
		s.Capacity = 0
		maps.DeleteFunc(all, func(t loom.TenantID, _ *TenantWorkers) bool { return t != actor.Tenant })
	}
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		t := all[tenant]
		if t.Paused.At.IsZero() {
			s.Wanted += t.Wanted
		}
		s.Dealt += t.Dealt
		s.Tenants = append(s.Tenants, *t)
	}
	return s, nil
}
