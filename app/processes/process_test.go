package processes_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

var super = loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin}

func TestDrainAndResume(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	ctx := t.Context()
	f := processes.New(db.DB, processes.Options{Lease: 10 * time.Second, RenewEvery: 20 * time.Millisecond})
	tenant(t, db, "a", 6)
	first, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 4})
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Drain(ctx, super, first)
	if err != nil || !p.Draining || len(p.Assigned) != 0 || p.Free() != 4 || p.LastSeen.IsZero() || p.LastSeen.After(p.Expires) {
		t.Fatalf("drained %+v, %v", p, err)
	}
	if p, err := f.One(ctx, super, loom.ProcessProvisioner, second); err != nil || p.Assigned["a"] != 4 || p.Draining {
		t.Errorf("the other has %+v, %v", p, err)
	}
	// Renewals, by which a process says that it does not drain of its own accord,
	// change nothing, and it learns that it has no workers.
	heard := make(chan processes.Renewal, 100)
	go func() {
		f.HoldLease(ctx, first, nil, func() bool { return false }, func(r processes.Renewal) { //nolint:errcheck // ends with the test
			select {
			case heard <- r:
			default:
			}
		})
	}()
	for range 3 {
		if r := <-heard; len(r.Workers) != 0 {
			t.Fatalf("a drained process has workers %v", r.Workers)
		}
	}
	if _, err := f.Reap(ctx); err != nil { // which deals
		t.Fatal(err)
	}
	if p, err := f.One(ctx, super, "", first); err != nil || !p.Draining || p.Ending || len(p.Assigned) != 0 {
		t.Errorf("assigned again: %+v, %v", p, err)
	}
	s, err := f.Shortage(ctx, super)
	if err != nil || s.Assigned != 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if p, err := f.Resume(ctx, super, first); err != nil || p.Draining || p.Assigned["a"] != 3 {
		t.Errorf("resumed %+v, %v", p, err)
	}
	for (<-heard).Workers["a"] != 3 { // it hears of it
	}
	// A process that ends does not come back.
	if _, err := db.Exec(`UPDATE processes SET draining = true WHERE id = $1`, second); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Resume(ctx, super, second); !errors.Is(err, loom.Conflict) {
		t.Errorf("an ending process goes on: %v", err)
	}
	for _, call := range []func() error{
		func() error { _, err := f.List(ctx, loom.Actor{Tenant: "a", Role: loom.RoleAdmin}, ""); return err },
		func() error {
			_, err := f.One(ctx, loom.Actor{Tenant: "a", Role: loom.RoleAdmin}, "", first)
			return err
		},
		func() error { _, err := f.Drain(ctx, loom.Actor{Tenant: "a", Role: loom.RoleAdmin}, first); return err },
		func() error {
			_, err := f.Drain(ctx, loom.Actor{Tenant: loom.SuperTenant, Role: loom.RoleSuperadmin, Scopes: []loom.Scope{loom.ScopeRead}}, first)
			return err
		},
	} {
		if err := call(); !errors.Is(err, loom.Forbidden) {
			t.Errorf("others: %v", err)
		}
	}
	if _, err := f.Drain(ctx, super, "nobody"); !errors.Is(err, loom.NotFound) {
		t.Errorf("nobody: %v", err)
	}
}

func TestUsageIntervals(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	tenant(t, db, "a", 0)
	db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (1, 'a', 'ana', 'c', 'active', 't', 1, '{}', 'p', '{}', '{}')`)
	db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 1, 1, 'cluster_create', 'complete', 'ana')`)
	db.MustExec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, ended_at)
		VALUES (1, 'a', 1, 1, gen_random_uuid(), 'create', 'complete', '2023-12-31 23:00Z')`)
	f := processes.New(db.DB, processes.Options{})
	at := func(text string) *int64 {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		n := parsed.Unix()
		return &n
	}
	for group, want := range map[string]string{
		"":     "2024-03-30T12:00:00Z=60 ",
		"hour": "",                                                                         // counted below
		"day":  "2024-03-30T12:00:00Z=12 2024-03-31T00:00:00Z=24 2024-04-01T00:00:00Z=24 ", // a day of 23 h in Europe
		"week": "2024-03-30T12:00:00Z=60 ",
		// Both began on day 19,800 since 1970, which is 12 days before.
		"month": "2024-03-30T12:00:00Z=60 ",
		"year":  "2024-03-30T12:00:00Z=60 ",
	} {
		u, err := f.Usage(t.Context(), super, processes.UsageInput{Start: at("2024-03-30T12:00:00Z"), End: at("2024-04-02T00:00:00Z"), GroupBy: group, TimeUnit: "Hours"})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, item := range u.Items {
			got += fmt.Sprintf("%s=%s ", time.Unix(item.Time, 0).UTC().Format(time.RFC3339), item.Value)
		}
		if want != "" && got != want || group == "hour" && (len(u.Items) != 60 || u.Items[59].Value != "1") {
			t.Errorf("by %q: %s", group, got)
		}
	}
	u, err := f.Usage(t.Context(), super, processes.UsageInput{End: at("2024-01-01T01:00:00Z"), GroupBy: "day", TimeUnit: "nanoseconds"})
	if err != nil || u.Start != *at("2023-12-31T23:00:00Z") || len(u.Items) != 2 || u.Items[1].Value != "3600000000000" {
		t.Errorf("%+v, %v", u, err)
	}
	// An end before the first use is an empty interval there, not an error.
	u, err = f.Usage(t.Context(), super, processes.UsageInput{End: at("2020-01-01T00:00:00Z")})
	if err != nil || len(u.Items) != 1 || u.Items[0].Value != "0" || u.Start != u.End {
		t.Errorf("%+v, %v", u, err)
	}
	for _, in := range []processes.UsageInput{{GroupBy: "hour", Start: new(int64)}, {GroupBy: "minute"}, {TimeUnit: "ages"}, {Split: "size"}, {Start: at("2024-01-01T00:00:00Z"), End: new(int64)}} {
		if _, err := f.Usage(t.Context(), super, in); !errors.Is(err, loom.Invalid) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}
