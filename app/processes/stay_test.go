package processes_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

var superadmin = loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: loom.AdminUser, Role: loom.RoleSuperadmin, Via: "cli"}

// waitFor asks until the answer is yes.
func waitFor(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !yes(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestStay keeps a process in the list while its row is taken away, while the database
// is away, and takes it out in the end.
func TestStay(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	f := processes.New(db.DB, processes.Options{Lease: 2 * time.Second, RenewEvery: 20 * time.Millisecond, GiveUpAfter: 300 * time.Millisecond})
	troubles := make(chan error, 1000)
	var holds atomic.Bool
	stay := func() (leave func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.StayRegistered(ctx, processes.NewProcess{Kind: loom.ProcessWeb, Port: 8080, Version: "1.2"}, func(held bool) { holds.Store(held) }, func(err error) {
				select {
				case troubles <- err:
				default:
				}
			})
		}()
		leave = func() { cancel(); <-ended }
		t.Cleanup(leave)
		return leave
	}
	leave := stay()
	listed := func() (loom.ProcessID, bool) {
		list, err := f.List(context.Background(), superadmin, loom.ProcessWeb)
		if err != nil || len(list) == 0 {
			return "", false
		}
		if p := list[0]; len(list) > 1 || p.Kind != loom.ProcessWeb || p.Port != 8080 || p.Version != "1.2" || len(p.Assigned) > 0 {
			t.Errorf("listed %+v", list)
		}
		return list[0].ID, true
	}
	waitFor(t, "the process", func() bool { _, there := listed(); return there })
	first, _ := listed()
	waitFor(t, "word of the lease", holds.Load)
	db.MustExec(`DELETE FROM processes`)
	waitFor(t, "another lease", func() bool { id, there := listed(); return there && id != first })
	if err := <-troubles; err == nil {
		t.Error("a lost lease is no trouble")
	}

	// The database is away for longer than a process works on without it.
	second, _ := listed()
	var name string
	if err := db.Get(&name, `SELECT current_database()`); err != nil {
		t.Fatal(err)
	}
	outside := testkit.NewDatabase(t) // on the same server
	outside.MustExec(`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS false`)
	outside.MustExec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name)
	for range 2 { // the lease is given up, and a new one cannot begin
		select {
		case <-troubles:
		case <-time.After(30 * time.Second):
			t.Fatal("a database that is away is no trouble")
		}
	}
	outside.MustExec(`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS true`)
	// The lease that was given up runs out; the new one does not wait for that.
	waitFor(t, "the database", func() bool {
		_, err := db.Exec(`UPDATE processes SET expires_at = now() - interval '1 second' WHERE id = $1`, second)
		return err == nil
	})
	waitFor(t, "the process once more", func() bool { id, there := listed(); return there && id != second })

	leave()
	if id, there := listed(); there {
		t.Errorf("%s is listed after its end", id)
	}
}
