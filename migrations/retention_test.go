package migrations_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"loom/app/testkit"
	"loom/migrations"
)

// upTo empties a database and brings it to an earlier release.
func upTo(t *testing.T, db *testkit.Database, version int64) {
	t.Helper()
	ctx := context.Background()
	db.MustExec(`DROP SCHEMA public CASCADE`)
	db.MustExec(`CREATE SCHEMA public`)
	pool, err := pgxpool.New(ctx, db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	river, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := river.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db.DB.DB, os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		t.Fatal(err)
	}
}

// Task logs of earlier releases keep their lines, order and numbers, each attempt in
// the partition of the day on which it began.
func TestTaskLogsMoveIntoPartitions(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	upTo(t, db, 14)
	for _, statement := range []string{
		`INSERT INTO tenants (id, name) VALUES ('t1', 'acme')`,
		`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider, services)
			VALUES (1, 't1', 'ana', 'c', 'active', 't', 1, '{}', 'p', '{}', '{}')`,
		`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE VALUES (1, 't1', 1, 1, 'cluster_create', 'complete', 'ana')`,
		`INSERT INTO tasks (id, operation_id, tenant_id, cluster_id, number, action, status) VALUES (1, 1, 't1', 1, 1, 'start', 'complete'), (2, 1, 't1', 1, 2, 'start', 'complete')`,
		// The first attempt began before midnight and went on behind it, the other one lost its row.
		`INSERT INTO attempts (task_id, number, process_id, status, started_at) VALUES (1, 1, 'p', 'complete', '2025-03-01T23:59:59Z')`,
		`INSERT INTO task_logs (task_id, attempt, seq, operation_id, at, stream, text)
			SELECT 1, 1, n, 1, '2025-03-01T23:59:59Z'::timestamptz + n * interval '1 second', 'stdout', 'line ' || n FROM generate_series(1, 5) AS n`,
		`INSERT INTO task_logs (task_id, attempt, seq, operation_id, at, stream, text)
			SELECT 2, 1, n, 1, '2025-03-03T10:00:00Z'::timestamptz + n * interval '1 day', 'stdout', 'other ' || n FROM generate_series(1, 3) AS n`,
	} {
		db.MustExec(statement)
	}
	text := func(query string) string {
		t.Helper()
		var s string
		if err := db.Get(&s, query); err != nil {
			t.Fatal(err)
		}
		return s
	}
	const all = `SELECT string_agg(task_id || '/' || seq || '/' || id || '/' || xid || '/' || at || '/' || text, ' ' ORDER BY task_id, seq) FROM task_logs`
	before := text(all)
	db.Close() // cached plans break
	ctx := context.Background()
	if err := migrations.Up(ctx, db.DSN); err != nil {
		t.Fatal(err)
	}
	reopened, err := sqlx.Connect("postgres", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer reopened.Close()
	db = &testkit.Database{DB: reopened, DSN: db.DSN}
	if after := text(all); after != before {
		t.Errorf("from\n%s\nto\n%s", before, after)
	}
	if got := text(`SELECT string_agg(DISTINCT tableoid::regclass::text || ' ' || task_id, ', ') FROM task_logs`); got != "task_logs_p20250301 1, task_logs_p20250304 2" {
		t.Errorf("partitions: %s", got)
	}
	db.MustExec(`INSERT INTO task_logs (task_id, attempt, seq, operation_id, at, stream, text) VALUES (2, 1, 4, 1, now(), 'stdout', 'new')`)
	if got := text(`SELECT (id > (SELECT max(id) FROM task_logs WHERE text <> 'new'))::text FROM task_logs WHERE text = 'new'`); got != "true" {
		t.Error("numbers of lines begin again")
	}
}
