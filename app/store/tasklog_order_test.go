package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

func logLines(from, to int) []loom.LogLine {
	var lines []loom.LogLine
	for n := from; n <= to; n++ {
		lines = append(lines, loom.LogLine{Seq: n, Time: time.Unix(int64(n), 0), Stream: "stdout", Level: "info", Text: fmt.Sprint("line ", n)})
	}
	return lines
}

// TestLateLinesAreNotSkipped commits lines in another order than that in which they
// got their numbers.
func TestLateLinesAreNotSkipped(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := newLives(t)
	one, two := l.node(1, 1, "small"), l.node(1, 2, "small")
	l.task(1, one, "create", "running", 1)
	l.task(1, two, "create", "running", 1)
	var rows []loom.TaskID
	if err := l.db.Select(&rows, `SELECT id FROM tasks ORDER BY number`); err != nil {
		t.Fatal(err)
	}
	begin := func(task loom.TaskID, from, to int) *sqlx.Tx {
		tx := l.db.MustBeginTx(ctx, nil)
		sx := &sqlx.Tx{Tx: tx.Tx, Mapper: l.db.Mapper}
		if err := store.AppendLogsAllTenants(ctx, sx, []store.LogPart{{Key: store.AttemptKey{Task: task, Attempt: 1}, Lines: logLines(from, to)}}); err != nil {
			t.Fatal(err)
		}
		return sx
	}
	ref := loom.OperationRef{Cluster: 1, Number: 1}
	read := func(r store.OrderedRange) store.OrderedLog {
		t.Helper()
		if r.Limit == 0 {
			r.Limit = 100
		}
		log, err := store.OperationLog(ctx, l.db.DB, "a", ref, r)
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	slow := begin(rows[0], 1, 2)
	fast := begin(rows[1], 1, 2)
	if err := fast.Commit(); err != nil {
		t.Fatal(err)
	}
	if log := read(store.OrderedRange{}); len(log.Lines) != 0 || !log.Waiting {
		t.Fatalf("lines before which others appear are given: %+v", log)
	}
	if log := read(store.OrderedRange{Unsettled: true}); len(log.Lines) != 2 || log.Waiting {
		t.Errorf("whoever reads once gets %+v", log)
	}
	if err := slow.Commit(); err != nil {
		t.Fatal(err)
	}
	// Other databases of the server may hold lines back for a moment.
	log := read(store.OrderedRange{})
	for log.Waiting {
		log = read(store.OrderedRange{})
	}
	if len(log.Lines) != 4 || log.Lines[0].Task.Number != 1 || log.Lines[3].Task.Number != 2 || log.Lines[3].Text != "line 2" {
		t.Fatalf("%+v", log)
	}
	if rest := read(store.OrderedRange{After: log.Lines[1].Place}); len(rest.Lines) != 2 || rest.Lines[0].Task.Number != 2 {
		t.Errorf("behind the second: %+v", rest)
	}
	if part := read(store.OrderedRange{Limit: 3}); len(part.Lines) != 3 || !part.More {
		t.Errorf("%+v", part)
	}
	for n, r := range map[int]store.OrderedRange{0: {Attempt: 2}, 4: {Levels: []string{"info", "error"}}} {
		if log := read(r); len(log.Lines) != n {
			t.Errorf("%+v: %d lines", r, len(log.Lines))
		}
	}
	ofNode, err := store.NodeLog(ctx, l.db.DB, "a", 1, loom.NodeID(two), store.OrderedRange{Limit: 100})
	if err != nil || len(ofNode.Lines) != 2 || ofNode.Lines[0].Task != (loom.TaskRef{Operation: ref, Number: 2}) {
		t.Errorf("%+v, %v", ofNode, err)
	}
	// Not for another tenant, nor through another cluster.
	if log, err := store.OperationLog(ctx, l.db.DB, "b", ref, store.OrderedRange{Limit: 100}); err != nil || len(log.Lines) != 0 {
		t.Errorf("another tenant reads %+v, %v", log, err)
	}
	for tenant, cluster := range map[loom.TenantID]loom.ClusterID{"b": 1, "a": 2} {
		if log, err := store.NodeLog(ctx, l.db.DB, tenant, cluster, loom.NodeID(two), store.OrderedRange{Limit: 100}); err != nil || len(log.Lines) != 0 {
			t.Errorf("%s reads %+v, %v", tenant, log, err)
		}
	}
}

// TestFollowingWritersLosesNothing reads along while many write at once.
func TestFollowingWritersLosesNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := newLives(t)
	const writers, batches = 6, 40
	var rows []loom.TaskID
	for n := range writers {
		l.task(1, l.node(1, n, "small"), "create", "running", 1)
	}
	if err := l.db.Select(&rows, `SELECT id FROM tasks ORDER BY number`); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for w, task := range rows {
		writing.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			seq := 0
			for range batches {
				n := 1 + r.IntN(4)
				err := store.Exec(ctx, l.db.DB, func(tx *sqlx.Tx) error {
					err := store.AppendLogsAllTenants(ctx, tx, []store.LogPart{{Key: store.AttemptKey{Task: task, Attempt: 1}, Lines: logLines(seq+1, seq+n)}})
					if err == nil && r.IntN(3) == 0 { // some commit late
						_, err = tx.ExecContext(ctx, `SELECT pg_sleep(0.003)`)
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				seq += n
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	next := map[int]int{}
	place, total := store.LogPlace{}, 0
	for {
		last := false
		select {
		case <-done:
			last = true
		default:
		}
		log, err := store.OperationLog(ctx, l.db.DB, "a", loom.OperationRef{Cluster: 1, Number: 1}, store.OrderedRange{After: place, Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range log.Lines {
			if next[line.Task.Number]++; line.Seq != next[line.Task.Number] {
				t.Fatalf("task %d: line %d where %d was due", line.Task.Number, line.Seq, next[line.Task.Number])
			}
			place = line.Place
			total++
		}
		if last && !log.More && !log.Waiting {
			break
		}
	}
	var stored int
	if err := l.db.Get(&stored, `SELECT count(*) FROM task_logs`); err != nil || stored != total {
		t.Errorf("%d of %d lines, %v", total, stored, err)
	}
}
