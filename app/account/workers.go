package account

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// WorkerRoom says which tenants hold the workers that the live provisioners have for all.
type WorkerRoom struct {
	Capacity int
	// Holders are the tenants that have workers: the installation itself, then those with most
	// first.
	Holders []Holder
}

// Holder is a tenant with workers; Busy of them run a task now.
type Holder = store.WorkerHolder

// Free returns how many workers a tenant can have by name, "" for a new one.
func (w *WorkerRoom) Free(tenant string) int {
	free := w.Capacity
	for _, h := range w.Holders {
		if h.Name != tenant {
			free -= h.Workers
		}
	}
	return max(free, 0)
}

// WorkerRoom returns who holds the workers; for superadmins.
func (a *Accounts) WorkerRoom(ctx context.Context, actor loom.Actor) (WorkerRoom, error) {
	if err := mayReadTenants(actor); err != nil {
		return WorkerRoom{}, err
	}
	return workerRoom(ctx, a.db)
}

func workerRoom(ctx context.Context, q sqlx.ExtContext) (WorkerRoom, error) {
	capacity, err := store.WorkerCapacityAllTenants(ctx, q)
	if err != nil {
		return WorkerRoom{}, err
	}
	holders, err := store.WorkerHoldersAllTenants(ctx, q)
	return WorkerRoom{Capacity: capacity, Holders: holders}, err
}

// findWorkers refuses workers in addition that the live provisioners do not have free and
// that the request takes from no other tenant. It takes those that are missing from
// in.WorkersFrom, and returns how many. now are the workers that the tenant has.
func findWorkers(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, in *TenantInput, now int) (int, error) {
	wanted := or(in.Workers, now)
	if wanted <= now {
		return 0, nil
	}
	room, err := workerRoom(ctx, tx)
	if err != nil {
		return 0, err
	}
	free := room.Free(in.Name)
	switch {
	case wanted <= free:
		return 0, nil
	case room.Capacity == 0:
		return 0, conflictAt(loom.NewError(loom.Conflict, "Wanted: %d, but no provisioner runs that serves all tenants; start one, or set “workers” to 0.", wanted), "workers")
	case in.WorkersFrom == "":
		return 0, conflictAt(loom.NewError(loom.Conflict, "Wanted: %d, but the running provisioners have %d left for this tenant (capacity %d). %s",
			wanted, free, room.Capacity, room.holders(in.Name)), "workers")
	}
	return wanted - free, takeWorkers(ctx, tx, actor, in, wanted-free)
}

// takeWorkers takes n workers from the tenant in.WorkersFrom. It refuses when that tenant has
// fewer, or runs more tasks at this moment than it would keep workers.
func takeWorkers(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, in *TenantInput, n int) error {
	const field = "workersFrom"
	found, err := store.TenantByNameAllTenants(ctx, tx, in.WorkersFrom)
	if isNotFound(err) {
		return loom.InvalidFields([]loom.FieldError{{Field: field, Message: fmt.Sprintf("There is no tenant “%.40s”.", in.WorkersFrom)}})
	}
	if err != nil {
		return err
	}
	tenant, err := store.LockTenant(ctx, tx, found.ID)
	if err != nil {
		return named(err, in.WorkersFrom)
	}
	if tenant.Workers < n {
		return conflictAt(loom.NewError(loom.Conflict, "The tenant “%s” has %s, but %d are missing; lower “workers” to %d, or take them from another tenant.",
			tenant.Name, workers(tenant.Workers), n, *in.Workers-n+tenant.Workers), field)
	}
	busy, err := store.BusyWorkers(ctx, tx, tenant.ID)
	if err != nil {
		return err
	}
	before, kept := tenant, tenant.Workers-n
	if busy > kept {
		return conflictAt(loom.NewError(loom.Conflict, "The tenant “%s” runs %d tasks now and would keep %s; lower “workers” by %d, or wait until it runs fewer.",
			tenant.Name, busy, workers(kept), busy-kept), field)
	}
	tenant.Workers = kept
	if err := store.UpdateTenant(ctx, tx, tenant.ID, tenant); err != nil {
		return err
	}
	if err := record(ctx, tx, actor, "update", "tenant", tenant.Name, shownTenant(before), shownTenant(tenant)); err != nil {
		return err
	}
	if err := recordMoved(ctx, tx, actor, before, tenant); err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, systemEvent(tenant.Name))
}

// recordMoved writes into the tenant's own audit that it lost workers to another tenant, or
// got them from one.
func recordMoved(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, before, after loom.Tenant) error {
	actor.Tenant, actor.TenantName = after.ID, after.Name
	return record(ctx, tx, actor, "update", "tenant", after.Name, map[string]any{"workers": before.Workers}, map[string]any{"workers": after.Workers})
}

func workers(n int) string {
	if n == 1 {
		return "1 worker"
	}
	return fmt.Sprintf("%d workers", n)
}

// maxHolders is how many tenants a message names.
const maxHolders = 5

// holders says which tenants but one hold how many workers, those with most first, and what
// helps.
func (w *WorkerRoom) holders(except string) string {
	const more = "more provisioners, or a higher LOOM_PROVISIONER_CAPACITY"
	others := slices.DeleteFunc(slices.Clone(w.Holders), func(h Holder) bool { return h.Name == except })
	if len(others) == 0 {
		return "No other tenant holds any; " + more + " would help."
	}
	slices.SortStableFunc(others, func(x, y Holder) int { return cmp.Compare(y.Workers, x.Workers) })
	var named []string
	for i, h := range others {
		if i == maxHolders {
			named = append(named, fmt.Sprintf("%d more tenants", len(others)-i))
			break
		}
		named = append(named, fmt.Sprintf("%s: %d", h.Name, h.Workers))
	}
	return "Others hold the rest (" + strings.Join(named, ", ") + "); taking some from one of them with “workersFrom” helps, and so do " + more + "."
}
