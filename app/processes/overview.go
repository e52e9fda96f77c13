package processes

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Leftovers lists the machines that deletes of clusters left behind, of all tenants;
// superadmins only.
func (f *Processes) Leftovers(ctx context.Context, actor loom.Actor) ([]loom.Leftover, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return store.LeftoversAllTenants(ctx, f.db)
}

// RetryLeftovers asks provisioners to try at once to remove what deletes left behind
// and says how many machines that concerns; those of which that is under way are
// left out. Superadmins only.
func (f *Processes) RetryLeftovers(ctx context.Context, actor loom.Actor) (int, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return 0, err
	}
	return store.InTx(ctx, f.db, func(tx *sqlx.Tx) (int, error) {
		n, err := store.RequestLeftoversAllTenants(ctx, tx)
		if err != nil || n == 0 {
			return n, err
		}
		return n, store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "retry", Kind: "leftover", Object: "all", After: map[string]any{"machines": n}})
	})
}
