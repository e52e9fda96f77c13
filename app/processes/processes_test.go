package processes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		seats  []processes.Capacity
		wanted map[loom.TenantID]int
		want   map[string]int // "tenant@process"
	}{
		{"nobody there", nil, map[loom.TenantID]int{"a": 5}, map[string]int{}},
		{"all fit and are spread", []processes.Capacity{{"p", 10, ""}, {"q", 10, ""}}, map[loom.TenantID]int{"a": 4, "b": 3},
			map[string]int{"a@p": 2, "a@q": 2, "b@p": 2, "b@q": 1}},
		{"by size of the process", []processes.Capacity{{"p", 30, ""}, {"q", 10, ""}}, map[loom.TenantID]int{"a": 20}, map[string]int{"a@p": 15, "a@q": 5}},
		{"in proportion", []processes.Capacity{{"p", 10, ""}}, map[loom.TenantID]int{"a": 30, "b": 10, "c": 10}, map[string]int{"a@p": 6, "b@p": 2, "c@p": 2}},
		{"at least one each", []processes.Capacity{{"p", 4, ""}}, map[loom.TenantID]int{"a": 100, "b": 1, "c": 1}, map[string]int{"a@p": 2, "b@p": 1, "c@p": 1}},
		{"more tenants than room", []processes.Capacity{{"p", 2, ""}}, map[loom.TenantID]int{"a": 1, "b": 1, "c": 1}, map[string]int{"a@p": 1, "b@p": 1}},
		{"a provisioner of one tenant", []processes.Capacity{{"own", 3, "a"}, {"p", 4, ""}}, map[loom.TenantID]int{"a": 5, "b": 2},
			map[string]int{"a@own": 3, "a@p": 2, "b@p": 2}},
	} {
		got := map[string]int{}
		for _, a := range processes.DistributeWorkers(c.seats, c.wanted) {
			got[fmt.Sprintf("%s@%s", a.Tenant, a.Process)] = a.Workers
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestShareProperties(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		var seats []processes.Capacity
		wanted := map[loom.TenantID]int{}
		for i := range r.IntN(6) {
			s := processes.Capacity{Process: loom.ProcessID(fmt.Sprint("p", i)), Capacity: 1 + r.IntN(20)}
			if r.IntN(4) == 0 {
				s.Only = loom.TenantID(fmt.Sprint("t", r.IntN(4)))
			}
			seats = append(seats, s)
		}
		for i := range r.IntN(8) {
			wanted[loom.TenantID(fmt.Sprint("t", i))] = 1 + r.IntN(30)
		}
		general, total := 0, 0
		byProcess, byTenant := map[loom.ProcessID]int{}, map[loom.TenantID]int{}
		assignments := processes.DistributeWorkers(seats, wanted)
		for _, a := range assignments {
			byProcess[a.Process] += a.Workers
			byTenant[a.Tenant] += a.Workers
			for _, s := range seats {
				if s.Process == a.Process && s.Only != "" && s.Only != a.Tenant {
					t.Fatalf("%v has workers in the provisioner of %v", a.Tenant, s.Only)
				}
			}
		}
		own := map[loom.TenantID]int{}
		for _, s := range seats {
			if byProcess[s.Process] > s.Capacity {
				t.Fatalf("%s has %d of %d", s.Process, byProcess[s.Process], s.Capacity)
			}
			if s.Only == "" {
				general += s.Capacity
			} else {
				own[s.Only] += s.Capacity
			}
		}
		for tenant, n := range wanted {
			if byTenant[tenant] > n {
				t.Fatalf("%s has %d, wants %d", tenant, byTenant[tenant], n)
			}
			total += max(0, n-own[tenant])
		}
		assigned := 0
		for tenant, n := range byTenant {
			assigned += max(0, n-min(own[tenant], wanted[tenant]))
		}
		if assigned != min(total, general) {
			t.Fatalf("%d of %d assigned where %d fit: %v %v", assigned, total, general, seats, wanted)
		}
		if !reflect.DeepEqual(assignments, processes.DistributeWorkers(seats, wanted)) {
			t.Fatal("the same input gave two answers")
		}
	}
}

func tenant(t *testing.T, db *testkit.Database, id string, workers int) {
	t.Helper()
	if _, err := db.Exec(`INSERT INTO tenants (id, name, workers) VALUES ($1, $1, $2)`, id, workers); err != nil {
		t.Fatal(err)
	}
}

func TestShortageIsShownAndNeverAnError(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	ctx := context.Background()
	f := processes.New(db.DB, processes.Options{})
	tenant(t, db, "superadmin", 10)
	tenant(t, db, "demo", 90)
	super := loom.Actor{Tenant: loom.SuperTenant, User: "admin", Role: loom.RoleSuperadmin}
	if _, err := f.Reap(ctx); err != nil { // which deals
		t.Fatal(err)
	}
	s, err := f.Shortage(ctx, super)
	if err != nil || !s.Short() || s.Requested != 100 || s.Assigned != 0 || s.Capacity != 0 {
		t.Fatalf("without provisioners: %+v, %v", s, err)
	}
	if _, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 50}); err != nil {
		t.Fatal(err)
	}
	s, err = f.Shortage(ctx, super)
	want := processes.Shortage{Capacity: 50, Requested: 100, Assigned: 50, Possible: 50, Tenants: []processes.TenantWorkers{{Tenant: "demo", Requested: 90, Assigned: 45}, {Tenant: "superadmin", Requested: 10, Assigned: 5}}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Fatalf("got %+v, %v; want %+v", s, err, want)
	}
	s, err = f.Shortage(ctx, loom.Actor{Tenant: "demo", User: "u", Role: loom.RoleUser})
	if err != nil || s.Capacity != 0 || len(s.Tenants) != 1 || s.Tenants[0].Tenant != "demo" {
		t.Fatalf("a user sees %+v, %v", s, err)
	}
	if _, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1, OnlyTenant: "nobody"}); !errors.Is(err, loom.NotFound) {
		t.Errorf("a provisioner for an unknown tenant: %v", err)
	}
}

func TestLeaseIsKeptLostAndDealtAgain(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	ctx := t.Context()
	f := processes.New(db.DB, processes.Options{Lease: 5 * time.Second, RenewEvery: 20 * time.Millisecond})
	tenant(t, db, "a", 4)
	first, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan processes.Renewal, 100)
	lost := make(chan error, 1)
	go func() {
		lost <- f.HoldLease(ctx, first, nil, func() bool { return false }, func(r processes.Renewal) {
			select {
			case heard <- r:
			default:
			}
		})
	}()
	if r := <-heard; r.Workers["a"] != 2 {
		t.Errorf("the first process has %v", r.Workers)
	}
	if _, err := db.Exec(`UPDATE processes SET expires_at = now() - interval '1 second' WHERE id = $1`, second); err != nil {
		t.Fatal(err)
	}
	gone, err := f.Reap(ctx)
	if err != nil || len(gone) != 1 || gone[0].Process != second {
		t.Fatalf("reaped %v, %v", gone, err)
	}
	for deadline := time.After(10 * time.Second); ; {
		select {
		case r := <-heard:
			if r.Workers["a"] != 4 {
				continue
			}
		case <-deadline:
			t.Fatal("the workers of the lost process were not assigned again")
		}
		break
	}
	if _, err := db.Exec(`DELETE FROM processes`); err != nil {
		t.Fatal(err)
	}
	if err := <-lost; !errors.Is(err, processes.ErrLeaseLost) {
		t.Errorf("without its row: %v", err)
	}
}

func TestLeaseIsGivenUpWithoutADatabase(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	f := processes.New(db.DB, processes.Options{Lease: 400 * time.Millisecond, RenewEvery: 20 * time.Millisecond})
	id, err := f.Register(t.Context(), processes.NewProcess{Kind: loom.ProcessScheduler})
	if err != nil {
		t.Fatal(err)
	}
	// The row cannot be renewed while somebody holds it.
	tx := db.MustBegin()
	defer tx.Rollback() //nolint:errcheck // the test is over
	tx.MustExec(`SELECT 1 FROM processes WHERE id = $1 FOR UPDATE`, id)
	if err := f.HoldLease(t.Context(), id, nil, func() bool { return false }, func(processes.Renewal) { t.Error("renewed") }); !errors.Is(err, processes.ErrLeaseLost) {
		t.Errorf("it ended with %v", err)
	}
}
