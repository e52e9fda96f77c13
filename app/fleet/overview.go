package fleet

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/jobs"
)

// Leftovers lists the machines that deletes of clusters left behind, of all tenants;
// superadmins only.
func (f *Fleet) Leftovers(ctx context.Context, actor loom.Actor) ([]loom.Leftover, error) {
	if err := actor.RequireSuperadminTo(loom.ScopeRead); err != nil {
		return nil, err
	}
	return store.LeftoversAllTenants(ctx, f.db)
}

// RetryLeftovers asks provisioners to try at once to remove what deletes left behind
// and says how many machines that concerns; those of which that is under way are
// left out. Superadmins only.
func (f *Fleet) RetryLeftovers(ctx context.Context, actor loom.Actor) (int, error) {
	if err := actor.RequireSuperadmin(); err != nil {
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

// RiverJob is a row of the queues that belong to no tenant.
type RiverJob = store.RiverJob

// MayRetry reports whether RetryRiverJob can make a River job due.
func MayRetry(j RiverJob) bool {
	return j.Queue != jobs.ProbeQueue && slices.Contains([]string{"retryable", "scheduled", "discarded", "cancelled"}, j.State)
}

// RiverStates are the states by which River jobs can be listed.
var RiverStates = []string{"available", "running", "retryable", "scheduled", "discarded", "cancelled", "completed"}

// RiverJobs lists the newest River jobs that belong to no task, those in one state
// or, for "", all that are not completed; 200 at most. Superadmins only. Invalid for
// a state that there is not.
func (f *Fleet) RiverJobs(ctx context.Context, actor loom.Actor, state string) ([]RiverJob, error) {
	if err := actor.RequireSuperadminTo(loom.ScopeRead); err != nil {
		return nil, err
	}
	if state != "" && !slices.Contains(RiverStates, state) {
		return nil, loom.InvalidFields([]loom.FieldError{{Field: "state", Message: "A River job is available, running, retryable, scheduled, discarded, cancelled or completed."}})
	}
	return store.RiverJobsAllTenants(ctx, f.db, state)
}

// RetryRiverJob makes a River job of the schedulers due at once; superadmins only.
// Those of tasks follow their operation. Errors: Conflict for one that runs or is
// done already, or does not exist.
func (f *Fleet) RetryRiverJob(ctx context.Context, actor loom.Actor, id int64) error {
	if err := actor.RequireSuperadmin(); err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		kind, err := store.RetryRiverJobAllTenants(ctx, tx, id)
		if errors.Is(err, loom.NotFound) {
			return loom.NewError(loom.Conflict, "River job %d runs, is done, or is that of a task; there is nothing to retry.", id)
		}
		if err != nil {
			return err
		}
		return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "retry", Kind: "river_job", Object: strconv.FormatInt(id, 10), After: map[string]any{"kind": kind}})
	})
}
