package account_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/store"
)

func TestTenants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if tenants, err := b.Tenants(b.ctx, b.super); err != nil || len(tenants) != 2 {
		t.Errorf("tenants %v, %v", tenants, err)
	}
	for name, err := range map[string]error{
		"list":   func() error { _, err := b.Tenants(b.ctx, b.admin); return err }(),
		"create": func() error { _, err := b.CreateTenant(b.ctx, b.admin, account.TenantInput{Name: "x"}); return err }(),
		"other":  func() error { _, err := b.Tenant(b.ctx, b.admin, "superadmin"); return err }(),
	} {
		if !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s by a tenant's administrator: %v", name, err)
		}
	}
	if own, err := b.Tenant(b.ctx, b.user, "demo"); err != nil || own.ID != b.user.Tenant {
		t.Errorf("own tenant: %+v, %v", own, err)
	}
	if _, err := b.Tenant(b.ctx, b.super, "gone"); !errors.Is(err, loom.NotFound) {
		t.Errorf("unknown tenant: %v", err)
	}
	for want, in := range map[string]account.TenantInput{
		"name":        {Name: "a b"},
		"workers":     {Name: "x", Workers: ptr(-1)},
		"maxClusters": {Name: "x", MaxClusters: ptr(-1)},
		"maxNodes":    {Name: "x", MaxNodes: ptr(-1)},
	} {
		if _, err := b.CreateTenant(b.ctx, b.super, in); !errors.Is(err, loom.Invalid) || fieldsOf(err) != want {
			t.Errorf("%s: %v", want, err)
		}
	}

	// demo wants 100 and superadmin 1; a provisioner of 105 leaves 4.
	if _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab", Workers: ptr(1)}); !errors.Is(err, loom.Conflict) {
		t.Errorf("workers without any provisioner: %v", err)
	}
	b.exec(t, `INSERT INTO processes (id, kind, host, capacity, expires_at) VALUES ('p', 'provisioner', 'h', 105, now() + interval '1 hour'), ('dead', 'provisioner', 'h', 500, now() - interval '1 s')`)
	if _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab", Workers: ptr(5)}); !errors.Is(err, loom.Conflict) {
		t.Errorf("one worker too many: %v", err)
	}
	lab, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab", Workers: ptr(4), MaxClusters: ptr(0)})
	if err != nil || lab.MaxClusters != 0 || lab.MaxNodes != loom.Unlimited {
		t.Fatalf("lab: %+v, %v", lab, err)
	}
	if _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab"}); !errors.Is(err, loom.Conflict) {
		t.Errorf("a second lab: %v", err)
	}
	_, err = b.UpdateTenant(b.ctx, b.super, "lab", account.TenantInput{Workers: ptr(5)})
	if !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "(demo: 100, superadmin: 1); taking some") {
		t.Errorf("one more worker than there is: %v", err)
	}
	if lab, err = b.UpdateTenant(b.ctx, b.super, "lab", account.TenantInput{Workers: ptr(2), Description: ptr("d"), MaxNodes: ptr(7)}); err != nil || lab.Workers != 2 || lab.MaxClusters != 0 || lab.MaxNodes != 7 {
		t.Errorf("updated lab: %+v, %v", lab, err)
	}
	for range 2 { // what is left out stays, a zero counts
		if lab, err = b.UpdateTenant(b.ctx, b.super, "lab", account.TenantInput{MaxClusters: ptr(3)}); err != nil || lab.Workers != 2 || lab.Description != "d" || lab.MaxClusters != 3 || lab.MaxNodes != 7 {
			t.Errorf("lab after a change of one quota: %+v, %v", lab, err)
		}
	}
	if lab, err = b.UpdateTenant(b.ctx, b.super, "lab", account.TenantInput{Workers: ptr(0), Description: ptr("")}); err != nil || lab.Workers != 0 || lab.Description != "" {
		t.Errorf("emptied lab: %+v, %v", lab, err)
	}
	b.exec(t, `INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (1, $1, 'user', 'c', 'active', 't', 1, '{}', 'p', '{}', '{}'), (2, $1, 'user', 'old', 'terminated', 't', 1, '{}', 'p', '{}', '{}')`, b.user.Tenant)
	for i, state := range []string{"ready", "deleted", "planned"} {
		b.exec(t, `INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
			VALUES ($1, 1, $2, $3, $4, '', '', '', '', '', '', '{}', '{}')`, fmt.Sprintf("00000000-0000-4000-8000-00000000000%d", i), b.user.Tenant, 1000+i, state)
	}
	if use, err := b.Quota(b.ctx, b.user); err != nil || use.Clusters != 1 || use.Nodes != 2 || use.MaxNodes != loom.Unlimited {
		t.Errorf("quota %+v, %v", use, err)
	}
	for _, in := range []account.TenantInput{{Workers: ptr(1), MaxClusters: ptr(0)}, {Workers: ptr(1), MaxNodes: ptr(1)}} {
		if _, err := b.UpdateTenant(b.ctx, b.super, "demo", in); !errors.Is(err, loom.Conflict) {
			t.Errorf("a quota below what is used: %v", err)
		}
	}
	if _, err := b.UpdateTenant(b.ctx, b.super, "demo", account.TenantInput{Name: "other"}); !errors.Is(err, loom.Invalid) {
		t.Errorf("renaming: %v", err)
	}
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	b := empty(t)
	var mu sync.Mutex
	var supers []account.MadeUser
	var wg sync.WaitGroup
	for range 3 { // several processes start at once
		wg.Go(func() {
			made, err := b.EnsureSuperadmin(b.ctx)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			supers = append(supers, made...)
		})
	}
	wg.Wait()
	if len(supers) != 1 || supers[0].User != "admin" || supers[0].Role != loom.RoleSuperadmin {
		t.Fatalf("made %+v", supers)
	}

	// What the seeds and the superadmin left.
	err := store.Exec(b.ctx, b.db.DB, func(tx *sqlx.Tx) error {
		for version, text := range []string{"old", "new"} {
			p := &loom.Provider{Base: loom.Base{Name: "lab", Description: text, Version: version + 1}, Type: "cloud", Fields: map[string]any{}, Sealed: []string{"pin"}}
			if _, err := store.InsertCatalogVersion(b.ctx, tx, loom.SuperTenant, loom.KindProvider, p, "admin"); err != nil {
				return err
			}
		}
		partial := &loom.PartialTemplate{Base: loom.Base{Name: "part", Version: 7}}
		if _, err := store.InsertCatalogVersion(b.ctx, tx, loom.SuperTenant, loom.KindPartialTemplate, partial, "admin"); err != nil {
			return err
		}
		plugin := &loom.PluginType{Base: loom.Base{Name: "cloud", Version: 1}}
		if _, err := store.InsertCatalogVersion(b.ctx, tx, loom.SuperTenant, loom.KindProviderType, plugin, "admin"); err != nil {
			return err
		}
		sealed, err := b.ring.Seal(loom.SuperTenant, "provider:lab", "pin", loom.NewSecret("4711"))
		if err != nil {
			return err
		}
		if err := store.PutSecrets(b.ctx, tx, loom.SuperTenant, "provider:lab", "admin", map[string][]byte{"pin": sealed}); err != nil {
			return err
		}
		ref := loom.ResourceRef{Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "web.sh"}
		for _, r := range []loom.Resource{
			{ResourceRef: ref, Version: 2, Live: true, Format: "file", Object: "a"},
			{ResourceRef: ref, Version: 5, Slated: true, Format: "file", Object: "b"},
		} {
			if _, err := store.InsertResource(b.ctx, tx, loom.SuperTenant, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.EnsureDemo(b.ctx, 100); err == nil {
		t.Fatal("bootstrap without a bucket left resources out")
	}
	objects := &copier{}
	b.Resources = objects
	made, err := b.EnsureDemo(b.ctx, 100)
	if err != nil || len(made) != 2 || made[0].Role != loom.RoleAdmin || made[1].User != "user" {
		t.Fatalf("made %+v, %v", made, err)
	}
	if again, err := b.EnsureDemo(b.ctx, 100); err != nil || len(again) != 0 {
		t.Errorf("second start made %+v, %v", again, err)
	}
	if again, err := b.EnsureSuperadmin(b.ctx); err != nil || len(again) != 0 {
		t.Errorf("second start made %+v, %v", again, err)
	}
	for _, m := range append(supers, made...) {
		if right, err := b.PasswordUnused(b.ctx, m.Tenant, m.User, m.Password); err != nil || !right {
			t.Errorf("the password of %s/%s: %v, %v", m.Tenant, m.User, right, err)
		}
	}
	demo, err := store.TenantByNameAllTenants(b.ctx, b.db, "demo")
	if err != nil || demo.Workers != 100 || demo.ResourceSet != 1 {
		t.Fatalf("demo %+v, %v", demo, err)
	}
	p, err := store.CatalogEntry(b.ctx, b.db, demo.ID, loom.KindProvider, "lab", 0)
	if err != nil || p.Version != 1 || p.Entry.Meta().Description != "new" {
		t.Errorf("provider of demo: %+v, %v", p, err)
	}
	if _, err := store.CatalogEntry(b.ctx, b.db, demo.ID, loom.KindPartialTemplate, "part", 1); err != nil {
		t.Error(err)
	}
	if _, err := store.CatalogEntry(b.ctx, b.db, demo.ID, loom.KindProviderType, "cloud", 0); !errors.Is(err, loom.NotFound) {
		t.Errorf("plugin types are global: %v", err)
	}
	sealed, err := store.Secrets(b.ctx, b.db, demo.ID, "provider:lab")
	if err != nil {
		t.Fatal(err)
	}
	if pin, err := b.ring.Open(demo.ID, "provider:lab", "pin", sealed["pin"]); err != nil || pin.Reveal() != "4711" {
		t.Errorf("the secret of demo: %v", err)
	}
	copies, err := store.Resources(b.ctx, b.db, demo.ID, loom.ResourceRef{})
	if err != nil || len(copies) != 2 || len(objects.copied) != 2 {
		t.Fatalf("resources %+v, copied %v, %v", copies, objects.copied, err)
	}
	if copies[0].Status() != loom.ResourceInactive || copies[1].Status() != loom.ResourceActive || copies[1].Object != string(demo.ID)+"/copy of b" {
		t.Errorf("resources after the sync: %+v", copies)
	}
	next, err := store.InTx(b.ctx, b.db.DB, func(tx *sqlx.Tx) (int, error) {
		return store.NextResourceNumber(b.ctx, tx, demo.ID, copies[0].ResourceRef)
	})
	if err != nil || next != 6 {
		t.Errorf("the next version is %d, %v", next, err)
	}
	changed, err := b.SetPassword(b.ctx, "demo", "user", loom.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	old, _ := b.PasswordUnused(b.ctx, "demo", "user", made[1].Password)
	now, _ := b.PasswordUnused(b.ctx, "demo", "user", changed)
	if old || !now {
		t.Errorf("after SetPassword: old %v, new %v", old, now)
	}
	b.exec(t, `UPDATE tenants SET deleted_at = now() WHERE name = 'demo'`)
	if again, err := b.EnsureDemo(b.ctx, 100); err != nil || len(again) != 0 {
		t.Errorf("a deleted demo came back: %+v, %v", again, err)
	}
}

// copier stands for the bucket: it only names the copies.
type copier struct{ copied []string }

func (c *copier) CopyObject(_ context.Context, r loom.Resource, to loom.TenantID) (string, error) {
	c.copied = append(c.copied, r.Object)
	return string(to) + "/copy of " + r.Object, nil
}

// TestOnlyTenant: the sign-in page asks for a tenant where there are several.
func TestOnlyTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, step := range []struct {
		change func() error
		want   string
	}{
		{func() error { return nil }, "demo"},
		{func() error { _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab"}); return err }, ""},
		{func() error { return b.DeleteTenant(b.ctx, b.super, "demo") }, "lab"},
		{func() error { return b.DeleteTenant(b.ctx, b.super, "lab") }, ""},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if got, err := b.OnlyTenant(b.ctx); err != nil || got != step.want {
			t.Errorf("the only tenant is %q, %v; want %q", got, err, step.want)
		}
	}
}
