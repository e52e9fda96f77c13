package clusters_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

// TestPlansAreBounded: however many services and nodes a request names, its plan is made in
// bounded memory.
func TestPlansAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := &loom.Template{Base: loom.Base{Name: "all"}, Defaults: loom.Defaults{Provider: "lab"}, Constraints: loom.Constraints{Size: loom.SizeConstraint{Min: 1, Max: 10_000}}}
	for i := range 11 {
		s := service(fmt.Sprintf("s%d", i), nil)
		b.save(b.tenant, loom.KindService, s)
		all.Defaults.Services = append(all.Defaults.Services, s.Name)
	}
	b.save(b.tenant, loom.KindTemplate, all)
	b.db.MustExec(`UPDATE tenants SET max_nodes = 1000000`)
	in := request(10_000)
	in.Template = "all"
	_, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeCreate, Create: in})
	if e := wantKind(t, err, loom.Exhausted); !strings.Contains(e.Message, "110000 services") {
		t.Errorf("a preview: %s", e.Message)
	}
	_, err = b.clusters.Create(b.ctx, b.ana(), in)
	wantKind(t, err, loom.Exhausted)
	trial, err := b.clusters.DryRunTemplate(b.ctx, b.admin(), clusters.DryRunInput{Template: "all", Machines: 10_000, From: 10_000, To: 10_000})
	if err != nil || trial.Tasks != 0 || trial.Chosen.State == clusters.SizeWorks && !strings.Contains(fmt.Sprint(trial.Warnings), "110000 services") {
		t.Errorf("a trial: %d tasks, %s, %v, %v", trial.Tasks, trial.Chosen.State, trial.Warnings, err)
	}
	check, err := b.clusters.Check(b.ctx, b.ana(), in)
	if err != nil || check.Fits || check.Tasks != 0 {
		t.Errorf("a check: %+v, %v", check, err)
	}
	in.Machines = 3
	if v := b.preview(b.ana(), in); len(v.Plan.Tasks) == 0 {
		t.Error("a preview of three nodes has no tasks")
	}
}

// TestPreviewsAreBounded: of previews that were not applied a user has 1,000, which take 64
// MiB; the newest stay, and nobody else loses one.
func TestPreviewsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, other := b.preview(b.ana(), request(3)), b.preview(b.admin(), request(3))
	copies := func(n int) {
		t.Helper()
		b.db.MustExec(`INSERT INTO previews (id, tenant_id, user_id, kind, cluster_id, hash, body, created_at, expires_at)
			SELECT gen_random_uuid(), tenant_id, user_id, kind, cluster_id, hash, body, now() + interval '1 second', expires_at FROM previews, generate_series(1, $2) WHERE id = $1`, first.ID, n)
	}
	copies(2000)
	b.preview(b.ana(), request(3))
	var kept int
	if err := b.db.Get(&kept, `SELECT count(*) FROM previews WHERE user_id = $1`, b.ana().User); err != nil || kept != 1000 {
		t.Errorf("%d previews of a user: %v", kept, err)
	}
	b.db.MustExec(`DELETE FROM previews WHERE user_id = $1`, b.ana().User)
	first = b.preview(b.ana(), request(3))
	random := make([]byte, 2<<20) // so that it does not get smaller by compression
	rand.Read(random)
	b.db.MustExec(`UPDATE previews SET body = body || jsonb_build_object('padding', $1::text)`, hex.EncodeToString(random))
	copies(40)
	last := b.preview(b.ana(), request(3))
	for _, c := range []struct {
		actor loom.Actor
		id    loom.PreviewID
		there bool
	}{{b.ana(), first.ID, false}, {b.ana(), last.ID, true}, {b.admin(), other.ID, true}} {
		if _, err := b.clusters.PreviewByID(b.ctx, c.actor, c.id); (err == nil) != c.there {
			t.Errorf("preview of %s: %v", c.actor.User, err)
		}
	}
	var bytes int
	if err := b.db.Get(&bytes, `SELECT sum(pg_column_size(body)) FROM previews WHERE user_id = $1`, b.ana().User); err != nil || bytes > 65<<20 || bytes < 40<<20 {
		t.Errorf("the previews of a user take %d bytes: %v", bytes, err)
	}
}
