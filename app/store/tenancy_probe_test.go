package store_test

import (
	"context"
	"maps"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What asks providers and keeps what they say is held against the test of tenants
// as well.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"WaitingRequest": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			id, err := store.WaitingRequest(ctx, tx, t, store.ProviderRequest{Provider: mark, Purpose: store.PurposeSweep})
			return leak(id != 0), err
		},
		"InsertRequest": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.InsertRequest(ctx, tx, t, store.ProviderRequest{Tenant: own, Provider: mark, Purpose: store.PurposeSweep})
		},
		"RequestByID": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.RequestByID(ctx, tx, t, 998)
		},
		"DropRequest": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			dropped, err := store.DropRequest(ctx, tx, t, 998)
			return leak(dropped), err
		},
		"EndRequest": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			held, err := store.EndRequest(ctx, tx, t, 998, "", nil, "changed", false)
			return leak(held), err
		},
		"NewestProbe": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.NewestProbe(ctx, tx, t, mark)
		},
		"Verifications": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.Verifications(ctx, tx, t, loom.OfferImage)
		},
		"OperationsOfProvider": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.OperationsOfProvider(ctx, tx, t, mark, 10)
		},
		"CountOperationsOfProvider": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.CountOperationsOfProvider(ctx, tx, t, mark)
			return leak(n > 0), err
		},
		"QueuedTasks": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			tasks, _, _, err := store.QueuedTasks(ctx, tx, t, false, loom.Page{Limit: 10})
			return tasks, err
		},
		"SumQueued": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			sum, err := store.SumQueued(ctx, tx, t)
			return leak(sum.Waiting > 0), err
		},
		"SweepOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			sweep, err := store.SweepOf(ctx, tx, t, mark)
			return leak(sweep.Asked != nil || sweep.Last != nil || sweep.Found > 0), err
		},
		"RequestSweep": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, err := store.RequestSweep(ctx, tx, t, mark, "x") // of its own
			return nil, err
		},
		"Orphans": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.Orphans(ctx, tx, t, mark)
		},
		"OpenProbeOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, open, err := store.OpenProbeOf(ctx, tx, t, mark)
			return leak(open), err
		},
		"VerificationByID": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.VerificationByID(ctx, tx, t, 996)
		},
		"AnyProvisioner": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			_, err := store.AnyProvisioner(ctx, tx, t)
			return err
		}),
		"CountOpenProbes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.CountOpenProbes(ctx, tx, t)
			return leak(n > 0), err
		},
		"EndLostProbe": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.EndLostProbe(ctx, tx, t, 995, loom.Probe{})
		}),
		"ProgressProbe": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.ProgressProbe(ctx, tx, t, 995, "", loom.Probe{})
		}),
		"AdoptDraftProbe": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.AdoptDraftProbe(ctx, tx, t, mark, mark, []byte(mark))
		}),
		"SealDraft": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SealDraft(ctx, tx, t, 995, []byte("changed"))
		}),
		"SealedDraft": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.SealedDraft(ctx, tx, t, 995)
		},
		"TrimDraftProbes": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.TrimDraftProbes(ctx, tx, t)
		}),
		"ProbeOutcomes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.ProbeOutcomes(ctx, tx, t)
		},
		"TrimProbes": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.TrimProbes(ctx, tx, t, mark)
		}),
		"PutOrphans": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.PutOrphans(ctx, tx, t, mark, []loom.Orphan{{Tenant: own, Machine: mark, Name: "changed", Node: ownNode}})
		},
		"Places": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			places, err := store.Places(ctx, tx, t, mark, time.Hour)
			return leak(len(places) > 0), err
		},
		"DeleteOrphansBut": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.DeleteOrphansBut(ctx, tx, t, mark, nil)
			return leak(n > 0), err
		},
		"DeleteOrphan": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.DeleteOrphan(ctx, tx, t, 999)
		}),
		"NodeClaims": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			claims, err := store.NodeClaims(ctx, tx, t, []loom.NodeID{ownNode}, time.Now())
			return leak(len(claims) > 0), err
		},
		"CarriedPlugins": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, names, err := store.CarriedPlugins(ctx, tx, t)
			return names, err
		},
	})
}
