package clusters_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

func (b *bundle) release(kind loom.EntityKind, name string, version int, released bool) {
	b.t.Helper()
	b.exec(func(tx *sqlx.Tx) error {
		_, err := store.SetReleased(b.ctx, tx, b.tenant, kind, name, version, released)
		return err
	})
}

// TestOnlyReleasedVersions: clusters are made of and brought to the newest released versions; an
// administrator may create one from a template that is not released, and users may not.
func TestOnlyReleasedVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	template, web, _, _, _ := b.copies(id)
	b.moveCatalog()
	b.release(loom.KindTemplate, "site", template+1, false)
	b.release(loom.KindService, "web", web+1, false)
	newer, err := b.clusters.Newer(b.ctx, b.ana(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range newer {
		if e.Kind == loom.KindTemplate || e.Name == "web" {
			t.Errorf("an update would bring %s %d", e.Name, e.To)
		}
	}
	_, err = b.begin(loom.ChangeUpdate, id, clusters.ChangeInput{Entries: []store.EntryVersion{{Kind: loom.KindService, Name: "web", Version: web + 1}}})
	wantKind(t, err, loom.NotFound)

	in := request(3)
	in.Name, in.TemplateVersion = "early", template+1
	_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
	wantKind(t, err, loom.Forbidden)
	v, err := b.clusters.Preview(b.ctx, b.admin(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := b.clusters.Apply(b.ctx, b.admin(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash})
	if err != nil {
		t.Fatal(err)
	}
	if made, of, _, _, _ := b.copies(ref.Cluster); made != template+1 || of != web {
		t.Errorf("made from template version %d and web %d, want %d and %d", made, of, template+1, web)
	}
	in.Name, in.TemplateVersion = "never", 99
	_, err = b.clusters.Create(b.ctx, b.admin(), in)
	wantKind(t, err, loom.NotFound)
}

// TestWithdrawnVersionsAreStale: a preview of a version that has been withdrawn since is not applied.
func TestWithdrawnVersionsAreStale(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	_, web, _, _, _ := b.copies(id)
	b.renew("web")
	v := b.previewOf(loom.ChangeUpdate, id, clusters.ChangeInput{})
	b.release(loom.KindService, "web", web+1, false)
	_, err := b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: v.Hash})
	wantKind(t, err, loom.Conflict)
	if err := says(err, "deleted or withdrawn"); err != nil {
		t.Error(err)
	}
}
