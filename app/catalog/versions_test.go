package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

// TestUnreleasedVersions: a version that is saved unreleased is what administrators see and
// nobody else, until it is released.
func TestUnreleasedVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindService, `{"name": "web", "description": "first"}`)
	saveUnreleased := func(kind loom.EntityKind, body string) error {
		_, _, err := b.Save(b.ctx, b.admin, kind, catalog.SaveInput{Entry: decode(t, kind, "%s", body), Unreleased: true})
		return err
	}
	if err := saveUnreleased(loom.KindService, `{"name": "web", "description": "second"}`); err != nil {
		t.Fatal(err)
	}
	sees := func(actor loom.Actor) string {
		t.Helper()
		entry, _, err := b.Entry(b.ctx, actor, loom.KindService, "web", 0)
		if err != nil {
			t.Fatal(err)
		}
		list, err := b.Entries(b.ctx, actor, loom.KindService, catalog.ListInput{Counted: true})
		if err != nil || len(list.Items) != 1 || list.Items[0].Entry.Meta().Description != entry.Meta().Description {
			t.Fatalf("the list of %s has %+v, %v", actor.User, list.Items, err)
		}
		return entry.Meta().Description
	}
	if admin, user := sees(b.admin), sees(b.user); admin != "second" || user != "first" {
		t.Errorf("the administrator sees %s, the user %s", admin, user)
	}
	if released, _, err := b.Released(b.ctx, b.admin, loom.KindService, "web"); err != nil || released.Meta().Description != "first" {
		t.Errorf("released is %+v, %v", released, err)
	}
	if _, _, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 2); !errors.Is(err, loom.NotFound) {
		t.Errorf("a user reads an unreleased version: %v", err)
	}
	infos, err := b.Versions(b.ctx, b.user, loom.KindService, "web")
	if err != nil || len(infos) != 1 || infos[0].Version != 1 || !infos[0].Released {
		t.Errorf("a user gets the versions %+v, %v", infos, err)
	}
	if infos, err = b.Versions(b.ctx, b.admin, loom.KindService, "web"); err != nil || len(infos) != 2 || infos[0].Released {
		t.Errorf("an administrator gets the versions %+v, %v", infos, err)
	}
	if err := b.ReleaseVersion(b.ctx, b.user, loom.KindService, "web", 2, true); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user releases: %v", err)
	}
	for range 2 { // the second time changes nothing
		if err := b.ReleaseVersion(b.ctx, b.admin, loom.KindService, "web", 2, true); err != nil {
			t.Fatal(err)
		}
	}
	if user := sees(b.user); user != "second" {
		t.Errorf("after the release the user sees %s", user)
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE tenant_id = 't-1' AND verb = 'release' AND object = 'web'`); n != 1 {
		t.Errorf("%d audit rows of the release, want 1", n)
	}
	if err := b.ReleaseVersion(b.ctx, b.admin, loom.KindService, "web", 3, true); !errors.Is(err, loom.NotFound) {
		t.Errorf("releasing a version that does not exist: %v", err)
	}
	err = saveUnreleased(loom.KindProvider, `{"name": "lab", "providertype": "fake"}`)
	if e := loom.AsError(err); e == nil || len(e.Fields) != 1 || e.Fields[0].Field != "release" {
		t.Errorf("an unreleased provider: %v", err)
	}
}

// TestImportsAreReleased: an import releases what it brings, even where the newest version that
// is not released says the same.
func TestImportsAreReleased(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entry := decode(t, loom.KindService, `{"name": "web"}`)
	if _, _, err := b.Save(b.ctx, b.admin, loom.KindService, catalog.SaveInput{Entry: entry, Unreleased: true}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 0); !errors.Is(err, loom.NotFound) {
		t.Fatalf("a user sees an entry without a released version: %v", err)
	}
	bundle := catalog.Bundle{Entries: map[loom.EntityKind][]loom.Entry{loom.KindService: {entry}}}
	if _, err := b.Import(b.ctx, b.admin, bundle, catalog.Merge); err != nil {
		t.Fatal(err)
	}
	if _, info, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 0); err != nil || info.Version != 2 {
		t.Errorf("after the import: version %d, %v", info.Version, err)
	}
}

// TestWithdraw: a version is withdrawn, unless it is the only released one of what others name.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindService, `{"name": "web", "description": "first"}`)
	b.save(t, b.admin, loom.KindService, `{"name": "web", "description": "second"}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name": "site", "defaults": {"services": ["web"]}}`)
	if err := b.ReleaseVersion(b.ctx, b.admin, loom.KindService, "web", 2, false); err != nil {
		t.Fatal(err)
	}
	if entry, _, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 0); err != nil || entry.Meta().Description != "first" {
		t.Errorf("after the withdrawal: %+v, %v", entry, err)
	}
	err := b.ReleaseVersion(b.ctx, b.admin, loom.KindService, "web", 1, false)
	if !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "template “site”") {
		t.Errorf("withdrawing the only released version: %v", err)
	}
	if err := b.ReleaseVersion(b.ctx, b.admin, loom.KindTemplate, "site", 1, false); err != nil {
		t.Errorf("withdrawing a template that nothing names: %v", err)
	}
	if err := b.ReleaseVersion(b.ctx, b.admin, loom.KindService, "web", 1, false); err != nil {
		t.Errorf("withdrawing what only a withdrawn template names: %v", err)
	}
}

// TestDeprecateVersion: a version carries a message of at most 500 characters.
func TestDeprecateVersion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindService, `{"name": "web"}`)
	deprecation := func() string {
		t.Helper()
		infos, err := b.Versions(b.ctx, b.user, loom.KindService, "web")
		if err != nil || len(infos) != 1 {
			t.Fatal(infos, err)
		}
		return infos[0].Deprecation
	}
	for _, message := range []string{"  Loses data. Update today. ", ""} {
		if err := b.DeprecateVersion(b.ctx, b.admin, loom.KindService, "web", 1, message); err != nil {
			t.Fatal(err)
		}
		if got, want := deprecation(), strings.TrimSpace(message); got != want {
			t.Errorf("the message is “%s”, want “%s”", got, want)
		}
	}
	for _, bad := range []string{strings.Repeat("ü", 501), "a\x00b"} {
		err := b.DeprecateVersion(b.ctx, b.admin, loom.KindService, "web", 1, bad)
		if e := loom.AsError(err); e == nil || !slices.ContainsFunc(e.Fields, func(f loom.FieldError) bool { return f.Field == "message" }) {
			t.Errorf("a bad message: %v", err)
		}
	}
	if err := b.DeprecateVersion(b.ctx, b.user, loom.KindService, "web", 1, "x"); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user deprecates: %v", err)
	}
	if got := deprecation(); got != "" {
		t.Errorf("refused messages left “%s”", got)
	}
}
