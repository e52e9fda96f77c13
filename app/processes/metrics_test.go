package processes_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

func TestFigures(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	ctx := context.Background()
	f := processes.New(db.DB, processes.Options{Lease: 10 * time.Second})
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(ctx, query, args...); err != nil {
			t.Fatal(err)
		}
	}
	empty, err := f.Figures(ctx)
	if err != nil || len(empty.Queues) != 0 || *empty.LeasesEnding != 0 || *empty.Workers != (loom.WorkerFigure{}) || *empty.Hooks != (loom.HookFigure{}) {
		t.Fatalf("of an empty database: %+v, %v", empty, err)
	}
	exec(`INSERT INTO tenants (id, name, workers) VALUES ('t-a', 'acme', 5), ('t-b', 'bravo', 7), ('t-c', 'idle', 1)`)
	exec(`INSERT INTO tenants (id, name, workers, deleted_at) VALUES ('t-d', 'gone', 50, now())`)
	// Only what waits for a worker counts, and only on queues of tenants.
	exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
		SELECT 'available', 'tenant_t-a', 'run_task', '{}', 1000, now() - interval '1 minute' * i FROM generate_series(1, 3) i`)
	exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
		SELECT 'available', 'tenant_t-b', 'run_task', '{}', 1000, now() - interval '1 second' * i FROM generate_series(1, 20) i`)
	exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) VALUES ('pending', 'tenant_t-c', 'run_task', '{}', 1000),
		('available', 'control', 'end_operation', '{}', 25), ('available', 'tenant_unknown', 'run_task', '{}', 1000)`)
	exec(`INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services, expires_at)
		SELECT 't-a', 'ana', 'c', s.status, 't', 1, '{}', 'p', '{}', '{}', now() + s.after
		FROM (VALUES ('active', interval '23 hours'), ('active', interval '25 hours'), ('active', NULL), ('incomplete', interval '-1 hour'),
			('terminated', interval '1 hour')) AS s (status, after)`)
	exec(`INSERT INTO processes (id, kind, host, capacity, draining, drain_asked, expires_at) VALUES
		('p1', 'provisioner', 'h', 10, false, false, now() + interval '9 seconds'), ('p2', 'provisioner', 'h', 20, true, false, now() + interval '10 seconds'),
		('p3', 'provisioner', 'h', 40, false, true, now() + interval '10 seconds'), ('p4', 'provisioner', 'h', 80, false, false, now() - interval '20 seconds'),
		('s1', 'scheduler', 'h', 0, false, false, now() + interval '10 seconds')`)
	exec(`INSERT INTO worker_assignments (tenant_id, process_id, workers) VALUES ('t-a', 'p1', 5), ('t-b', 'p1', 4)`)

	names, err := f.TenantNames(ctx)
	if err != nil || names["t-a"] != "acme" || names["t-b"] != "bravo" || names["t-d"] != "" {
		t.Errorf("names %v, %v", names, err)
	}
	got, err := f.Figures(ctx)
	if err != nil {
		t.Fatal(err)
	}
	about := func(what string, d, want time.Duration) {
		t.Helper()
		if d < want || d > want+10*time.Second {
			t.Errorf("%s: %s, want about %s", what, d, want)
		}
	}
	if len(got.Queues) != 2 || got.Queues[0].Tenant != "bravo" || got.Queues[0].Waits != 20 || got.Queues[1].Tenant != "acme" || got.Queues[1].Waits != 3 {
		t.Fatalf("queues %+v", got.Queues)
	}
	about("the oldest of bravo", got.Queues[0].Oldest, 20*time.Second)
	about("the oldest of acme", got.Queues[1].Oldest, 3*time.Minute)
	clusters := map[loom.ClusterStatus]int{loom.ClusterPending: 0, loom.ClusterActive: 3, loom.ClusterIncomplete: 1, loom.ClusterInconsistent: 0}
	if !reflect.DeepEqual(got.Clusters, clusters) || *got.LeasesEnding != 2 {
		t.Errorf("clusters %v, %d leases end", got.Clusters, *got.LeasesEnding)
	}
	if want := (loom.WorkerFigure{Capacity: 10, Wanted: 13, Assigned: 9}); *got.Workers != want {
		t.Errorf("workers %+v, want %+v", *got.Workers, want)
	}
	if len(got.Processes) != 2 || got.Processes[0].Count != 4 || got.Processes[0].Started.IsZero() || got.Processes[1] != (loom.ProcessFigure{Kind: "scheduler", Count: 1, LeaseAge: got.Processes[1].LeaseAge, Started: got.Processes[1].Started}) {
		t.Errorf("processes %+v", got.Processes)
	}
	about("the lease longest ago", got.Processes[0].LeaseAge, 30*time.Second)

	// An open transaction is seen, and ages.
	tx, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it only holds still
	if _, err := tx.Exec(`SELECT 1`); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		now, err := f.Figures(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if now.Database.OldestTransaction > 50*time.Millisecond && now.Database.Connections > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the transaction is not seen: %+v", *now.Database)
		}
	}
}

// TestFiguresInPart tells what is known where a part cannot be read.
func TestFiguresInPart(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	if _, err := db.Exec(`ALTER TABLE hook_deliveries RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	got, err := processes.New(db.DB, processes.Options{}).Figures(context.Background())
	if err == nil || !strings.Contains(err.Error(), "deliveries") {
		t.Errorf("the error is %v", err)
	}
	if got.Hooks != nil || got.Workers == nil || got.Database == nil {
		t.Errorf("%+v", got)
	}
}

// TestFreeElsewhere counts workers that have nothing to do in other processes.
func TestFreeElsewhere(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	for _, query := range []string{
		`INSERT INTO tenants (id, name, workers) VALUES ('a', 'a', 9), ('b', 'b', 9), ('c', 'c', 9)`,
		`INSERT INTO processes (id, kind, host, capacity, expires_at) SELECT 'p' || i, 'provisioner', 'h', 50, now() + interval '1 hour' FROM generate_series(1, 3) i`,
		`INSERT INTO worker_assignments (tenant_id, process_id, workers) VALUES ('a', 'p1', 5), ('a', 'p2', 3), ('a', 'p3', 2), ('b', 'p1', 4), ('b', 'p2', 1), ('c', 'p3', 7)`,
		`INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
			VALUES ('a', 'ana', 'c', 'pending', 't', 1, '{}', 'p', '{}', '{}')`,
		`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) SELECT 'a', id, 1, 'cluster_create', 'running', 'ana' FROM clusters`,
		// More than its share after the share was made smaller: that takes nothing from others.
		`INSERT INTO tasks (operation_id, tenant_id, cluster_id, status, process_id)
			SELECT o.id, x.tenant, o.cluster_id, 'running', x.process FROM operations o,
			(VALUES ('a', 'p2'), ('a', 'p3'), ('a', 'p3'), ('a', 'p3'), ('b', 'p2'), ('c', 'p3')) AS x (tenant, process)`,
		`UPDATE tasks SET node_id = gen_random_uuid()`,
		`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, task_id)
			SELECT node_id, cluster_id, tenant_id, 1000 + id, 'h', 'h', 'i', 'f', 'i', 'root', '{}', '{}', id FROM tasks`,
	} {
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	f := processes.New(db.DB, processes.Options{})
	for here, want := range map[loom.ProcessID]map[loom.TenantID]int{
		"p1": {"a": 2},
		"p2": {"a": 5, "b": 4},
		"p3": {"a": 7, "b": 4},
	} {
		got, err := f.FreeWorkers(context.Background(), here, []loom.TenantID{"a", "b"})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("but for %s: %v, %v, want %v", here, got, err, want)
		}
	}
}
