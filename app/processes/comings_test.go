package processes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

// TestProcessesComeAndGoAtOnce: processes that end delete their assignments while
// those that come and the reaper deal workers anew. None of them may be refused
// because they wait for each other.
func TestProcessesComeAndGoAtOnce(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.SetMaxOpenConns(10)
	if _, err := db.Exec(`INSERT INTO tenants (id, name, workers) SELECT 't' || i, 'tenant ' || i, 20 FROM generate_series(1, 5) AS i`); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	f := processes.New(db.DB, processes.Options{Lease: time.Hour})
	short := processes.New(db.DB, processes.Options{Lease: time.Microsecond})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 25 {
				id, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 10})
				if err != nil {
					t.Errorf("come: %v", err)
					return
				}
				if err := f.Deregister(ctx, id); err != nil {
					t.Errorf("go: %v", err)
					return
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range 25 {
				if _, err := short.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 10}); err != nil {
					t.Errorf("come for a moment: %v", err)
					return
				}
				if _, err := f.Reap(ctx); err != nil {
					t.Errorf("reap: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if _, err := f.Reap(ctx); err != nil {
		t.Error(err)
	}
	var left int
	if err := db.Get(&left, `SELECT (SELECT count(*) FROM processes) + (SELECT count(*) FROM worker_assignments)`); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}
