package processes

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Process is a live process as superadmins see it.
type Process struct {
	LiveProcess
	// LastSeen is when it renewed its lease, by the database clock.
	LastSeen time.Time
	// Workers assigned to it and tasks running in it, by the names of tenants.
	Assigned, Working map[string]int
}

// Free returns the capacity that is assigned to nobody.
func (p *Process) Free() int {
	free := p.Capacity
	for _, n := range p.Assigned {
		free -= n
	}
	return free
}

// Carried returns the plugin types of the process with their releases; what is part of Loom
// has that of the process.
func (p *Process) Carried() map[string]string {
	carried := make(map[string]string, len(p.Plugins))
	for _, name := range p.Plugins {
		carried[name] = cmp.Or(p.Versions[name], p.Version)
	}
	return carried
}

// List lists the live processes, oldest first, or those of one kind when it is not
// empty; superadmins only.
func (f *Processes) List(ctx context.Context, actor loom.Actor, kind string) ([]Process, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return f.list(ctx, f.db, kind)
}

// One reads a live process, of one kind when that is not empty; superadmins only.
// NotFound when its lease is over.
func (f *Processes) One(ctx context.Context, actor loom.Actor, kind string, id loom.ProcessID) (Process, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return Process{}, err
	}
	return f.one(ctx, f.db, kind, id)
}

func (f *Processes) one(ctx context.Context, q sqlx.ExtContext, kind string, id loom.ProcessID) (Process, error) {
	all, err := f.list(ctx, q, kind)
	for _, p := range all {
		if p.ID == id {
			return p, nil
		}
	}
	if err == nil {
		err = noProcess(kind, id)
	}
	return Process{}, err
}

func noProcess(kind string, id loom.ProcessID) error {
	if kind == "" {
		kind = "process"
	}
	return loom.NewError(loom.NotFound, "There is no %s “%.80s”.", kind, id)
}

func (f *Processes) list(ctx context.Context, q sqlx.ExtContext, kind string) ([]Process, error) {
	live, err := store.LiveProcessesAllTenants(ctx, q, kind)
	if err != nil {
		return nil, err
	}
	tenants, err := store.TenantsAllTenants(ctx, q)
	if err != nil {
		return nil, err
	}
	names := make(map[loom.TenantID]string, len(tenants))
	for _, t := range tenants {
		names[t.ID] = t.Name
	}
	named := func(by map[loom.TenantID]int) map[string]int {
		out := make(map[string]int, len(by))
		for id, n := range by {
			name := names[id]
			if name == "" { // deleted since
				name = string(id)
			}
			out[name] += n
		}
		return out
	}
	all := make([]Process, len(live))
	for i, p := range live {
		all[i] = Process{LiveProcess: p, LastSeen: p.Expires.Add(-f.opts.Lease), Assigned: named(p.Workers), Working: named(p.Busy)}
	}
	return all, nil
}

// Drain tells a provisioner to take no new tasks: its workers are assigned to others,
// what runs goes on. Resume takes that back. Superadmins only. NotFound when its
// lease is over; Conflict for a process of another kind, which nothing could take
// the work from, and for one that ends of its own accord.
func (f *Processes) Drain(ctx context.Context, actor loom.Actor, id loom.ProcessID) (Process, error) {
	return f.askToDrain(ctx, actor, id, true)
}

// Resume lets a provisioner that was told to drain take tasks again; see Drain.
func (f *Processes) Resume(ctx context.Context, actor loom.Actor, id loom.ProcessID) (Process, error) {
	return f.askToDrain(ctx, actor, id, false)
}

func (f *Processes) askToDrain(ctx context.Context, actor loom.Actor, id loom.ProcessID, drain bool) (Process, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return Process{}, err
	}
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) (Process, error) {
		before, err := f.one(ctx, tx, "", id)
		if err != nil {
			return Process{}, err
		}
		switch {
		case before.Kind != loom.ProcessProvisioner:
			return Process{}, loom.NewError(loom.Conflict, "Only provisioners drain; %s is a %s. Stop it when another one runs.", id, before.Kind)
		case before.Ending && !drain:
			return Process{}, loom.NewError(loom.Conflict, "%s is about to end and takes no more tasks; start another provisioner.", id)
		case before.Draining == drain:
			return before, nil
		}
		if err := store.AskToDrain(ctx, tx, id, drain); err != nil {
			if errors.Is(err, loom.NotFound) {
				err = noProcess("", id)
			}
			return Process{}, err
		}
		if err := assignWorkers(ctx, tx); err != nil {
			return Process{}, err
		}
		verb := map[bool]string{true: "drain", false: "resume"}[drain]
		err = store.InsertAudit(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: verb, Kind: "process", Object: string(id), Result: "ok",
			Before: map[string]any{"draining": !drain}, After: map[string]any{"draining": drain},
		})
		if err != nil {
			return Process{}, err
		}
		if err := store.InsertEvents(ctx, tx, loom.Event{Tenant: loom.SuperTenant, Topic: "system"}); err != nil {
			return Process{}, err
		}
		return f.one(ctx, tx, "", id)
	})
}

// Provisioners lists the provisioners whose lease runs, oldest first, without what they do.
func (f *Processes) Provisioners(ctx context.Context) ([]LiveProcess, error) {
	return store.LiveProvisionersAllTenants(ctx, f.db)
}
