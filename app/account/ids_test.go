package account_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"loom/app/account"
	"loom/app/loom"
)

// TestIdsThatLookLikeOthers are refused, however a user is made; who is there already
// goes on.
func TestIdsThatLookLikeOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "Zoë"}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[loom.UserID]loom.Kind{
		"admin\u200b": loom.Invalid, "\u202eadmin": loom.Invalid, "ad\u00admin": loom.Invalid, "\ufeffana": loom.Invalid,
		"System": loom.Invalid, "SYSTEM": loom.Invalid, "system": loom.Invalid,
		"Admin": loom.Conflict, "ADMIN": loom.Conflict, "USER": loom.Conflict, "zoË": loom.Conflict,
	} {
		if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: id}); !errors.Is(err, want) || fieldsOf(err) != "id" {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := b.ActorByHeaders(b.ctx, account.HeaderInput{User: string(id), Tenant: "demo"}); !errors.Is(err, want) {
			t.Errorf("%q by headers: %v", id, err)
		}
	}
	b.exec(t, `INSERT INTO users (tenant_id, id) VALUES ($1, $2), ($1, 'USER')`, b.user.Tenant, "ad\u00admin")
	for _, id := range []loom.UserID{"ad\u00admin", "USER"} {
		if _, err := b.ActorByHeaders(b.ctx, account.HeaderInput{User: string(id), Tenant: "demo"}); err != nil {
			t.Errorf("%q, who was there before: %v", id, err)
		}
		if _, err := b.UpdateUser(b.ctx, b.admin, id, account.UserChange{Disabled: ptr(true)}); err != nil {
			t.Errorf("%q, who was there before, is disabled: %v", id, err)
		}
	}
}

// TestNewUsersInheritNothing: who gets the id of somebody who was deleted sees neither her
// clusters nor what she did.
func TestNewUsersInheritNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ana := b.user
	ana.User = "ana"
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.UpdateSelf(b.ctx, ana, account.SelfInput{DisplayName: ptr("the first")}); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (1, $1, 'ana', 'c', 'terminated', 't', 1, '{}', 'p', '{}', '{}')`, ana.Tenant)
	if err := b.RecordRefused(b.ctx, ana, "create", "cluster", "mine", "no"); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteUser(b.ctx, b.admin, "ana"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana"}); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM clusters WHERE owner_id = 'ana'`); n != 0 {
		t.Error("the new ana owns a cluster of the old one")
	}
	if n := b.count(t, `SELECT count(*) FROM clusters WHERE owner_id = 'ana/deleted'`); n != 1 {
		t.Error("the cluster of the old ana lost its owner")
	}
	list, err := b.Audit(b.ctx, ana, account.AuditInput{Page: loom.Page{Limit: 10}})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("the new ana did %+v, %v", list.Items, err)
	}
	past, err := b.Activity(b.ctx, ana, account.ActivityInput{Page: loom.Page{Limit: 10}})
	if err != nil || len(past.Items) != 0 {
		t.Errorf("what happened to the new ana: %+v, %v", past.Items, err)
	}
	if _, err := b.UpdateSelf(b.ctx, ana, account.SelfInput{DisplayName: ptr("the second")}); err != nil {
		t.Fatal(err)
	}
	if list, err = b.Audit(b.ctx, ana, account.AuditInput{Page: loom.Page{Limit: 10}}); err != nil || len(list.Items) != 1 {
		t.Errorf("the new ana did %+v, %v", list.Items, err)
	}
	if list, err = b.Audit(b.ctx, b.admin, account.AuditInput{Page: loom.Page{Limit: 10}, AuditFilter: account.AuditFilter{Actors: []string{"ana"}}}); err != nil || len(list.Items) != 3 {
		t.Errorf("an administrator sees of both %+v, %v", list.Items, err)
	}
}

// TestLongRefusalsAreRecorded with the beginning of what they name.
func TestLongRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	long := "tenants/" + strings.Repeat("ä", http.DefaultMaxHeaderBytes/40)
	if err := b.RecordRefused(b.ctx, b.user, "update", "tenant", long, "There is no "+long); err != nil {
		t.Fatal(err)
	}
	list, err := b.Audit(b.ctx, b.user, account.AuditInput{Page: loom.Page{Limit: 1}})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list.Items, err)
	}
	if got := list.Items[0].Object; len(got) > 310 || !utf8.ValidString(got) || !strings.HasPrefix(long, strings.TrimSuffix(got, "…")) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
