package clusters_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// moveCatalog stores newer versions of all that the clusters of a bundle are made of: a template
// with a new link, a service that does other work, one that is only checked otherwise, and a
// flavor that another one takes the place of.
func (b *bundle) moveCatalog() {
	b.t.Helper()
	stored := b.newestTemplate()
	stored.Links = append(stored.Links, loom.Link{Label: "Docs", URL: "http://docs/"})
	b.save(b.tenant, loom.KindTemplate, &stored)
	b.renew("web")
	checked := role("db")
	checked.Description = "checked"
	checked.Files = []string{"/etc/db.conf"}
	b.save(b.tenant, loom.KindService, checked)
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "s2", "cost": "0.4"}}})
}

func (b *bundle) newestTemplate() loom.Template {
	b.t.Helper()
	e, err := store.CatalogEntry(b.ctx, b.db, b.tenant, loom.KindTemplate, "site", 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return *e.Entry.(*loom.Template)
}

// copies is what a cluster keeps of the catalog.
func (b *bundle) copies(id loom.ClusterID) (template, web, db int, flavor, cost string) {
	b.t.Helper()
	c, err := store.ClusterByID(b.ctx, b.db, b.tenant, id)
	if err != nil {
		b.t.Fatal(err)
	}
	nodes, err := store.NodesByCluster(b.ctx, b.db, b.tenant, id)
	if err != nil || len(nodes) == 0 {
		b.t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	small := c.Types.Hardware["small"]
	return c.Template.Version, c.Services["web"].Version, c.Services["db"].Version, nodes[0].Flavor + "/" + small["flavor"], small["cost"]
}

// TestUpdate: one operation brings a cluster to the newest versions of all that it is made of.
func TestUpdate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	template, web, db, _, _ := b.copies(id)
	_, err := b.begin(loom.ChangeUpdate, id, clusters.ChangeInput{})
	wantKind(t, err, loom.Conflict)
	if err := says(err, "up to date"); err != nil {
		t.Error(err)
	}
	b.moveCatalog()
	newer, err := b.clusters.Newer(b.ctx, b.ana(), id)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range newer {
		names = append(names, fmt.Sprintf("%s %d→%d %d", e.Name, e.From, e.To, e.Machines))
	}
	if got, want := strings.Join(names, ", "), fmt.Sprintf("site %d→%d 0, db %d→%d 0, web %d→%d 0, small 0→0 3", template, template+1, db, db+1, web, web+1); got != want {
		t.Errorf("newer: %s, want %s", got, want)
	}
	v := b.previewOf(loom.ChangeUpdate, id, clusters.ChangeInput{})
	if v.NodesReplaced != 3 || v.ByAction[loom.ActionCreate] != 3 || v.ByAction[loom.ActionDelete] != 3 {
		t.Errorf("%d nodes get other machines, %v", v.NodesReplaced, v.ByAction)
	}
	if text := v.Summary(); !strings.HasPrefix(text, "Brings 2 services to another version and replaces 3 machines, ") {
		t.Error(text)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if a, c, d, flavor, cost := b.copies(id); a != template+1 || c != web+1 || d != db+1 || flavor != "s2/s2" || cost != "0.4" {
		t.Errorf("template %d, web %d, db %d, flavor %s, cost %s", a, c, d, flavor, cost)
	}
	_, err = b.begin(loom.ChangeUpdate, id, clusters.ChangeInput{})
	wantKind(t, err, loom.Conflict)
	// A rollback brings all copies back.
	if err := b.rollback(id, ref.Number); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if a, c, d, flavor, cost := b.copies(id); a != template || c != web || d != db || flavor != "s1/s1" || cost != "0.5" {
		t.Errorf("rolled back: template %d, web %d, db %d, flavor %s, cost %s", a, c, d, flavor, cost)
	}
}

// TestUpdateOfSomeEntries takes the named versions and nothing else.
func TestUpdateOfSomeEntries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	template, web, db, _, _ := b.copies(id)
	b.moveCatalog()
	b.renew("web")
	one := func(kind loom.EntityKind, name string, version int) clusters.ChangeInput {
		return clusters.ChangeInput{Entries: []store.EntryVersion{{Kind: kind, Name: name, Version: version}}}
	}
	// What is only watched otherwise needs no task, and is an operation all the same.
	v := b.previewOf(loom.ChangeUpdate, id, one(loom.KindService, "db", 0))
	if len(v.Plan.Tasks) != 0 || !slices.ContainsFunc(v.Changes, func(c clusters.ChangeLine) bool { return strings.Contains(c.Name, "db") }) {
		t.Errorf("%d tasks, %+v", len(v.Plan.Tasks), v.Changes)
	}
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if c := b.cluster(id); c.Status != loom.ClusterActive || c.LatestOperation != 2 || c.Services["db"].Version != db+1 || len(c.Services["db"].Files) != 1 {
		t.Errorf("%s, operation %d, %+v", c.Status, c.LatestOperation, c.Services["db"])
	}
	// A version in the middle; a later one does not make the preview stale, but its own end does.
	v = b.previewOf(loom.ChangeUpdate, id, one(loom.KindService, "web", web+1))
	if v.NodesReplaced != 0 || v.ByAction[loom.ActionInstall] == 0 {
		t.Errorf("%d replaced, %v", v.NodesReplaced, v.ByAction)
	}
	b.renew("web")
	gone := b.previewOf(loom.ChangeUpdate, id, one(loom.KindService, "web", web+2))
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if a, c, _, flavor, _ := b.copies(id); a != template || c != web+1 || flavor != "s1/s1" {
		t.Errorf("template %d, web %d, flavor %s", a, c, flavor)
	}
	b.db.MustExec(`DELETE FROM catalog_versions WHERE kind = 'services' AND name = 'web' AND version = $1`, web+2)
	_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(gone))
	wantKind(t, err, loom.Conflict)

	for _, c := range []struct {
		in    clusters.ChangeInput
		kind  loom.Kind
		texts []string
	}{
		{one(loom.KindProvider, "lab", 0), loom.Invalid, []string{"entries[0].kind", "newest version of their provider"}},
		{one("hats", "web", 0), loom.Invalid, []string{"entries[0].kind", "clustertemplates"}},
		{one(loom.KindService, "", 0), loom.Invalid, []string{"entries[0].name"}},
		{one(loom.KindService, "web", -1), loom.Invalid, []string{"entries[0].version"}},
		{one(loom.KindService, "web", 99), loom.NotFound, []string{"entries[0]", "version 99"}},
		{one(loom.KindHardwareType, "alien", 0), loom.Invalid, []string{"entries[0]", "does not use the hardware type “alien”"}},
		{clusters.ChangeInput{Entries: slices.Repeat(one(loom.KindService, "web", 0).Entries, 2)}, loom.Invalid, []string{"entries[1]", "named twice"}},
		{one(loom.KindService, "web", web+1), loom.Conflict, []string{"up to date"}},
	} {
		_, err := b.begin(loom.ChangeUpdate, id, c.in)
		wantKind(t, err, c.kind)
		if err := says(err, c.texts...); err != nil {
			t.Error(err)
		}
	}
}

// TestUpdateIsUndone: an update that fails with the policy undo leaves the cluster with the
// copies that it had.
func TestUpdateIsUndone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	template, web, db, _, _ := b.copies(id)
	b.moveCatalog()
	if _, err := b.begin(loom.ChangeUpdate, id, clusters.ChangeInput{OnFailure: loom.OnFailureUndo}); err != nil {
		t.Fatal(err)
	}
	b.runTasksBut(func(action loom.TaskAction, node int) bool { return action == loom.ActionInstall && node == 1001 }, false)
	b.runTasks("")
	if c := b.cluster(id); c.Status != loom.ClusterActive || !c.Latest.Undone {
		t.Errorf("%s, %+v", c.Status, c.Latest)
	}
	if a, c, d, flavor, cost := b.copies(id); a != template || c != web || d != db || flavor != "s1/s1" || cost != "0.5" {
		t.Errorf("undone: template %d, web %d, db %d, flavor %s, cost %s", a, c, d, flavor, cost)
	}
}

// TestUpdateReplacesWhatAnExpandLeft: an expand takes the new settings of a type for the nodes that it
// adds; an update still replaces the others.
func TestUpdateReplacesWhatAnExpandLeft(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2)
	f.runs(loom.ChangeUpdate, f.ids[0], "")
	f.m.run(nil)
	f.save(f.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "s2"}}})
	f.starts(clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: f.ids[0], Change: clusters.ChangeInput{Machines: 3}})
	f.m.run(nil)
	newer, err := f.clusters.Newer(f.ctx, f.ana(), f.ids[0])
	if err != nil || len(newer) != 1 || newer[0].Name != "small" || newer[0].Machines != 2 {
		t.Errorf("newer is %+v, %v", newer, err)
	}
	f.starts(clusters.PreviewInput{Kind: loom.ChangeUpdate, Cluster: f.ids[0]})
	f.m.run(nil)
	if n := f.count(`SELECT count(*) FROM nodes WHERE state <> 'deleted' AND flavor = 's2'`); n != 3 {
		t.Errorf("%d of 3 nodes have the flavor", n)
	}
}

// TestUpdateKeepsDisks: an update does not replace machines of a protected cluster, and one of
// the template alone does not touch it.
func TestUpdateKeepsDisks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	b.moveCatalog()
	b.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(id))
	_, err := b.begin(loom.ChangeUpdate, id, clusters.ChangeInput{})
	wantKind(t, err, loom.Conflict)
	if err := says(err, "protected"); err != nil {
		t.Error(err)
	}
	ref, err := b.begin(loom.ChangeUpdate, id, clusters.ChangeInput{Entries: []store.EntryVersion{{Kind: loom.KindTemplate, Name: "site"}}})
	if err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if c := b.cluster(id); c.Status != loom.ClusterActive || c.LatestOperation != ref.Number {
		t.Errorf("%s, operation %d", c.Status, c.LatestOperation)
	}
}
