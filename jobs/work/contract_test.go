package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/lib/pq"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"loom/app/store"
	"loom/app/testkit"
	"loom/jobs"
)

// What Loom's own statements rely on in River's table, against the
// migrated schema: a new release of River that changes any of it fails here.

// contractArgs is a kind that only these tests have.
type contractArgs struct{}

func (contractArgs) Kind() string { return "contract" }

// contractWorker hands each delivery to a test.
type contractWorker struct {
	river.WorkerDefaults[contractArgs]
	do func(ctx context.Context, job *river.Job[contractArgs]) error
}

func (w *contractWorker) Work(ctx context.Context, job *river.Job[contractArgs]) error {
	return w.do(ctx, job)
}

// contract starts a client of River on the queue "contract", which hears of work
// by notices only: its poll is far away.
func contract(t *testing.T, db *testkit.Database, workers int, do func(ctx context.Context, job *river.Job[contractArgs]) error) *river.Client[pgx.Tx] {
	t.Helper()
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	all := river.NewWorkers()
	river.AddWorker(all, &contractWorker{do: do})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{ID: "contract-1", Workers: all, Logger: quiet(), TestOnly: true,
		Queues: map[string]river.QueueConfig{"contract": {MaxWorkers: workers}}, FetchCooldown: time.Millisecond, FetchPollInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.StopAndCancel(ctx); err != nil {
			t.Error(err)
		}
	})
	return client
}

func contractWorld(t *testing.T) *world {
	return &world{t: t, db: testkit.NewDatabase(t)}
}

// put inserts a job as Loom does and gives its id.
func (w *world) put(state string, attempt int) int {
	w.t.Helper()
	id := w.count(`INSERT INTO river_job (state, queue, kind, args, max_attempts, attempt, finalized_at)
		VALUES ($1::text::river_job_state, 'contract', 'contract', '{}', $2, $3, CASE WHEN $1::text IN ('completed', 'cancelled', 'discarded') THEN now() END) RETURNING id`, state, jobs.TaskTries, attempt)
	w.exec(`SELECT loom_wake('{contract}')`)
	return id
}

func (w *world) state(id int) string {
	return w.text(`SELECT state::text FROM river_job WHERE id = $1`, id)
}

func TestRiverSchema(t *testing.T) {
	t.Parallel()
	w := contractWorld(t)
	var states []string
	if err := w.db.Select(&states, `SELECT enumlabel FROM pg_enum WHERE enumtypid = 'river_job_state'::regtype ORDER BY enumlabel`); err != nil {
		t.Fatal(err)
	}
	want := []string{"available", "cancelled", "completed", "discarded", "pending", "retryable", "running", "scheduled"}
	if !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
	columns := map[string]string{"id": "bigint", "state": "river_job_state", "queue": "text", "kind": "text", "args": "jsonb", "metadata": "jsonb", "attempt": "smallint",
		"max_attempts": "smallint", "priority": "smallint", "attempted_at": "timestamp with time zone", "attempted_by": "text[]",
		"scheduled_at": "timestamp with time zone", "finalized_at": "timestamp with time zone"}
	for column, kind := range columns {
		if got := w.text(`SELECT coalesce((SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'river_job'::regclass AND attname = $1), 'missing')`, column); got != kind {
			t.Errorf("column %s is %s, want %s", column, got, kind)
		}
	}
	if got := w.text(`SELECT coalesce(pg_get_serial_sequence('river_job', 'id'), 'none')`); !strings.HasSuffix(got, ".river_job_id_seq") {
		t.Errorf("ids come from %s", got)
	}
	if n := w.count(`SELECT count(*) FROM pg_trigger WHERE tgrelid = 'river_job'::regclass AND NOT tgisinternal AND tgname <> 'river_job_answer'`); n != 0 {
		t.Errorf("%d triggers on river_job: wake-ups would be sent twice", n)
	}
	for _, index := range []string{"river_job_args_index", "river_job_metadata_index"} {
		if n := w.count(`SELECT count(*) FROM pg_indexes WHERE indexname = $1`, index); n != 0 {
			t.Errorf("the index %s is back", index)
		}
	}
	// River makes it for all kinds; reconciling deliveries of hooks looks there.
	if got := w.text(`SELECT indexdef FROM pg_indexes WHERE indexname = 'river_job_kind'`); !strings.Contains(got, "WHERE (kind <> 'run_task'::text)") {
		t.Errorf("jobs are found by their kind by %s", got)
	}
	// BusyQueuesAllTenants walks it.
	if got := w.text(`SELECT indexdef FROM pg_indexes WHERE indexname = 'river_job_prioritized_fetching_index'`); !strings.Contains(got, "(state, queue, priority, scheduled_at, id)") {
		t.Errorf("jobs are fetched by %s", got)
	}
	// What Loom's inserts leave out.
	id := w.put("pending", 0)
	if got := w.text(`SELECT concat_ws(' ', attempt, priority, metadata, coalesce(array_length(attempted_by, 1), 0), scheduled_at <= now(), max_attempts) FROM river_job WHERE id = $1`, id); got != "0 1 {} 0 t 1000" {
		t.Errorf("defaults %q", got)
	}
}

func TestRiverFinalizedCheck(t *testing.T) {
	t.Parallel()
	w := contractWorld(t)
	final := []string{"completed", "cancelled", "discarded"}
	for _, state := range []string{"available", "cancelled", "completed", "discarded", "pending", "retryable", "running", "scheduled"} {
		for _, finalized := range []bool{true, false} {
			_, err := w.db.Exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts, finalized_at) VALUES ($1::text::river_job_state, 'q', 'contract', '{}', 5, CASE WHEN $2::boolean THEN now() END)`, state, finalized)
			if allowed := slices.Contains(final, state) == finalized; allowed != (err == nil) {
				t.Errorf("%s with finalized_at %v: %v", state, finalized, err)
			}
			var refused *pq.Error
			if err != nil && (!errors.As(err, &refused) || refused.Code != "23514") {
				t.Errorf("%s with finalized_at %v: %v", state, finalized, err)
			}
		}
	}
}

// TestRiverWakeups: a notice of Loom's brings a job to work, and River sends the
// same for its own.
func TestRiverWakeups(t *testing.T) {
	t.Parallel()
	w := contractWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	channel, err := store.RiverChannel(ctx, w.db)
	if err != nil {
		t.Fatal(err)
	}
	notices, err := store.Listen(ctx, w.db.DSN, channel)
	if err != nil {
		t.Fatal(err)
	}
	worked := make(chan int64, 10)
	client := contract(t, w.db, 5, func(_ context.Context, job *river.Job[contractArgs]) error {
		worked <- job.ID
		return nil
	})
	id := w.put("available", 0)
	if got := <-worked; got != int64(id) {
		t.Errorf("job %d was worked, want %d", got, id)
	}
	own, err := client.Insert(ctx, contractArgs{}, &river.InsertOpts{Queue: "contract"})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-worked; got != own.Job.ID {
		t.Errorf("job %d was worked, want %d", got, own.Job.ID)
	}
	// Both notices, Loom's first; the listener says nothing when it connects.
	for range 2 {
		n := <-notices
		for n.Channel == "" {
			n = <-notices
		}
		var body struct {
			Queue string `json:"queue"`
		}
		if err := json.Unmarshal([]byte(n.Payload), &body); err != nil || body.Queue != "contract" {
			t.Errorf("notice %q on %s", n.Payload, n.Channel)
		}
	}
}

// TestRiverLeavesPendingAlone: maintenance moves what is due and not what is
// pending.
func TestRiverLeavesPendingAlone(t *testing.T) {
	t.Parallel()
	w := contractWorld(t)
	pending := w.put("pending", 3)
	w.exec(`UPDATE river_job SET scheduled_at = now() - interval '2 days', created_at = now() - interval '2 days', attempted_at = now() - interval '2 days'`)
	before := w.text(`SELECT river_job::text FROM river_job WHERE id = $1`, pending)
	worked := make(chan int64, 10)
	contract(t, w.db, 5, func(_ context.Context, job *river.Job[contractArgs]) error {
		worked <- job.ID
		return nil
	})
	// The scheduler of the leader has seen the table once it has moved these.
	due := []int64{int64(w.put("scheduled", 1)), int64(w.put("retryable", 1))}
	for range due {
		if id := <-worked; !slices.Contains(due, id) {
			t.Errorf("job %d was worked", id)
		}
	}
	if after := w.text(`SELECT river_job::text FROM river_job WHERE id = $1`, pending); after != before {
		t.Errorf("a pending job changed from %s to %s", before, after)
	}
}

// TestRiverDelivery: what a delivery writes into the row, which the fence and the
// reaper read.
func TestRiverDelivery(t *testing.T) {
	t.Parallel()
	w := contractWorld(t)
	type seen struct {
		attempt int
		last    string
		state   string
	}
	deliveries := make(chan seen, 10)
	contract(t, w.db, 1, func(_ context.Context, job *river.Job[contractArgs]) error {
		deliveries <- seen{job.Attempt, w.text(`SELECT attempted_by[array_upper(attempted_by, 1)] FROM river_job WHERE id = $1`, job.ID), w.state(int(job.ID))}
		return nil
	})
	// A number that Loom has set is counted on from; a name is put behind however
	// many there are.
	id := w.put("pending", 41)
	w.exec(`UPDATE river_job SET attempted_by = (SELECT array_agg('old-' || i) FROM generate_series(1, 200) AS i) WHERE id = $1`, id)
	w.exec(`UPDATE river_job SET state = 'available' WHERE id = $1`, id)
	w.exec(`SELECT loom_wake('{contract}')`)
	if got := <-deliveries; got != (seen{42, "contract-1", "running"}) {
		t.Errorf("%+v", got)
	}
	// The last possible try of River's is out of reach, but is one.
	w.put("available", jobs.TaskTries-1)
	if got := <-deliveries; got.attempt != jobs.TaskTries {
		t.Errorf("%+v", got)
	}
	// Fetched by priority, then by time.
	var ids []int
	for _, priority := range []int{3, 1, 2} {
		one := w.put("pending", 100*priority)
		w.exec(`UPDATE river_job SET priority = $2 WHERE id = $1`, one, priority)
		ids = append(ids, one)
	}
	w.exec(`UPDATE river_job SET state = 'available' WHERE id = ANY($1)`, pq.Array(ids))
	w.exec(`SELECT loom_wake('{contract}')`)
	for _, want := range []int{101, 201, 301} {
		if got := <-deliveries; got.attempt != want {
			t.Errorf("attempt %d, want %d: the order is not that of priorities", got.attempt, want)
		}
	}
}

// TestRiverCompleterLeavesRowsAlone: a worker's own transaction has the last word
// about its row.
func TestRiverCompleterLeavesRowsAlone(t *testing.T) {
	t.Parallel()
	w := contractWorld(t)
	// Not so long ago that River's cleaner takes the row away.
	long := time.Now().Add(-time.Hour).UTC().Format("2006-01-02 15:04:05+00")
	moves := map[int]string{
		1: `UPDATE river_job SET state = 'completed', finalized_at = '` + long + `' WHERE id = $1`,
		2: `UPDATE river_job SET state = 'cancelled', finalized_at = '` + long + `' WHERE id = $1`,
		3: `UPDATE river_job SET state = 'discarded', finalized_at = '` + long + `' WHERE id = $1`,
		4: `UPDATE river_job SET state = 'pending' WHERE id = $1`,
		5: `UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour' WHERE id = $1`,
		// Somebody else has it by now. That River closes this delivery too is why its answers
		// about tasks do not count (loom_answer).
		6: `UPDATE river_job SET attempt = 60, attempted_by = '{somebody-else}' WHERE id = $1`,
		// What River's cleaner does.
		7: `DELETE FROM river_job WHERE id = $1`,
	}
	contract(t, w.db, 1, func(_ context.Context, job *river.Job[contractArgs]) error {
		if move, ok := moves[job.Attempt]; ok {
			w.exec(move, job.ID)
		}
		return nil
	})
	want := map[int]string{1: "completed", 2: "cancelled", 3: "discarded", 4: "pending", 5: "scheduled", 6: "completed"}
	ids := map[int]int{}
	for n := 1; n <= len(moves); n++ {
		ids[n] = w.put("available", n-1)
	}
	// The completer has been through all of them when it has closed the last.
	last := w.put("available", 50)
	w.eventually(20*time.Second, "the end of the last job", func() bool { return w.state(last) == "completed" })
	for n, id := range ids {
		if n == 7 {
			if w.count(`SELECT count(*) FROM river_job WHERE id = $1`, id) != 0 {
				t.Error("a row that was deleted is back")
			}
			continue
		}
		if got := w.state(id); got != want[n] {
			t.Errorf("%s: the row is %s", moves[n], got)
		}
		if n <= 3 {
			if n := w.count(`SELECT count(*) FROM river_job WHERE id = $1 AND finalized_at = '`+long+`'`, id); n != 1 {
				t.Errorf("the row of %s was finalized anew", want[n])
			}
		}
	}
}

// TestRiverSnooze: a snooze takes its number back, which is why attempts take the
// greater of River's and the task's.
func TestRiverSnooze(t *testing.T) {
	t.Parallel()
	w := contractWorld(t)
	contract(t, w.db, 1, func(context.Context, *river.Job[contractArgs]) error { return river.JobSnooze(time.Hour) })
	id := w.put("available", 7)
	w.eventually(20*time.Second, "the snooze", func() bool { return w.state(id) == "scheduled" })
	if got := w.text(`SELECT concat_ws(' ', attempt, max_attempts, metadata->>'snoozes', scheduled_at > now() + interval '30 minutes') FROM river_job WHERE id = $1`, id); got != "7 1000 1 t" {
		t.Errorf("after a snooze: %q", got)
	}
}
