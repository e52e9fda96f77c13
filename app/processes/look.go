package processes

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Sweeps tells of the looks for forgotten machines at the providers of all tenants;
// superadmins only.
func (f *Processes) Sweeps(ctx context.Context, actor loom.Actor) ([]loom.Sweep, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return store.SweepsAllTenants(ctx, f.db, sweptFor)
}

// Sweep tells of the looks at a provider of the actor's tenant, and which machines
// there nobody uses; administrators only. NotFound for the provider.
func (f *Processes) Sweep(ctx context.Context, actor loom.Actor, provider string) (loom.Sweep, []loom.Orphan, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return loom.Sweep{}, nil, err
	}
	if _, err := store.Provider(ctx, f.db, actor.Tenant, provider); err != nil {
		return loom.Sweep{}, nil, err
	}
	sweep, err := store.SweepOf(ctx, f.db, actor.Tenant, provider)
	if err != nil {
		return loom.Sweep{}, nil, err
	}
	orphans, err := store.Orphans(ctx, f.db, actor.Tenant, provider)
	return sweep, orphans, err
}

// BeginSweep asks provisioners to look now for forgotten machines at a provider of the
// actor's tenant and does not wait: Sweep tells how far that is. Errors: Forbidden,
// NotFound for the provider, Conflict while a look is under way.
func (f *Processes) BeginSweep(ctx context.Context, actor loom.Actor, provider string) error {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		if _, err := store.Provider(ctx, tx, actor.Tenant, provider); err != nil {
			return err
		}
		begun, err := store.RequestSweep(ctx, tx, actor.Tenant, provider, actor.User)
		if err != nil {
			return err
		}
		if !begun {
			return loom.NewError(loom.Conflict, "A look at “%s” is under way; its result comes here.", provider)
		}
		return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "sweep", Kind: loom.KindProvider.Word(), Object: provider})
	})
}

// BeginSweeps asks for a look at every provider of every tenant that may have machines,
// and says at how many; superadmins only. Conflict where all of that is under way.
func (f *Processes) BeginSweeps(ctx context.Context, actor loom.Actor) (int, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return 0, err
	}
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) (int, error) {
		targets, err := store.SweepTargetsAllTenants(ctx, tx, sweptFor)
		if err != nil {
			return 0, err
		}
		n := 0
		for _, t := range targets {
			begun, err := store.RequestSweep(ctx, tx, t.Tenant, t.Provider, actor.User)
			if err != nil {
				return 0, err
			}
			if begun {
				n++
			}
		}
		if n == 0 {
			return 0, f.noSweeps(ctx, tx)
		}
		return n, store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "sweep", Kind: loom.KindProvider.Word(), Object: "all", After: map[string]any{"providers": n}})
	})
}

// noSweeps says why no look begins.
func (f *Processes) noSweeps(ctx context.Context, tx *sqlx.Tx) error {
	all, err := store.SweepsAllTenants(ctx, tx, sweptFor)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Asked != nil {
			return loom.NewError(loom.Conflict, "A look at all providers that may have machines is under way; its result comes here.")
		}
	}
	return loom.NewError(loom.Conflict, "No provider may have machines: there are no clusters, and none ended within a week.")
}
