package processes

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// QueuedTask is a task that its node holds: it waits for a worker, or has one.
type QueuedTask = store.QueuedTask

// Queued is what of a tenant waits for workers and what has them, with a page of one of
// both and the share of workers that the tenant has.
type Queued struct {
	store.QueuedSum
	Items      []QueuedTask
	Next, Prev string
	Share      TenantWorkers
}

// Queued lists the tasks of the actor's tenant that wait for a worker, those that have
// waited longest first, or with running those that have one. A machine does one task at a
// time: what waits for its machine is not among them. Errors: Forbidden; Invalid for a
// cursor of another list.
func (f *Processes) Queued(ctx context.Context, actor loom.Actor, running bool, p loom.Page) (Queued, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return Queued{}, err
	}
	var found Queued
	var err error
	if found.Items, found.Next, found.Prev, err = store.QueuedTasks(ctx, f.db, actor.Tenant, running, p); err != nil {
		return Queued{}, err
	}
	if found.QueuedSum, err = store.SumQueued(ctx, f.db, actor.Tenant); err != nil {
		return Queued{}, err
	}
	shortage, err := f.Shortage(ctx, actor)
	found.Share = TenantWorkers{Tenant: actor.Tenant}
	for _, t := range shortage.Tenants {
		if t.Tenant == actor.Tenant {
			found.Share = t
		}
	}
	return found, err
}
