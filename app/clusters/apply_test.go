package clusters_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
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
	if e := wantKind(t, err, loom.Conflict); e.Preview != "" || e.Unsat == nil || !strings.Contains(e.Message, "no longer possible") {
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

// TestApplyUnsavedAppliesThePreview: the hash of a preview applies exactly that preview, for the user who
// saw it. Otherwise a preview is saved and nothing begins.
func TestApplyUnsavedAppliesThePreview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	in := clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: id}
	shown := func(actor loom.Actor) string {
		t.Helper()
		v, err := b.clusters.PreviewUnsaved(b.ctx, actor, in)
		if err != nil || v.Hash == "" {
			t.Fatalf("hash %q, %v", v.Hash, err)
		}
		return v.Hash
	}
	hash := shown(b.ana())
	if again := shown(b.ana()); again != hash {
		t.Errorf("the same is shown as %s and %s", hash, again)
	}
	refuse := func(what string, actor loom.Actor, hash string) {
		t.Helper()
		_, _, err := b.clusters.ApplyUnsaved(b.ctx, actor, in, hash)
		e := wantKind(t, err, loom.Conflict)
		if v, err := b.clusters.PreviewByID(b.ctx, actor, e.Preview); err != nil || v.Hash == hash || !v.AppliedAt.IsZero() {
			t.Errorf("%s: preview %q, %v", what, e.Preview, err)
		}
	}
	refuse("the hash of another user", b.admin(), hash)
	text := "moved"
	if _, err := b.clusters.Edit(b.ctx, b.ana(), id, clusters.EditInput{Description: &text}); err != nil {
		t.Fatal(err)
	}
	refuse("a cluster that changed", b.ana(), hash)
	if n := b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1`, int64(id)); n != 1 {
		t.Fatalf("%d operations, want that of the create", n)
	}
	preview, ref, err := b.clusters.ApplyUnsaved(b.ctx, b.ana(), in, shown(b.ana()))
	if err != nil || ref.Cluster != id || ref.Number != 2 {
		t.Fatalf("operation %s, %v", ref, err)
	}
	if v, err := b.clusters.PreviewByID(b.ctx, b.ana(), preview); err != nil || v.Applied != ref {
		t.Errorf("its preview became %s, %v", v.Applied, err)
	}
	_, _, err = b.clusters.ApplyUnsaved(b.ctx, b.ana(), in, hash)
	wantKind(t, err, loom.Conflict)
	b.finish(id, loom.ClusterActive)
	// What makes or deletes machines is previewed first.
	for _, in := range []clusters.PreviewInput{
		{Kind: loom.ChangeExpand, Cluster: id, Change: clusters.ChangeInput{Machines: 3}}, {Kind: loom.ChangeDelete, Cluster: id},
		{Kind: loom.ChangeCreate, Create: request(2)},
	} {
		v, err := b.clusters.PreviewUnsaved(b.ctx, b.ana(), in)
		if err != nil || v.Hash != "" {
			t.Errorf("%s: hash %q, %v", in.Kind, v.Hash, err)
		}
		stored, err := b.clusters.Preview(b.ctx, b.ana(), in)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.clusters.ApplyUnsaved(b.ctx, b.ana(), in, stored.Hash); err == nil {
			t.Errorf("%s began at once", in.Kind)
		}
	}
}

// TestApplyUnsavedOnce: of several presses at once one begins an operation.
func TestApplyUnsavedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	in := clusters.PreviewInput{Kind: loom.ChangeStop, Cluster: id}
	v, err := b.clusters.PreviewUnsaved(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		done.Go(func() { _, _, errs[i] = b.clusters.ApplyUnsaved(b.ctx, b.ana(), in, v.Hash) })
	}
	done.Wait()
	began := 0
	for _, err := range errs {
		if err == nil {
			began++
		} else {
			wantKind(t, err, loom.Conflict)
		}
	}
	if n := b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1`, int64(id)); began != 1 || n != 2 {
		t.Errorf("%d began, %d operations", began, n)
	}
	if n := b.count(`SELECT count(*) FROM previews WHERE cluster_id = $1 AND applied_at IS NOT NULL`, int64(id)); n != 1 {
		t.Errorf("%d previews were applied", n)
	}
}
