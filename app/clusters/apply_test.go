package clusters_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

func applyOf(v clusters.PreviewView) clusters.ApplyInput {
	return clusters.ApplyInput{ID: v.ID, Hash: v.Hash}
}

func TestApplyExecutesExactlyThePreview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := request(3)
	in.Config = map[string]any{"big": json.Number("12345678901234567890"), "exp": json.Number("1e2"), "f": 0.1, "t": "ä\u2028<&>"}
	v := b.preview(b.ana(), in)
	if len(v.Nodes) != 3 || len(v.Plan.Tasks) == 0 || v.After.Nodes != v.Before.Nodes+3 || len(v.Changes) == 0 {
		t.Fatalf("%+v", v)
	}
	if !strings.Contains(v.Summary(), "Creates 3 nodes, installs 3 services, runs") {
		t.Errorf("summary %q", v.Summary())
	}
	again, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
	if err != nil || again.Hash != v.Hash || !reflect.DeepEqual(again.Plan, v.Plan) {
		t.Fatalf("read again: hash %s, %v", again.Hash, err)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	if ref.Cluster != v.Cluster || ref.Number != 1 {
		t.Errorf("operation %v, reserved cluster %v", ref, v.Cluster)
	}
	plan, tasks, err := b.clusters.PlanOf(b.ctx, b.ana(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plan, v.Plan) {
		t.Errorf("stored plan differs from the preview:\n%+v\n%+v", plan, v.Plan)
	}
	cluster, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range cluster.Nodes {
		if n.ID != v.Nodes[i].ID || n.Hostname != v.Nodes[i].Hostname {
			t.Errorf("node %d is %s %s, previewed %s %s", i, n.ID, n.Hostname, v.Nodes[i].ID, v.Nodes[i].Hostname)
		}
	}
	if cluster.Config["big"] != json.Number("12345678901234567890") || cluster.Config["t"] != "ä\u2028<&>" {
		t.Errorf("config %v", cluster.Config)
	}
	for _, o := range planner.Dependencies(v.Plan) {
		if o.DependsOn == nil {
			t.Error("no dependencies")
		}
	}
	for n, task := range tasks {
		if task.Ref.Number != n || task.NodeHostname == "" {
			t.Errorf("task %d: %+v", n, task)
		}
	}
	// The preview names what became of it.
	done, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
	if err != nil || done.Applied != ref {
		t.Errorf("applied %v, %v", done.Applied, err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, ref.String()) {
		t.Errorf("message %q", e.Message)
	}
	wantKind(t, b.clusters.Discard(b.ctx, b.ana(), v.ID), loom.NotFound)
}

// Twenty at once: one wins, nineteen hear which operation it became.
func TestApplyAtMostOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.preview(b.ana(), request(3))
	var wins, conflicts int
	for _, err := range together(20, func(int) error {
		_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
		return err
	}) {
		switch {
		case err == nil:
			wins++
		case errors.Is(err, loom.Conflict) && strings.Contains(err.Error(), v.Cluster.String()+"-001"):
			conflicts++
		default:
			t.Error(err)
		}
	}
	if wins != 1 || conflicts != 19 {
		t.Errorf("%d applied, %d conflicts", wins, conflicts)
	}
	if c, o, n := b.count(`SELECT count(*) FROM clusters`), b.count(`SELECT count(*) FROM operations`), b.count(`SELECT count(*) FROM nodes`); c != 1 || o != 1 || n != 3 {
		t.Errorf("%d clusters, %d operations, %d nodes", c, o, n)
	}
}

// together runs fn n times at once and gives the errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs[i] = fn(i) })
	}
	wait.Wait()
	return errs
}

func TestDeletePreviewAppliesAtMostOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: ref.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Plan.Tasks) != 2 || v.After.Clusters != v.Before.Clusters-1 || !strings.HasPrefix(v.Summary(), "Deletes 2 nodes") {
		t.Fatalf("%+v", v)
	}
	wins := 0
	for _, err := range together(20, func(int) error {
		_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
		return err
	}) {
		if err == nil {
			wins++
		} else if !errors.Is(err, loom.Conflict) {
			t.Error(err)
		}
	}
	if wins != 1 || b.count(`SELECT count(*) FROM operations WHERE action = 'cluster_delete'`) != 1 {
		t.Errorf("%d applied", wins)
	}
}

func TestApplyIsRefusedWhenTheCatalogMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		name   string
		change func()
		says   string
	}{
		{"service", func() { b.save(b.tenant, loom.KindService, service("base", nil)) }, "The service “base” is now version 2, not 1."},
		{"provider type", func() { b.save(loom.SuperTenant, loom.KindProviderType, labType()) }, "provider type “lab”"},
		{"template", func() { b.save(b.tenant, loom.KindTemplate, siteTemplate()) }, "template “site”"},
	} {
		v := b.preview(b.ana(), request(3))
		c.change()
		_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
		e := wantKind(t, err, loom.Conflict)
		if !strings.Contains(e.Message, c.says) || e.Preview == "" || e.Preview == v.ID {
			t.Fatalf("%s: %q, preview %q", c.name, e.Message, e.Preview)
		}
		if b.count(`SELECT count(*) FROM clusters WHERE id = $1`, int64(v.Cluster)) != 0 {
			t.Errorf("%s: a cluster was made", c.name)
		}
		fresh, err := b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(fresh)); err != nil {
			t.Errorf("%s: the fresh preview: %v", c.name, err)
		}
	}
	// Something the preview does not use may change freely.
	v := b.preview(b.ana(), request(3))
	b.save(b.tenant, loom.KindService, service("cache", nil))
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Error(err)
	}
	// What became impossible says so.
	v = b.preview(b.ana(), request(3))
	strict := siteTemplate()
	strict.Constraints.Size.Max = 2
	b.save(b.tenant, loom.KindTemplate, strict)
	_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if e := wantKind(t, err, loom.Conflict); e.Preview != "" || e.Unsat == nil || !strings.Contains(e.Message, "cannot be done any more") {
		t.Errorf("%q, preview %q", e.Message, e.Preview)
	}
}

func TestApplyOfADeleteIsRefusedWhenTheClusterMoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: ref.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	text := "moved"
	if _, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &text}); err != nil {
		t.Fatal(err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if e := wantKind(t, err, loom.Conflict); e.Preview == "" || !strings.Contains(e.Message, "The cluster changed") {
		t.Errorf("%q, preview %q", e.Message, e.Preview)
	}
}

func TestPreviewExpires(t *testing.T) {
	t.Parallel()
	b := setupWith(t, clusters.Options{PreviewLife: time.Millisecond})
	v := b.preview(b.ana(), request(3))
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
		if errors.Is(err, loom.NotFound) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("still there: %v", err)
		}
	}
	_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.NotFound)
	wantKind(t, b.clusters.Discard(b.ctx, b.ana(), v.ID), loom.NotFound)
}

func TestExpiredPreviewsAreTrimmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kept, gone := b.preview(b.ana(), request(2)), b.preview(b.ana(), request(3))
	b.db.MustExec(`UPDATE previews SET expires_at = now() - interval '2 days' WHERE id = $1`, gone.ID)
	trimmed, err := store.InTx(b.ctx, b.db.DB, func(tx *sqlx.Tx) (int64, error) {
		return store.TrimPreviewsAllTenants(b.ctx, tx, 24*time.Hour)
	})
	if err != nil || trimmed != 1 {
		t.Errorf("%d trimmed, %v", trimmed, err)
	}
	if _, err := b.clusters.PreviewByID(b.ctx, b.ana(), kept.ID); err != nil {
		t.Error(err)
	}
}

// TestPreviewsOfAUserAreBounded: however many previews somebody makes, few stay on the disk,
// the newest of them, and nobody else loses one.
func TestPreviewsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ben := b.actor("ben", loom.RoleUser)
	first, foreign := b.preview(b.ana(), request(2)), b.preview(ben, request(2))
	copies := func(n int, body string) {
		b.db.MustExec(`INSERT INTO previews (id, tenant_id, user_id, kind, cluster_id, hash, body, expires_at)
			SELECT gen_random_uuid(), tenant_id, user_id, kind, cluster_id, hash, `+body+`, expires_at FROM previews, generate_series(1, $2) WHERE id = $1`, first.ID, n)
	}
	kept := func() (n, bytes int) {
		if err := b.db.DB.QueryRowx(`SELECT count(*), sum(pg_column_size(body)) FROM previews WHERE user_id = $1`, b.ana().User).Scan(&n, &bytes); err != nil {
			t.Fatal(err)
		}
		return n, bytes
	}
	copies(2000, `body`)
	last := b.preview(b.ana(), request(3))
	if n, _ := kept(); n != 1000 {
		t.Errorf("%d previews are kept", n)
	}
	b.db.MustExec(`DELETE FROM previews WHERE user_id = $1 AND id <> $2`, b.ana().User, last.ID)
	b.db.MustExec(`UPDATE previews SET created_at = now() - interval '1 minute' WHERE id = $1`, last.ID)
	first = last
	copies(20, `to_jsonb((SELECT string_agg(md5(random()::text || i), '') FROM generate_series(1, 1 << 17) i))`)
	last = b.preview(b.ana(), request(3))
	if n, bytes := kept(); n < 2 || bytes > 40<<20 {
		t.Errorf("%d previews of %d bytes are kept", n, bytes)
	}
	for who, v := range map[*loom.Actor]clusters.PreviewView{new(b.ana()): last, new(ben): foreign} {
		if _, err := b.clusters.PreviewByID(b.ctx, *who, v.ID); err != nil {
			t.Errorf("a preview of %s: %v", who.User, err)
		}
	}
}

func TestDiscardAndWrongHash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.preview(b.ana(), request(3))
	_, err := b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: "other"})
	wantKind(t, err, loom.Conflict)
	_, err = b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID})
	wantKind(t, err, loom.Invalid)
	_, err = b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: "not-a-uuid", Hash: v.Hash})
	wantKind(t, err, loom.NotFound)
	if err := b.clusters.Discard(b.ctx, b.ana(), v.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.NotFound)
	_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: "dance"})
	wantKind(t, err, loom.Invalid)
	// A body that was tampered with is not executed.
	v = b.preview(b.ana(), request(3))
	b.db.MustExec(`UPDATE previews SET body = jsonb_set(body, '{new,lease}', '5') WHERE id = $1`, v.ID)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Conflict)
}

// Previews of a release that stored them otherwise are gone.
func TestPreviewsOfAnotherRelease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{`{"create": {"input": {"Name": "web"}, "nodes": []}}`, `{"live": {"kind": "start"}}`, `{}`, `{"kind": "create", "services": 5}`} {
		v := b.preview(b.ana(), request(3))
		b.db.MustExec(`UPDATE previews SET body = $2 WHERE id = $1`, v.ID, body)
		_, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
		wantKind(t, err, loom.NotFound)
		_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
		wantKind(t, err, loom.NotFound)
		if message := loom.AsError(err).Message; !strings.Contains(message, "expired; compute it again") {
			t.Errorf("%s: %q", body, message)
		}
	}
}

// Room for one more cluster, asked for twice at once, by both ways.
func TestQuotaRace(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{`max_clusters = 3`, `max_nodes = 8`} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create(b.ana(), 3)
			b.create(b.ana(), 2)
			v := b.preview(b.ana(), request(3))
			b.db.MustExec(`UPDATE tenants SET `+limit+` WHERE id = $1`, b.tenant)
			wins := 0
			for _, err := range together(6, func(i int) error {
				if i == 0 {
					_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
					return err
				}
				_, err := b.clusters.Create(b.ctx, b.ana(), request(3))
				return err
			}) {
				if err == nil {
					wins++
				} else if !errors.Is(err, loom.Exhausted) {
					t.Error(err)
				}
			}
			if wins != 1 || b.count(`SELECT count(*) FROM clusters`) != 3 {
				t.Errorf("%d passed, %d clusters", wins, b.count(`SELECT count(*) FROM clusters`))
			}
		})
	}
}

func TestDeleteByState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		status loom.ClusterStatus
		ok     bool
	}{
		{loom.ClusterPending, false}, {loom.ClusterActive, true}, {loom.ClusterIncomplete, true},
		{loom.ClusterInconsistent, true}, {loom.ClusterTerminated, true},
	} {
		ref := b.create(b.ana(), 2)
		if c.status != loom.ClusterPending {
			b.finish(ref.Cluster, c.status)
		}
		deleted, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{ProviderFields: map[string]any{"token": "t", "zone": "b"}})
		if !c.ok {
			wantKind(t, err, loom.Conflict)
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", c.status, err)
		}
		if c.status == loom.ClusterTerminated {
			if deleted != (loom.OperationRef{}) {
				t.Errorf("a terminated cluster was deleted by %v", deleted)
			}
			continue
		}
		if deleted.Number != 2 {
			t.Errorf("%s: operation %v", c.status, deleted)
		}
		v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
		if err != nil || v.Status != loom.ClusterPending || v.Latest.Action != loom.ClusterDelete || v.Provider.Fields["zone"] != "b" {
			t.Errorf("%s: %s %+v %v", c.status, v.Status, v.Latest, err)
		}
		// The key pair stays beside what the request brought.
		if n := b.count(`SELECT count(*) FROM secrets WHERE entity = $1`, "cluster:"+ref.Cluster.String()); n != 3 {
			t.Errorf("%d secrets", n)
		}
	}
	// Protected.
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	on := true
	if _, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Protected: &on}); err != nil {
		t.Fatal(err)
	}
	_, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
	if e := wantKind(t, err, loom.Conflict); !strings.Contains(e.Message, "protected") {
		t.Error(e.Message)
	}
	// A delete that failed leaves some nodes; those that are gone are not deleted again.
	off := false
	if _, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Protected: &off}); err != nil {
		t.Fatal(err)
	}
	b.db.MustExec(`UPDATE nodes SET state = 'deleted' WHERE cluster_id = $1 AND number = 1000`, int64(ref.Cluster))
	op, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := b.clusters.Tasks(b.ctx, b.ana(), op, clusters.TaskFilter{})
	if err != nil || len(tasks) != 1 || tasks[0].NodeNumber != 1001 {
		t.Errorf("%+v, %v", tasks, err)
	}
	// With no machine left the plan is empty, and its end is due at once.
	b.finish(ref.Cluster, loom.ClusterIncomplete)
	b.db.MustExec(`UPDATE nodes SET state = 'deleted' WHERE cluster_id = $1`, int64(ref.Cluster))
	op, err = b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
	if err != nil || b.count(`SELECT count(*) FROM river_job WHERE kind = 'end_operation'`) != 1 {
		t.Errorf("%v, %v", op, err)
	}
}
