package page

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
	"loom/views/layout"
)

func TestConditionTexts(t *testing.T) {
	t.Parallel()
	good := store.Condition{Writable: true, Schedulers: 1, Provisioners: 2, Late: 3}
	with := func(change func(*store.Condition)) processes.Condition {
		c := good
		change(&c)
		return processes.Condition{Condition: c}
	}
	for name, c := range map[string]struct {
		is      processes.Condition
		err     error
		young   bool
		phrases []string
	}{
		"all is well":        {is: processes.Condition{Condition: good, Answer: 20 * time.Millisecond}},
		"no answer":          {is: processes.Condition{Condition: good}, err: errors.New("timeout"), phrases: []string{"database is slow"}},
		"a standby":          {is: with(func(c *store.Condition) { c.Writable = false; c.Schedulers = 0 }), phrases: []string{"read-only"}},
		"a slow answer":      {is: processes.Condition{Condition: good, Answer: 2 * time.Second}, phrases: []string{"answers slowly (2 s)"}},
		"no scheduler":       {is: with(func(c *store.Condition) { c.Schedulers = 0; c.Late = 900 }), phrases: []string{"No scheduler"}},
		"late work":          {is: with(func(c *store.Condition) { c.Late = 125.5 }), phrases: []string{"late by 2 min 5 s"}},
		"no provisioner":     {is: with(func(c *store.Condition) { c.Provisioners = 0 }), phrases: []string{"No provisioner"}},
		"nobody":             {is: with(func(c *store.Condition) { c.Provisioners = 0; c.Schedulers = 0 }), phrases: []string{"No scheduler", "No provisioner"}},
		"nobody came so far": {is: with(func(c *store.Condition) { c.Provisioners = 0; c.Schedulers = 0 }), young: true},
	} {
		found := conditionTexts(c.is, c.err, !c.young)
		if len(found) != len(c.phrases) {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		for i, phrase := range c.phrases {
			if !strings.Contains(found[i].Text, phrase) || found[i].Key != "" {
				t.Errorf("%s: %+v", name, found[i])
			}
		}
	}
}

// Many pages ask once in ten seconds; only superadmins are led to the status.
func TestConditionIsAskedNowAndThen(t *testing.T) {
	t.Parallel()
	asked, now := 0, time.Unix(1_000_000, 0)
	s := &Shared{Now: func() time.Time { return now }}
	s.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	s.Condition = func(context.Context) (processes.Condition, error) {
		asked++
		return processes.Condition{}, errors.New("no answer")
	}
	look := func(role loom.Role) layout.Model {
		var m layout.Model
		tenant := loom.TenantID("t1")
		if role == loom.RoleSuperadmin {
			tenant = loom.SuperTenant
		}
		s.conditionBanners(httptest.NewRequest("GET", "/", nil), loom.Actor{Tenant: tenant, User: "ana", Role: role, Via: "session"}, &m)
		return m
	}
	for range 5 {
		if m := look(loom.RoleUser); len(m.Banners) != 1 || m.Banners[0].ActionHref != "" {
			t.Fatalf("a user sees %+v", m.Banners)
		}
	}
	if m := look(loom.RoleSuperadmin); asked != 1 || len(m.Banners) != 1 || m.Banners[0].ActionHref != "/system/status" {
		t.Errorf("asked %d times; a superadmin sees %+v", asked, m.Banners)
	}
	var stranger layout.Model
	now = now.Add(11 * time.Second)
	s.conditionBanners(httptest.NewRequest("GET", "/docs/api", nil), loom.Actor{}, &stranger)
	if asked != 1 || len(stranger.Banners) != 0 {
		t.Errorf("asked %d times; a stranger sees %+v", asked, stranger.Banners)
	}
	if look(loom.RoleUser); asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// TestWhoLeavesTellsNothing: that somebody does not wait for his page says nothing about the
// database.
func TestWhoLeavesTellsNothing(t *testing.T) {
	t.Parallel()
	s := &Shared{Now: time.Now}
	s.Log = slog.New(slog.DiscardHandler)
	s.Condition = func(ctx context.Context) (processes.Condition, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the question has no limit")
		}
		return processes.Condition{Condition: store.Condition{Writable: true, Schedulers: 1, Provisioners: 1}}, ctx.Err()
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, ctx := range []context.Context{gone, t.Context()} {
		var m layout.Model
		s.conditionBanners(httptest.NewRequestWithContext(ctx, "GET", "/", nil), loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleUser}, &m)
		if len(m.Banners) != 0 {
			t.Errorf("banners %+v", m.Banners)
		}
	}
}
