package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/wiring"
)

const (
	// queuedTasks of one tenant wait, heavyDelay milliseconds each, on heavyWorkers,
	// while another one's tasks are picked up.
	queuedTasks, heavyDelay, heavyWorkers = 100_000, 1_000, 20
)

// tenantFigures is processor time that was used meanwhile.
type tenantFigures struct{ scheduler, provisioner, postgres time.Duration }

// benchTenants measures what tenants cost who do nothing, and whether one with a
// long queue holds another one up.
func (e *environment) benchTenants(ctx context.Context, queued int, scale benchScale) (err error) {
	b, err := e.startBench(ctx, "LOOM_MOCK=true", fmt.Sprintf("LOOM_PROVISIONER_CAPACITY=%d", scale.tenants+2*heavyWorkers))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.end(ctx)) }()
	if _, err := b.System.Load(ctx, b.actor, wiring.Sub(benchCatalog, "benchdata"), nil); err != nil {
		return err
	}
	if _, err := b.System.DB.ExecContext(ctx, `UPDATE tenants SET workers = CASE WHEN id = $1 THEN $2 ELSE 1 END`, b.actor.Tenant, heavyWorkers); err != nil {
		return err
	}
	if err := b.measureIdle(ctx, scale.tenants, scale.idle); err != nil {
		return fmt.Errorf("idle tenants: %w", err)
	}
	return b.measurePickUps(ctx, queued, scale.pickUps)
}

// measureIdle compares a new installation with one of many tenants.
func (b *benchInstance) measureIdle(ctx context.Context, tenants int, quiet time.Duration) error {
	var figures [2]tenantFigures
	for i, n := range []int{0, tenants} {
		if _, err := b.System.DB.ExecContext(ctx, `INSERT INTO tenants (id, name, workers) SELECT 'idle-' || i, 'idle-' || i, 1 FROM generate_series(1, $1) i`, n); err != nil {
			return err
		}
		if err := b.wait(ctx, "workers of all tenants", func() (bool, error) {
			short, err := b.Processes.Shortage(ctx, wiring.CliActor())
			return err == nil && short.Requested > 0 && short.Assigned == short.Requested, err
		}); err != nil {
			return err
		}
		var err error
		if figures[i], err = b.used(ctx, quiet); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.Out, "\nTenants who do nothing, each with a worker: share of one core over %s\n\n", quiet)
	fmt.Fprintf(b.Out, "  %8s %10s %12s %12s %12s\n", "tenants", "scheduler", "provisioner", "PostgreSQL", "all")
	for i, n := range []int{0, tenants} {
		f := figures[i]
		fmt.Fprintf(b.Out, "  %8d %8.1f %% %10.1f %% %10.1f %% %10.1f %%\n", n, share(f.scheduler, quiet), share(f.provisioner, quiet),
			share(f.postgres, quiet), share(f.scheduler+f.provisioner+f.postgres, quiet))
	}
	return nil
}

// share is a part of one core in percent.
func share(used, of time.Duration) float64 { return 100 * used.Seconds() / of.Seconds() }

// used tells the processor time that goes by while nothing is done. A moment
// passes first, in which what was done before comes to rest.
func (b *benchInstance) used(ctx context.Context, quiet time.Duration) (f tenantFigures, err error) {
	if err := settle(ctx, quiet/4); err != nil {
		return f, err
	}
	before, err := b.cpu(ctx)
	if err != nil {
		return f, err
	}
	if err := settle(ctx, quiet); err != nil {
		return f, err
	}
	after, err := b.cpu(ctx)
	return tenantFigures{after.scheduler - before.scheduler, after.provisioner - before.provisioner, after.postgres - before.postgres}, err
}

func settle(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// cpu returns the processor time used so far.
func (b *benchInstance) cpu(ctx context.Context) (f tenantFigures, err error) {
	for _, p := range b.processes {
		used, err := cpuOf(p)
		if err != nil {
			return f, err
		}
		switch p.name {
		case "scheduler":
			f.scheduler += used
		case "provisioner":
			f.provisioner += used
		}
	}
	f.postgres, err = b.postgresCPU(ctx)
	return f, err
}

// measurePickUps compares how long tasks of a tenant wait for a worker that is
// free, alone and beside the long queue of another tenant.
func (b *benchInstance) measurePickUps(ctx context.Context, queued, pickUps int) error {
	pattern, err := b.create(ctx, "mock", 1)
	if err != nil {
		return err
	}
	if err := b.until(ctx, pattern, 1); err != nil {
		return err
	}
	alone, err := b.pickUps(ctx, pattern, pickUps)
	if err != nil {
		return fmt.Errorf("alone: %w", err)
	}
	heavy, nodes, err := b.graphCluster(ctx, pattern, queued, heavyDelay)
	if err != nil {
		return err
	}
	if _, err := b.begin(ctx, heavy, chainsPlan(nodes, 1)); err != nil {
		return err
	}
	if err := b.wait(ctx, "the other tenant to run tasks", func() (bool, error) {
		var n int
		err := b.System.DB.GetContext(ctx, &n, `SELECT count(*) FROM tasks WHERE cluster_id = $1 AND status = 'running'`, int64(heavy))
		return n == heavyWorkers, err
	}); err != nil {
		return err
	}
	before, began := tenantFigures{}, time.Now()
	if before, err = b.cpu(ctx); err != nil {
		return err
	}
	beside, err := b.pickUps(ctx, pattern, pickUps)
	if err != nil {
		return fmt.Errorf("beside a queue: %w", err)
	}
	after, err := b.cpu(ctx)
	if err != nil {
		return err
	}
	var left int
	if err := b.System.DB.GetContext(ctx, &left, `SELECT count(*) FROM tasks WHERE cluster_id = $1 AND status = 'ready'`, int64(heavy)); err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Fprintf(b.Out, "\nPick-up: from the moment a task is due until its attempt begins, %d tasks one after the other, by the clock of the database\n\n", pickUps)
	fmt.Fprintf(b.Out, "  %-44s %9s %9s\n", "", "p50 ms", "p99 ms")
	row := func(name string, waits []time.Duration) {
		fmt.Fprintf(b.Out, "  %-44s %9.1f %9.1f\n", name, milliseconds(percentile(waits, 50)), milliseconds(percentile(waits, 99)))
	}
	row("alone", alone)
	row(fmt.Sprintf("while %d tasks of another tenant wait", left), beside)
	fmt.Fprintf(b.Out, "  %-44s %9.2f %9.2f\n", "ratio", ratio(beside, alone, 50), ratio(beside, alone, 99))
	fmt.Fprintf(b.Out, "\n  share of one core at that time: provisioner %.1f %%, PostgreSQL %.1f %%\n",
		share(after.provisioner-before.provisioner, took), share(after.postgres-before.postgres, took))
	return nil
}

func ratio(a, b []time.Duration, percent int) float64 {
	return percentile(a, percent).Seconds() / percentile(b, percent).Seconds()
}

// pickUps runs n tasks of a tenant of its own, one after the other, and returns how
// long each waited, sorted.
func (b *benchInstance) pickUps(ctx context.Context, pattern loom.ClusterID, n int) ([]time.Duration, error) {
	const tenant = loom.TenantID("idle-1")
	cluster, nodes, err := b.graphCluster(ctx, pattern, 1, 0)
	if err != nil {
		return nil, err
	}
	for _, table := range []string{"nodes SET tenant_id = $2 WHERE cluster_id", "clusters SET tenant_id = $2 WHERE id"} {
		if _, err := b.System.DB.ExecContext(ctx, `UPDATE `+table+` = $1`, int64(cluster), tenant); err != nil {
			return nil, err
		}
	}
	plan := chainsPlan(nodes, 1)
	var waits []time.Duration
	for range n {
		op, err := store.InTx(ctx, b.System.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
			return store.InsertPlan(ctx, tx, store.NewOperation{Tenant: tenant, Cluster: cluster, Action: plan.Action, RequestedBy: loom.AdminUser}, plan)
		})
		if err != nil {
			return nil, err
		}
		if err := b.untilOver(ctx, op); err != nil {
			return nil, err
		}
		var wait float64
		// From the transaction that stored the plan: the River job is gone by now.
		if err := b.System.DB.GetContext(ctx, &wait, `SELECT extract(epoch FROM a.started_at - o.started_at)::float8
			FROM operations o JOIN tasks t ON t.operation_id = o.id JOIN attempts a ON a.task_id = t.id WHERE o.id = $1`, int64(op.Row)); err != nil {
			return nil, err
		}
		waits = append(waits, time.Duration(wait*float64(time.Second)))
	}
	slices.Sort(waits)
	return waits, nil
}
