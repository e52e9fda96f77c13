package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

const (
	// anchorWorkers take batches of anchorBatch tasks side by side.
	anchorWorkers, anchorBatch = 2, 500
)

// The anchor is what a worker of plain SQL does with the same graph: two tables, a
// transaction that takes ready tasks with SKIP LOCKED and says so to others, and,
// where the work would lie in between, a second one that finishes them and counts
// down what waited for them. Nothing is delivered, run, fenced or told to anybody.
const (
	anchorTables = `
CREATE SCHEMA anchor;
CREATE TABLE anchor.tasks (id bigint PRIMARY KEY, state smallint NOT NULL, remaining int NOT NULL) WITH (fillfactor = 80);
CREATE INDEX tasks_ready ON anchor.tasks (id) WHERE state = 1;
CREATE TABLE anchor.edges (from_task bigint NOT NULL, to_task bigint NOT NULL, PRIMARY KEY (from_task, to_task));
CREATE FUNCTION anchor.take(p_limit int) RETURNS bigint[]
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    v_taken bigint[];
BEGIN
    v_taken := ARRAY(SELECT id FROM anchor.tasks WHERE state = 1 ORDER BY id LIMIT p_limit FOR UPDATE SKIP LOCKED);
    UPDATE anchor.tasks SET state = 2 WHERE id = ANY(v_taken);
    RETURN v_taken;
END
$$;
CREATE FUNCTION anchor.finish(p_taken bigint[]) RETURNS int
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    UPDATE anchor.tasks SET state = 3 WHERE id = ANY(p_taken);
    PERFORM 1 FROM anchor.tasks WHERE id IN (SELECT to_task FROM anchor.edges WHERE from_task = ANY(p_taken)) ORDER BY id FOR UPDATE;
    UPDATE anchor.tasks t SET remaining = t.remaining - d.n, state = CASE WHEN t.remaining = d.n THEN 1 ELSE t.state END
    FROM (SELECT to_task, count(*)::int AS n FROM anchor.edges WHERE from_task = ANY(p_taken) GROUP BY to_task) AS d
    WHERE t.id = d.to_task;
    RETURN cardinality(p_taken);
END
$$`
	anchorEdges = `
INSERT INTO anchor.edges SELECT e.from_task, e.to_task FROM task_edges e JOIN tasks t ON t.id = e.from_task WHERE t.operation_id = $1`
	anchorTasks = `
INSERT INTO anchor.tasks SELECT t.id, CASE WHEN count(e.to_task) = 0 THEN 1 ELSE 0 END, count(e.to_task)
FROM tasks t LEFT JOIN anchor.edges e ON e.to_task = t.id WHERE t.operation_id = $1 GROUP BY t.id`
)

// Ways to step through the anchor: each gives how many tasks it finished.
var (
	// anchorStep is what a worker has to do: nobody holds a transaction while it works.
	anchorStep = func(ctx context.Context, db *sqlx.DB) (n int, err error) {
		var taken string // an array in PostgreSQL's own form
		if err := db.GetContext(ctx, &taken, `SELECT anchor.take($1)::text`, anchorBatch); err != nil || taken == "{}" {
			return 0, err
		}
		err = db.GetContext(ctx, &n, `SELECT anchor.finish($1::bigint[])`, taken)
		return n, err
	}
	// anchorBound does it all in one transaction: no worker could, it is what
	// PostgreSQL can do at all.
	anchorBound = func(ctx context.Context, db *sqlx.DB) (n int, err error) {
		err = db.GetContext(ctx, &n, `SELECT anchor.finish(anchor.take($1))`, anchorBatch)
		return n, err
	}
)

// anchorFigures are those of one run of a graph in plain SQL.
type anchorFigures struct{ took, cpu time.Duration }

// anchor runs the graph of an operation in plain SQL, step by step.
func (b *benchInstance) anchor(ctx context.Context, op loom.OperationID, step func(context.Context, *sqlx.DB) (int, error)) (f anchorFigures, err error) {
	db := b.System.DB
	if _, err := db.ExecContext(ctx, anchorTables); err != nil {
		return f, err
	}
	defer func() {
		_, dropped := db.ExecContext(context.WithoutCancel(ctx), `DROP SCHEMA anchor CASCADE`)
		err = errors.Join(err, dropped)
	}()
	var vertices int
	if _, err := db.ExecContext(ctx, anchorEdges, int64(op)); err != nil {
		return f, err
	}
	if _, err := db.ExecContext(ctx, anchorTasks, int64(op)); err != nil {
		return f, err
	}
	if _, err := db.ExecContext(ctx, `ANALYZE anchor.tasks, anchor.edges`); err != nil {
		return f, err
	}
	if err := db.GetContext(ctx, &vertices, `SELECT count(*) FROM anchor.tasks`); err != nil {
		return f, err
	}
	before, err := b.postgresCPU(ctx)
	if err != nil {
		return f, err
	}
	began := time.Now()
	failed := anchorRun(ctx, db, vertices, step)
	f.took = time.Since(began)
	after, err := b.postgresCPU(ctx)
	if err != nil {
		return f, err
	}
	f.cpu = after - before
	if failed != nil {
		return f, failed
	}
	var left int
	if err := db.GetContext(ctx, &left, `SELECT count(*) FROM anchor.tasks WHERE state <> 3`); err != nil {
		return f, err
	}
	if left > 0 {
		return f, fmt.Errorf("%d of %d tasks of the anchor were not done", left, vertices)
	}
	return f, nil
}

// anchorRun takes steps with several workers at once until all vertices are done.
func anchorRun(ctx context.Context, db *sqlx.DB, left int, step func(context.Context, *sqlx.DB) (int, error)) error {
	ctx, cancel := context.WithTimeout(ctx, benchPatience)
	defer cancel()
	var mu sync.Mutex
	var failed error
	var workers sync.WaitGroup
	for range anchorWorkers {
		workers.Go(func() {
			for {
				n, err := step(ctx, db)
				mu.Lock()
				left -= n
				failed = errors.Join(failed, err)
				over := left == 0 || failed != nil
				mu.Unlock()
				if over {
					return
				}
				if n == 0 { // the other one holds what would be ready next
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	workers.Wait()
	return failed
}
