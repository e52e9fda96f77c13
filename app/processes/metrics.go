package processes

import (
	"context"
	"errors"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

const (
	// leasesAhead is how far ahead leases of clusters count as ending.
	leasesAhead = 24 * time.Hour
	// figureTimeout bounds each question: whoever collects metrics waits for all.
	figureTimeout = 2 * time.Second
)

// Figures reads what metrics tell of the whole installation, for processes of
// Loom only: who may see them is decided where they are shown. What cannot be
// read in time is left out and is part of the error; the rest is good.
func (f *Processes) Figures(ctx context.Context) (loom.Figures, error) {
	var out loom.Figures
	var errs []error
	ask := func(read func(ctx context.Context) error) {
		asking, cancel := context.WithTimeout(ctx, figureTimeout)
		defer cancel()
		errs = append(errs, read(asking))
	}
	ask(func(ctx context.Context) (err error) {
		out.Queues, err = store.QueueLengthsAllTenants(ctx, f.db)
		return err
	})
	ask(func(ctx context.Context) (err error) {
		out.Clusters, err = store.LiveClustersByStatusAllTenants(ctx, f.db)
		return err
	})
	ask(func(ctx context.Context) error {
		n, err := store.LeasesEndingAllTenants(ctx, f.db, leasesAhead)
		out.LeasesEnding = orNil(n, err)
		return err
	})
	ask(func(ctx context.Context) (err error) {
		out.Processes, err = store.ProcessFiguresAllTenants(ctx, f.db, f.opts.Lease)
		return err
	})
	ask(func(ctx context.Context) error {
		w, err := store.WorkerFiguresAllTenants(ctx, f.db)
		out.Workers = orNil(w, err)
		return err
	})
	ask(func(ctx context.Context) error {
		d, err := store.DatabaseFigures(ctx, f.db)
		out.Database = orNil(d, err)
		return err
	})
	ask(func(ctx context.Context) error {
		h, err := store.HookFiguresAllTenants(ctx, f.db)
		out.Hooks = orNil(h, err)
		return err
	})
	ask(func(ctx context.Context) error {
		h, err := store.HealthFiguresAllTenants(ctx, f.db)
		out.Health = orNil(h, err)
		return err
	})
	ask(func(ctx context.Context) error {
		r, err := store.RolloutFigureAllTenants(ctx, f.db)
		out.Rollouts = orNil(r, err)
		return err
	})
	return out, errors.Join(errs...)
}

// TenantNames reads the names of all tenants, for metrics.
func (f *Processes) TenantNames(ctx context.Context) (map[loom.TenantID]string, error) {
	all, err := store.TenantsAllTenants(ctx, f.db)
	if err != nil {
		return nil, err
	}
	names := make(map[loom.TenantID]string, len(all))
	for _, t := range all {
		names[t.ID] = t.Name
	}
	return names, nil
}

// orNil is nil for what could not be read.
func orNil[T any](value T, err error) *T {
	if err != nil {
		return nil
	}
	return &value
}
