package processes

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

func reassignAfter(ctx context.Context, tx *sqlx.Tx, kind string) error {
	if kind != loom.ProcessProvisioner {
		return nil
	}
	return assignWorkers(ctx, tx)
}

func assignWorkers(ctx context.Context, tx *sqlx.Tx) error {
	if err := store.LockAssignments(ctx, tx); err != nil {
		return err
	}
	live, err := store.LiveProvisionersAllTenants(ctx, tx)
	if err != nil {
		return err
	}
	wanted, err := store.WantedWorkersAllTenants(ctx, tx)
	if err != nil {
		return err
	}
	// A paused tenant is promised its workers, but none are assigned to it.
	paused, err := store.PausedTenantsAllTenants(ctx, tx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(wanted, func(t loom.TenantID, _ int) bool { _, is := paused[t]; return is })
	assignments := DistributeWorkers(capacities(live), wanted)
	if sameAssignments(live, assignments) {
		return nil
	}
	return store.ReplaceAssignmentsAllTenants(ctx, tx, assignments)
}

func capacities(live []LiveProcess) []Capacity {
	var seats []Capacity
	for _, p := range live {
		if !p.Draining && p.Capacity > 0 {
			seats = append(seats, Capacity{p.ID, p.Capacity, p.OnlyTenant})
		}
	}
	return seats
}

// sameAssignments reports whether the live processes have exactly these assignments.
func sameAssignments(live []LiveProcess, assignments []loom.Assignment) bool {
	n := 0
	for _, p := range live {
		n += len(p.Workers)
	}
	if n != len(assignments) {
		return false
	}
	at := map[loom.ProcessID]map[loom.TenantID]int{}
	for _, p := range live {
		at[p.ID] = p.Workers
	}
	for _, a := range assignments {
		if at[a.Process][a.Tenant] != a.Workers {
			return false
		}
	}
	return true
}

// Capacity is the room of one provisioner; Only limits it to one tenant.
type Capacity struct {
	Process  loom.ProcessID
	Capacity int
	Only     loom.TenantID
}

// DistributeWorkers deals wanted workers over provisioners: everybody gets what they want
// where there is room, else a share in proportion and at least one where
// possible. Each tenant is spread, the least loaded provisioner first. The same
// input returns the same answer, sorted by tenant and process.
func DistributeWorkers(seats []Capacity, wanted map[loom.TenantID]int) []loom.Assignment {
	seats = slices.Clone(seats)
	slices.SortFunc(seats, func(a, b Capacity) int { return cmp.Compare(a.Process, b.Process) })
	general := 0
	own := map[loom.TenantID]int{}
	for _, s := range seats {
		if s.Only == "" {
			general += s.Capacity
		} else {
			own[s.Only] += s.Capacity
		}
	}
	// Provisioners of one tenant serve it first; the others are shared.
	more := map[loom.TenantID]int{}
	for tenant, n := range wanted {
		if rest := n - own[tenant]; rest > 0 {
			more[tenant] = rest
		}
	}
	granted := proportionalShares(general, more)

	load := make([]int, len(seats))
	var assignments []loom.Assignment
	for _, tenant := range slices.Sorted(maps.Keys(wanted)) {
		given := make([]int, len(seats))
		place := func(n int, only loom.TenantID) {
			for ; n > 0; n-- {
				best := -1
				for i, s := range seats {
					if s.Only == only && load[i] < s.Capacity && (best < 0 || lessLoaded(load[i], given[i], s, load[best], given[best], seats[best])) {
						best = i
					}
				}
				if best < 0 {
					return
				}
				load[best]++
				given[best]++
			}
		}
		place(min(wanted[tenant], own[tenant]), tenant)
		place(granted[tenant], "")
		for i, n := range given {
			if n > 0 {
				assignments = append(assignments, loom.Assignment{Tenant: tenant, Process: seats[i].Process, Workers: n})
			}
		}
	}
	return assignments
}

// lessLoaded reports whether a is less loaded than b, for its size; among equals
// the one with fewer workers of this tenant.
func lessLoaded(loadA, givenA int, a Capacity, loadB, givenB int, b Capacity) bool {
	return cmp.Or(cmp.Compare(loadA*b.Capacity, loadB*a.Capacity), cmp.Compare(givenA, givenB)) < 0
}

// proportionalShares shares room among wishes: all of them if they fit, else each its
// part, the largest remainders rounded up, at least one each while there is room.
func proportionalShares(room int, wishes map[loom.TenantID]int) map[loom.TenantID]int {
	total := 0
	for _, n := range wishes {
		total += n
	}
	if total <= room {
		return wishes
	}
	granted := make(map[loom.TenantID]int, len(wishes))
	tenants := slices.Sorted(maps.Keys(wishes))
	left := room
	for _, t := range tenants {
		granted[t] = wishes[t] * room / total
		left -= granted[t]
	}
	slices.SortStableFunc(tenants, func(a, b loom.TenantID) int {
		// Whoever has nothing yet comes first, then the largest remainder.
		return cmp.Or(cmp.Compare(min(granted[a], 1), min(granted[b], 1)), cmp.Compare(wishes[b]*room%total, wishes[a]*room%total))
	})
	for _, t := range tenants {
		if left > 0 && granted[t] < wishes[t] {
			granted[t]++
			left--
		}
	}
	// The smallest wishes still go before the surplus of the largest.
	for _, t := range tenants {
		if granted[t] > 0 {
			continue
		}
		rich := slices.MaxFunc(tenants, func(a, b loom.TenantID) int { return cmp.Compare(granted[a], granted[b]) })
		if granted[rich] > 1 {
			granted[rich]--
			granted[t]++
		}
	}
	return granted
}

// TenantWorkers is what a tenant requested, was assigned and uses.
type TenantWorkers struct {
	Tenant                    loom.TenantID
	Requested, Assigned, Busy int
	// Paused says since when the tenant's queue is paused, and by whom; zero when it is
	// not. A paused tenant is assigned no workers, however many it wants.
	Paused Pause
}

// Shortage compares the workers that tenants want with the live capacity.
type Shortage struct {
	// Capacity of all live provisioners; 0 for actors who may not know it.
	Capacity int
	// Requested and Assigned sum up Tenants; what paused ones request is left out.
	Requested, Assigned int
	// Possible is how many of the requested ones the live provisioners can give; what was requested
	// just now is assigned a moment later.
	Possible int
	// Tenants by id; only the actor's own unless it is a superadmin.
	Tenants []TenantWorkers
}

// Short reports whether somebody gets fewer workers than wanted.
func (s *Shortage) Short() bool { return s.Possible < s.Requested }

// Shortage says how many of the wanted workers could be assigned: a superadmin sees
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
		of(tenant).Requested = n
	}
	for tenant, p := range paused {
		of(tenant).Paused = p
	}
	for _, p := range live {
		s.Capacity += p.Capacity
		for tenant, n := range p.Workers {
			of(tenant).Assigned += n
		}
		for tenant, n := range p.Busy {
			of(tenant).Busy += n
		}
	}
	maps.DeleteFunc(wanted, func(t loom.TenantID, _ int) bool { return !of(t).Paused.At.IsZero() })
	possible := DistributeWorkers(capacities(live), wanted)
	if actor.May(loom.Install.Reading(), loom.Installation) != nil {
		s.Capacity = 0
		maps.DeleteFunc(all, func(t loom.TenantID, _ *TenantWorkers) bool { return t != actor.Tenant })
	}
	for _, a := range possible {
		if all[a.Tenant] != nil {
			s.Possible += a.Workers
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		t := all[tenant]
		if t.Paused.At.IsZero() {
			s.Requested += t.Requested
		}
		s.Assigned += t.Assigned
		s.Tenants = append(s.Tenants, *t)
	}
	return s, nil
}
