package account_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// A draft belongs to one user and one subject, is sealed, and ends.
func TestDrafts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const marker = "planted-draft-text"
	values := map[string][]string{"body": {marker}, "services": {"a", "b"}}
	save := func(actor loom.Actor, subject string, values map[string][]string) {
		t.Helper()
		if err := b.SaveDraft(b.ctx, actor, subject, values); err != nil {
			t.Fatal(err)
		}
	}
	save(b.user, "x", map[string][]string{"body": {"first"}})
	save(b.user, "x", values)
	got, err := b.Draft(b.ctx, b.user, "x")
	if err != nil || !reflect.DeepEqual(got.Values, values) || time.Since(got.Saved).Abs() > time.Hour {
		t.Errorf("the draft is %+v (%v)", got, err)
	}
	other := b.user
	other.Tenant = loom.SuperTenant
	for _, stranger := range []struct {
		actor   loom.Actor
		subject string
	}{{b.admin, "x"}, {other, "x"}, {b.user, "y"}, {loom.Actor{Tenant: b.user.Tenant, User: "user:x"}, ""}} {
		if d, err := b.Draft(b.ctx, stranger.actor, stranger.subject); !errors.Is(err, loom.NotFound) {
			t.Errorf("%s reads %+v (%v)", stranger.actor.User, d, err)
		}
	}
	var plain int
	if err := b.db.GetContext(b.ctx, &plain, `SELECT count(*) FROM secrets WHERE position($1::bytea IN sealed) > 0`, []byte(marker)); err != nil || plain != 0 {
		t.Errorf("%d drafts hold their text in plain (%v)", plain, err)
	}

	if err := b.SaveDraft(b.ctx, b.user, "x", map[string][]string{"body": {strings.Repeat("x", 600<<10)}}); !errors.Is(err, loom.Invalid) {
		t.Errorf("a draft without end: %v", err)
	}
	if err := b.DropDraft(b.ctx, b.user, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Draft(b.ctx, b.user, "x"); !errors.Is(err, loom.NotFound) {
		t.Errorf("what was dropped: %v", err)
	}
	if err := b.DropDraft(b.ctx, b.user, "x"); err != nil {
		t.Errorf("dropping what is not there: %v", err)
	}

	// Old ones are not shown, and deleted in time; other secrets stay.
	save(b.user, "old", values)
	save(b.user, "young", values)
	b.exec(t, `INSERT INTO secrets (tenant_id, entity, field, sealed, updated_at) VALUES ($1, 'provider:p', 'f', 'x', now() - interval '1 year')`, b.user.Tenant)
	b.exec(t, `UPDATE secrets SET updated_at = now() - interval '8 days' WHERE entity = $1`, store.DraftEntity(b.user.User, "old"))
	if _, err := b.Draft(b.ctx, b.user, "old"); !errors.Is(err, loom.NotFound) {
		t.Errorf("a draft of last week: %v", err)
	}
	if err := store.Exec(b.ctx, b.db.DB, func(tx *sqlx.Tx) error { return store.TrimDraftsAllTenants(b.ctx, tx, loom.DraftLife) }); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := b.db.SelectContext(b.ctx, &left, `SELECT entity FROM secrets WHERE tenant_id = $1 ORDER BY entity`, b.user.Tenant); err != nil {
		t.Fatal(err)
	}
	if want := []string{store.DraftEntity(b.user.User, "young"), "provider:p"}; !reflect.DeepEqual(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}
