package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// TestLogsAreReadFromTheirDay looks at the plans of the statements that read logs:
// however many days are kept, they look at those that can hold lines.
func TestLogsAreReadFromTheirDay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := newLives(t)
	node := l.node(1, 1, "small")
	l.task(1, node, "create", "running", 1)
	l.db.MustExec(`UPDATE operations SET created_at = now() - interval '20 days', ended_at = now() - interval '20 days' WHERE id = 1`)
	l.db.MustExec(`UPDATE clusters SET created_at = now() - interval '20 days' WHERE id = 1`)
	l.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, started_at, ended_at) SELECT id, 1, 'p', 'complete', now() - interval '20 days', now() - interval '20 days' FROM tasks`)
	l.db.MustExec(`SELECT loom_log_partition((now() AT TIME ZONE 'UTC')::date - n) FROM generate_series(0, 60) AS n`)
	var task loom.TaskID
	if err := l.db.Get(&task, `SELECT id FROM tasks`); err != nil {
		t.Fatal(err)
	}
	err := store.Exec(ctx, l.db.DB, func(tx *sqlx.Tx) error {
		return store.AppendLogsAllTenants(ctx, tx, []store.LogPart{{Key: store.AttemptKey{Task: task, Attempt: 1}, Lines: logLines(1, 50)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	var day string
	if err := l.db.Get(&day, `SELECT DISTINCT tableoid::regclass::text FROM task_logs`); err != nil || !strings.HasPrefix(day, "task_logs_p") {
		t.Fatalf("the lines are in %q, %v", day, err)
	}
	lines, more, err := store.LogLines(ctx, l.db.DB, "a", loom.Task{Row: task}, store.LogRange{Attempt: 1, After: 10, Limit: 20})
	if err != nil || len(lines) != 20 || !more || lines[0].Seq != 11 {
		t.Errorf("%d lines, %t, %v", len(lines), more, err)
	}
	ref := loom.OperationRef{Cluster: 1, Number: 1}
	for name, read := range map[string]func() (store.OrderedLog, error){
		"operation": func() (store.OrderedLog, error) {
			return store.OperationLog(ctx, l.db.DB, "a", ref, store.OrderedRange{Limit: 100, Unsettled: true})
		},
		"node": func() (store.OrderedLog, error) {
			return store.NodeLog(ctx, l.db.DB, "a", 1, loom.NodeID(node), store.OrderedRange{Limit: 100, Unsettled: true})
		},
	} {
		if log, err := read(); err != nil || len(log.Lines) != 50 {
			t.Errorf("log of the %s: %d lines, %v", name, len(log.Lines), err)
		}
	}
	// The same conditions as in the statements, with their parameters known.
	for name, c := range map[string]struct {
		where string
		most  int
	}{
		"attempt":   {fmt.Sprintf(`task_id = %d AND attempt = 1 AND seq > 10 AND day BETWEEN '%s'::date AND '%s'::date ORDER BY seq LIMIT 20`, task, l.ago(20), l.ago(20)), 1},
		"operation": {fmt.Sprintf(`operation_id = 1 AND (xid, id) > ('0'::xid8, 0) AND day BETWEEN '%s'::date AND '%s'::date ORDER BY xid, id LIMIT 20`, l.ago(20), l.ago(20)), 1},
		"node":      {fmt.Sprintf(`node_id = '%s' AND (xid, id) > ('0'::xid8, 0) AND day BETWEEN '%s'::date AND '%s'::date ORDER BY xid, id LIMIT 20`, node, l.ago(20), l.ago(0)), 22},
	} {
		var plan []string
		err := store.Exec(ctx, l.db.DB, func(tx *sqlx.Tx) error {
			tx.MustExec(`SET LOCAL enable_seqscan = off`) // the tables are tiny
			return tx.Select(&plan, `EXPLAIN SELECT seq FROM task_logs WHERE `+c.where)
		})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if n := strings.Count(text, " on task_logs_"); n > c.most || n == 0 || strings.Contains(text, "Sort  (") || strings.Contains(text, "Seq Scan") {
			t.Errorf("log of the %s is read from %d partitions:\n%s", name, n, text)
		}
	}
}

// ago is a day before today, by the database clock.
func (l *lives) ago(days int) string {
	l.t.Helper()
	var day string
	if err := l.db.Get(&day, `SELECT ((now() AT TIME ZONE 'UTC')::date - $1::int)::text`, days); err != nil {
		l.t.Fatal(err)
	}
	return day
}
