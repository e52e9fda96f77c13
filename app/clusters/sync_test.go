package clusters_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestSyncTakesTheTemplateOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(3)
	before := b.cluster(id)
	// The newest version extends another template and includes a part.
	b.save(b.tenant, loom.KindTemplate, &loom.Template{Base: loom.Base{Name: "root"}, Defaults: loom.Defaults{Services: []string{"base"}},
		Links: []loom.Link{{Label: "Docs", URL: "http://docs/"}}})
	part := &loom.PartialTemplate{Base: loom.Base{Name: "part"}, Compatibility: loom.Compatibility{Services: []string{"base", "db", "web"}}}
	b.save(b.tenant, loom.KindPartialTemplate, part)
	next := siteTemplate()
	next.Extends, next.Includes = &loom.NameRef{Name: "root"}, []loom.NameRef{{Name: "part"}}
	next.Defaults.Config = map[string]any{"other": true}
	b.save(b.tenant, loom.KindTemplate, next)

	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeSync, Cluster: id})
	if err != nil || len(v.Plan.Tasks) != 0 || v.Summary() == "" {
		t.Fatalf("%d tasks, %v", len(v.Plan.Tasks), err)
	}
	named := map[string]bool{}
	for _, c := range v.Changes {
		if c.Object != "template" {
			t.Errorf("change %+v", c)
		}
		named[c.Name] = true
	}
	if !named["/version"] || !named["/defaults/config/other"] || !named["/links"] || !named["/compatibility/services"] {
		t.Errorf("changes %v", v.Changes)
	}
	// A part that moves makes the preview stale.
	b.save(b.tenant, loom.KindPartialTemplate, part)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	e := wantKind(t, err, loom.Conflict)
	if e.Preview == "" || !strings.Contains(e.Message, "part") {
		t.Fatalf("%+v", e)
	}
	fresh, err := b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(fresh))
	if err != nil || ref.Cluster != id || ref.Number != 0 {
		t.Fatalf("%v, %v", ref, err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(fresh))
	wantKind(t, err, loom.Conflict)
	after := b.cluster(id)
	if after.Template.Version != 2 || len(after.Template.Links) != 3 || after.NewerTemplate != 0 || after.Revision != before.Revision+1 {
		t.Errorf("template %+v, revision %d after %d", after.Template.Base, after.Revision, before.Revision)
	}
	if !reflect.DeepEqual(after.Config, before.Config) || !reflect.DeepEqual(after.Services, before.Services) ||
		!reflect.DeepEqual(after.Provider, before.Provider) || !after.Expires.Equal(before.Expires) || after.Status != loom.ClusterActive || after.LatestOperation != 1 {
		t.Error("more than the template changed")
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'sync' AND (after->>'version')::int = 2`); n != 1 {
		t.Errorf("%d audit entries", n)
	}
	if err := b.clusters.Sync(b.ctx, b.ana(), id); err != nil { // nothing new is no error
		t.Error(err)
	}
}

// TestSyncTakesChecks: a sync takes how the newest versions of services are checked, and nothing
// else of these.
func TestSyncTakesChecks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(3)
	b.db.MustExec(`INSERT INTO node_health (node_id, tenant_id, cluster_id, incarnation, operation, status) SELECT id, tenant_id, cluster_id, incarnation, 1, 'healthy' FROM nodes WHERE cluster_id = $1`, int64(id))
	before := b.cluster(id)
	web := before.Services["web"]
	next := web
	next.Check = &loom.ServiceCheck{Command: "web.sh check"}
	next.Files = []string{"/etc/web.conf"}
	next.Links = nil
	b.save(b.tenant, loom.KindService, &next)
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeSync, Cluster: id})
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for _, c := range v.Changes {
		if c.Object == "service" {
			changed = append(changed, c.Name)
		}
	}
	same(t, "the changes of services", changed, []string{"/web/check", "/web/files"})
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	want := web.WatchedAs(&next)
	if after := b.cluster(id).Services; !reflect.DeepEqual(after["web"], want) || !reflect.DeepEqual(after["db"], before.Services["db"]) {
		t.Errorf("the services are %+v", after)
	}
	if n := b.count(`SELECT count(*) FROM node_health WHERE operation = 1`); n != 0 {
		t.Errorf("what the check before it saw still counts on %d nodes", n)
	}
	// A service that moves makes a preview stale.
	if v, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeSync, Cluster: id}); err != nil {
		t.Fatal(err)
	}
	b.save(b.tenant, loom.KindService, &next)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Conflict)
}

func TestSyncIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(3)
	breaks := func(change func(*loom.Template)) *loom.Error {
		next := siteTemplate()
		change(next)
		b.save(b.tenant, loom.KindTemplate, next)
		return wantKind(t, b.clusters.Sync(b.ctx, b.ana(), id), loom.Unsolvable)
	}
	two := 2
	for name, change := range map[string]func(*loom.Template){
		"size": func(n *loom.Template) { n.Constraints.Size.Max = 2 },
		"must coexist": func(n *loom.Template) {
			n.Constraints.Layout.CantCoexist = nil
			n.Constraints.Layout.MustCoexist = [][]string{{"db", "web"}}
		},
		"quantity": func(n *loom.Template) {
			n.Constraints.Services["db"] = loom.ServiceConstraint{Quantities: &loom.Quantities{Min: &two}}
		},
		"service":       func(n *loom.Template) { n.Compatibility.Services = []string{"base", "db"} },
		"hardware type": func(n *loom.Template) { n.Compatibility.HardwareTypes = []string{"huge"} },
	} {
		e := breaks(change)
		if e.Unsat == nil || len(e.Unsat.Reasons) == 0 || !strings.Contains(e.Message, "does not satisfy version") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// Another default type does not matter to machines that are there.
	fine := siteTemplate()
	fine.Defaults.HardwareType, fine.Defaults.Provider = "huge", "nowhere"
	b.save(b.tenant, loom.KindTemplate, fine)
	if err := b.clusters.Sync(b.ctx, b.ana(), id); err != nil {
		t.Error(err)
	}
	wantKind(t, b.clusters.Sync(b.ctx, b.actor("ben", loom.RoleUser), id), loom.NotFound)
	for _, status := range []loom.ClusterStatus{loom.ClusterPending, loom.ClusterInconsistent, loom.ClusterIncomplete, loom.ClusterTerminated} {
		b.db.MustExec(`UPDATE clusters SET status = $2 WHERE id = $1`, int64(id), status)
		wantKind(t, b.clusters.Sync(b.ctx, b.ana(), id), loom.Conflict)
	}
	b.db.MustExec(`UPDATE clusters SET status = 'active' WHERE id = $1`, int64(id))
	b.db.MustExec(`UPDATE nodes SET state = 'deleted' WHERE cluster_id = $1`, int64(id))
	wantKind(t, b.clusters.Sync(b.ctx, b.ana(), id), loom.NotFound)
	b.db.MustExec(`DELETE FROM catalog_versions WHERE kind = 'clustertemplates'`)
	if e := wantKind(t, b.clusters.Sync(b.ctx, b.ana(), id), loom.NotFound); len(e.Fields) != 0 || !strings.Contains(e.Message, "site") {
		t.Errorf("%+v", e)
	}
}

// Whatever wins, a sync and an operation at once leave a cluster that holds together.
func TestSyncAndConfigureAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.active(2)
	b.save(b.tenant, loom.KindTemplate, siteTemplate())
	for i, err := range together(10, func(i int) error {
		if i%2 == 0 {
			return b.clusters.Sync(b.ctx, b.ana(), id)
		}
		_, err := b.configure(b.ana(), id, clusters.ConfigureInput{Config: map[string]any{}}, nil)
		return err
	}) {
		if err != nil && !errors.Is(err, loom.Conflict) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1`, int64(id)); n > 2 {
		t.Errorf("%d operations", n)
	}
}
