package execution_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
)

// log stores lines of an attempt as its writer does.
func (w *world) log(key execution.AttemptKey, texts ...string) {
	w.t.Helper()
	l := w.ops.Log(key)
	for _, text := range texts {
		l.Add("stdout", text)
	}
	l.Close()
}

// began moves the beginning of an attempt.
func (w *world) began(key execution.AttemptKey, ago string) {
	w.t.Helper()
	w.exec(`UPDATE attempts SET started_at = now() - $3::interval WHERE task_id = $1 AND number = $2`, int64(key.Task), key.Attempt, ago)
	w.exec(`UPDATE operations SET created_at = least(created_at, now() - $2::interval) WHERE id = (SELECT operation_id FROM tasks WHERE id = $1)`, int64(key.Task), ago)
}

func (w *world) partitions() string {
	w.t.Helper()
	return w.text(`SELECT coalesce(string_agg(right(c.relname, 8), ' ' ORDER BY c.relname), '') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'task_logs'::regclass AND c.relname <> 'task_logs_default'`)
}

func (w *world) day(days int) string {
	w.t.Helper()
	return w.text(`SELECT to_char((now() AT TIME ZONE 'UTC')::date + $1::int, 'YYYYMMDD')`, days)
}

// Lines are stored whether the duty ran or not; it makes partitions of the days to
// come and takes over what fell into the default one.
func TestLogsHaveAPartitionPerDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`DO $$ DECLARE p text; BEGIN FOR p IN SELECT name FROM loom_old_log_partitions('infinity') LOOP EXECUTE 'DROP TABLE ' || p; END LOOP; END $$`)
	if got := w.partitions(); got != "" {
		t.Fatalf("partitions %s", got)
	}
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	key := w.deliver(1)
	w.log(key, "one", "two")
	w.expect("2 2", `SELECT (SELECT count(*) FROM task_logs) || ' ' || (SELECT count(*) FROM task_logs_default)`)
	for range 2 {
		if err := w.ops.TrimLogs(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := w.partitions(), fmt.Sprintf("%s %s %s", w.day(0), w.day(1), w.day(2)); got != want {
		t.Errorf("partitions %s, want %s", got, want)
	}
	w.expect("2 0", `SELECT (SELECT count(*) FROM task_logs) || ' ' || (SELECT count(*) FROM task_logs_default)`)
	// Storing a batch again changes nothing, on either side of the move.
	lines := []loom.LogLine{{Seq: 2, Time: time.Now(), Stream: "stdout", Level: "info", Text: "two"}, {Seq: 3, Time: time.Now(), Stream: "stdout", Level: "info", Text: "three"}}
	if err := store.Exec(ctx, w.db.DB, func(tx *sqlx.Tx) error {
		return store.AppendLogsAllTenants(ctx, tx, []store.LogPart{{Key: key, Lines: lines}})
	}); err != nil {
		t.Fatal(err)
	}
	w.expect("one two three", `SELECT string_agg(text, ' ' ORDER BY seq) FROM task_logs`)
	// An attempt that runs past midnight stays in one partition.
	w.complete(key, loom.TaskResult{})
	late := w.deliver(2)
	w.began(late, "1 day")
	w.log(late, "yesterday's")
	w.expect("true", `SELECT (day = (now() AT TIME ZONE 'UTC')::date - 1)::text FROM task_logs WHERE text = 'yesterday''s'`)
}

// Old partitions go whole, what nobody made a partition for goes as well.
func TestOldLogsAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.ops = execution.New(w.db.DB, w.ring, execution.Options{LogAge: 30 * 24 * time.Hour})
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap)
	for i, ago := range []string{"40 days", "35 days", "29 days"} {
		key := w.deliver(i + 1)
		w.began(key, ago)
		if i != 1 { // the second one has no partition
			w.exec(`SELECT loom_log_partition((now() - $1::interval)::date)`, ago)
		}
		w.log(key, "line "+ago)
		w.complete(key, loom.TaskResult{})
	}
	w.expect("3 1", `SELECT (SELECT count(*) FROM task_logs) || ' ' || (SELECT count(*) FROM task_logs_default)`)
	if err := w.ops.TrimLogs(ctx); err != nil {
		t.Fatal(err)
	}
	w.expect("line 29 days", `SELECT string_agg(text, ', ') FROM task_logs`)
	if got := w.partitions(); strings.Contains(got, w.day(-40)) || !strings.Contains(got, w.day(-29)) {
		t.Errorf("partitions %s", got)
	}
	// For ever.
	w.ops = execution.New(w.db.DB, w.ring, execution.Options{LogAge: -1})
	w.exec(`UPDATE task_logs SET day = day - 4000`)
	if err := w.ops.TrimLogs(ctx); err != nil {
		t.Fatal(err)
	}
	w.expect("1", `SELECT count(*)::text FROM task_logs`)
}

// A tenant keeps the newest logs up to its share; the others say that they are gone.
func TestLargeLogsGiveWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.ops = execution.New(w.db.DB, w.ring, execution.Options{LogBytes: 7000})
	text := strings.Repeat("x", 1000)
	for n := 1; n <= 4; n++ {
		w.plan(loom.ClusterConfigure, loom.ActionCreate)
		w.exec(`UPDATE tasks SET number = $1 WHERE operation_id = (SELECT max(id) FROM operations) AND NOT gate`, n)
		key := w.deliver(n)
		w.began(key, fmt.Sprintf("%d hours", 10-n))
		w.log(key, text, text, text)
		w.complete(key, loom.TaskResult{})
		w.end()
		w.exec(`UPDATE operations SET ended_at = created_at + interval '1 minute' WHERE id = (SELECT max(id) FROM operations)`)
	}
	for range 2 {
		if err := w.ops.TrimLogs(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("1:1 2:1 3:3 4:3", `SELECT string_agg(n || ':' || lines, ' ' ORDER BY n) FROM (
		SELECT o.number AS n, count(*) AS lines FROM operations o JOIN task_logs l ON l.operation_id = o.id GROUP BY o.number) x`)
	w.expect("3 loom warn [3 lines were removed here: a tenant keeps 7000 bytes of logs here, the newest ones]",
		`SELECT seq || ' ' || stream || ' ' || level || ' ' || text FROM task_logs l JOIN operations o ON o.id = l.operation_id WHERE o.number = 1`)
	w.expect("2", `SELECT count(*)::text FROM operations WHERE logs_trimmed_at IS NOT NULL AND log_bytes < 400`)
	// The newest one stays, however long it is.
	w.ops = execution.New(w.db.DB, w.ring, execution.Options{LogBytes: 100})
	if err := w.ops.TrimLogs(ctx); err != nil {
		t.Fatal(err)
	}
	w.expect("3", `SELECT count(*)::text FROM task_logs l JOIN operations o ON o.id = l.operation_id WHERE o.number = 4`)
}
