package clusters_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
)

// withMore saves services that clusters of the template may get later: cache goes
// everywhere, app needs it to be installed and db to run, lone stays on one node
// without web, bare does nothing.
func (b *bundle) withMore() {
	b.t.Helper()
	cache := service("cache", nil)
	cache.DefaultConfig = map[string]any{"cache": map[string]any{"mb": 64}, "web": map[string]any{"port": 1, "cached": true}}
	b.save(b.tenant, loom.KindService, cache)
	app := service("app", []string{"cache"})
	app.Dependencies.Runtime = loom.PhaseDependency{Requires: []string{"db"}, Uses: []string{"queue"}}
	start := app.Provisioner.Actions[loom.ActionStart]
	start.Type = "chef-solo"
	app.Provisioner.Actions[loom.ActionStart] = start
	b.save(b.tenant, loom.KindService, app)
	b.save(b.tenant, loom.KindService, service("lone", nil))
	b.save(b.tenant, loom.KindService, &loom.Service{Base: loom.Base{Name: "bare"}})
	t := siteTemplate()
	one := 1
	t.Constraints.Layout.CantCoexist = append(t.Constraints.Layout.CantCoexist, []string{"lone", "web"}, []string{"app", "db"})
	t.Constraints.Services["app"] = loom.ServiceConstraint{Quantities: &loom.Quantities{Max: &one}}
	b.save(b.tenant, loom.KindTemplate, t)
}

// made makes a cluster of ana, task by task.
func (b *bundle) made(machines int) loom.ClusterID {
	b.t.Helper()
	id := b.create(b.ana(), machines).Cluster
	b.runTasks("")
	return id
}

func (b *bundle) addServices(actor loom.Actor, id loom.ClusterID, names []string, fields map[string]any) (loom.OperationRef, error) {
	return b.clusters.Begin(b.ctx, actor, clusters.PreviewInput{Kind: loom.ChangeAddServices, Cluster: id, Services: names, ProviderFields: fields})
}

func (b *bundle) previewAdd(id loom.ClusterID, names ...string) clusters.PreviewView {
	b.t.Helper()
	v, err := b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeAddServices, Cluster: id, Services: names})
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// lines are "change object name@node: because" of all changes of a preview but
// those of nodes.
func lines(v clusters.PreviewView) []string {
	var out []string
	for _, c := range v.Changes {
		if c.Object != "node" {
			out = append(out, fmt.Sprintf("%s %s %s@%d: %s", c.Change, c.Object, c.Name, c.Node, c.Because))
		}
	}
	return out
}

// shape is what an operation may change of a cluster, and what it must not.
type shape struct {
	Services []string
	Nodes    []string
	Config   map[string]any
	Configs  int
	Status   loom.ClusterStatus
}

func (b *bundle) shape(id loom.ClusterID) shape {
	b.t.Helper()
	c, err := store.ClusterByID(b.ctx, b.db, b.tenant, id)
	if err != nil {
		b.t.Fatal(err)
	}
	s := shape{Config: c.Config, Status: c.Status, Configs: b.count(`SELECT count(*) FROM config_revisions WHERE cluster_id = $1`, int64(id))}
	for name, copied := range c.Services {
		s.Services = append(s.Services, fmt.Sprintf("%s %d", name, copied.Version))
	}
	slices.Sort(s.Services)
	nodes, err := store.NodesByCluster(b.ctx, b.db, b.tenant, id)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, fmt.Sprintf("%d %v %v", n.Number, n.Services, n.Automators))
	}
	return s
}

func TestAddServices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.made(3)
	before := b.shape(id)
	wasVersion := b.count(`SELECT coalesce(max(version), 0) FROM node_changes`)
	v := b.previewAdd(id, "web", "bare", "cache", "app", "app")
	want := []string{
		"create config /cache@0: It is a default of the new services.", "create config /web/cached@0: It is a default of the new services.",
		"create service bare@1000: The template allows it on every node.",
		"create service cache@1000: The template allows it on every node.",
		"change service db@1000: “app” needs it to run.",
		"create service app@1001: The template has it on at most 1 node.",
		"create service bare@1001: The template allows it on every node.",
		"create service cache@1001: The template allows it on every node.",
		"create service bare@1002: The template allows it on every node.",
		"create service cache@1002: The template allows it on every node.",
	}
	if got := lines(v); !reflect.DeepEqual(got, want) {
		t.Errorf("changes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := v.Summary(); !strings.HasPrefix(got, "Adds 3 services to 3 nodes, runs ") {
		t.Errorf("summary %q", got)
	}
	if got := tasks(v); got != "bootstrap , start db, install cache, start cache, install app, start app" {
		t.Errorf("tasks %s", got)
	}
	if v.After != v.Before || len(v.Layout) == 0 || !slices.Contains(v.Services, "app") {
		t.Errorf("quota %v to %v, layout %v, services %v", v.Before, v.After, v.Layout, v.Services)
	}
	if w := strings.Join(v.Warnings, " "); !strings.Contains(w, "“app” can use “queue”") {
		t.Errorf("warnings %q", w)
	}
	if now := b.shape(id); !reflect.DeepEqual(now, before) {
		t.Errorf("a preview changed the cluster: %+v", now)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	plan, _, err := b.clusters.PlanOf(b.ctx, b.ana(), ref)
	if err != nil || !reflect.DeepEqual(plan, v.Plan) || plan.Action != loom.AddServices {
		t.Errorf("the stored plan is not the preview's: %v", err)
	}
	added := shape{
		Services: []string{"app 1", "bare 1", "base 1", "cache 1", "db 1", "web 1"},
		Nodes: []string{
			"1000 [bare base cache db] [shell]", "1001 [app bare base cache web] [chef-solo shell]", "1002 [bare base cache web] [shell]",
		},
		Config:  parse(t, `{"cache":{"mb":64},"web":{"cached":true,"peers":"%host.service.web%","port":8080,"threads":4}}`),
		Configs: 2, Status: loom.ClusterPending,
	}
	if now := b.shape(id); !reflect.DeepEqual(now, added) {
		t.Errorf("cluster\n%+v\nwant\n%+v", now, added)
	}
	if n := b.count(`SELECT version FROM node_changes WHERE cluster_id = $1`, int64(id)); n <= wasVersion {
		t.Error("provisioners keep the nodes they have read")
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'apply' AND object = $1 AND after->'services' ? 'app' AND NOT before->'services' ? 'app' AND after->'changed' ? '/cache'`, id.String()); n != 1 {
		t.Errorf("%d audit entries tell of it", n)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Conflict)
	b.runTasks("")
	added.Status = loom.ClusterActive
	if now := b.shape(id); !reflect.DeepEqual(now, added) {
		t.Errorf("at the end\n%+v\nwant\n%+v", now, added)
	}
	for _, n := range b.cluster(id).Nodes {
		if n.ServiceStates["cache"] != loom.ServiceStarted || slices.Contains(n.Services, "app") != (n.ServiceStates["app"] == loom.ServiceStarted) {
			t.Errorf("node %d: %v", n.Number, n.ServiceStates)
		}
	}
	// The copies are the cluster's own from now on; what is there is left out.
	b.save(b.tenant, loom.KindService, service("cache", nil))
	if ref, err = b.addServices(b.ana(), id, []string{"cache", "lone"}, nil); err != nil {
		t.Fatal(err)
	}
	now := b.shape(id)
	if !slices.Contains(now.Services, "cache 1") || !slices.Contains(now.Services, "lone 1") || now.Configs != 2 {
		t.Errorf("cluster %+v", now)
	}
	if plan, _, err := b.clusters.PlanOf(b.ctx, b.ana(), ref); err != nil || len(plan.Tasks) != 3 {
		t.Errorf("%d tasks for one service on one node, %v", len(plan.Tasks), err)
	}
	// A failure keeps what is there.
	b.runTasks(loom.ActionInstall)
	now.Status = loom.ClusterInconsistent
	if failed := b.shape(id); !reflect.DeepEqual(failed, now) {
		t.Errorf("after a failure\n%+v\nwant\n%+v", failed, now)
	}
}

// What the cluster's config says stays, a null as well.
func TestAddedDefaultsAreTheLowestLayer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.active(2)
	for config, want := range map[string]string{
		`{}`:                                     `{"cache":{"mb":64},"web":{"port":1,"cached":true}}`,
		`{"web":null,"cache":{"mb":null,"x":1}}`: `{"web":null,"cache":{"mb":null,"x":1}}`,
		`{"web":"text","cache":{}}`:              `{"web":"text","cache":{"mb":64}}`,
		`{"web":{"port":12345678901234567890},"cache":[],"other":{}}`: `{"web":{"port":12345678901234567890,"cached":true},"cache":[],"other":{}}`,
	} {
		b.db.MustExec(`UPDATE clusters SET config = $2 WHERE id = $1`, int64(id), config)
		v := b.previewAdd(id, "cache")
		got := v.Config
		if got == nil { // nothing changes
			got = parse(t, config)
		}
		a, _ := json.Marshal(got)
		w, _ := json.Marshal(parse(t, want))
		if string(a) != string(w) {
			t.Errorf("%s became %s, want %s", config, a, w)
		}
	}
	bad := service("bad", nil)
	bad.DefaultConfig = map[string]any{"a": "%host.service.%"}
	b.save(b.tenant, loom.KindService, bad)
	_, err := b.addServices(b.ana(), id, []string{"bad"}, nil)
	if e := wantKind(t, err, loom.Invalid); len(e.Fields) != 1 || e.Fields[0].Field != "config/a" {
		t.Errorf("fields %v", e.Fields)
	}
}

func TestAddServicesIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.active(2)
	b.save(b.tenant, loom.KindService, service("lost", []string{"nowhere"}))
	rival := service("rival", nil)
	rival.Dependencies.Conflicts = []string{"web"}
	b.save(b.tenant, loom.KindService, rival)
	loop := service("loop", nil)
	loop.Dependencies.Install.Requires = []string{"pool"}
	b.save(b.tenant, loom.KindService, loop)
	b.save(b.tenant, loom.KindService, service("pool", []string{"loop"}))
	before := b.shape(id)
	for _, c := range []struct {
		names []string
		kind  loom.Kind
		text  string
	}{
		{nil, loom.Invalid, "Name the services"},
		{[]string{}, loom.Invalid, "Name the services"},
		{[]string{"web", "base"}, loom.Invalid, "already"},
		{[]string{"a\x00b"}, loom.Invalid, "NUL"},
		{[]string{"ghost"}, loom.Unsolvable, "ghost"},
		{[]string{""}, loom.Unsolvable, ""},
		{[]string{"lost", "cache"}, loom.Unsolvable, "nowhere"},
		{[]string{"app"}, loom.Unsolvable, "cache"},
		{[]string{"rival"}, loom.Unsolvable, "rival"},
		{[]string{"loop", "pool"}, loom.Invalid, "circle"},
	} {
		_, err := b.addServices(b.ana(), id, c.names, nil)
		e := wantKind(t, err, c.kind)
		text := e.Message
		if e.Unsat != nil {
			if len(e.Unsat.Reasons) == 0 {
				t.Errorf("%v: no reasons", c.names)
			}
			for _, r := range e.Unsat.Reasons {
				text += " " + r.Message
			}
		} else if c.text != "circle" && (len(e.Fields) != 1 || e.Fields[0].Field != "services") {
			t.Errorf("%v: fields %v", c.names, e.Fields)
		}
		if !strings.Contains(text, c.text) {
			t.Errorf("%v: %q", c.names, text)
		}
		_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: loom.ChangeAddServices, Cluster: id, Services: c.names})
		wantKind(t, err, c.kind)
	}
	// No node may hold it: the reason says so, and what would help was tried.
	b.db.MustExec(`UPDATE clusters SET template = jsonb_set(template, '{constraints,layout,cantcoexist}', '[["db", "web"], ["lone", "web"], ["lone", "db"]]') WHERE id = $1`, int64(id))
	_, err := b.addServices(b.ana(), id, []string{"lone"}, nil)
	if e := wantKind(t, err, loom.Unsolvable); len(e.Unsat.Reasons) == 0 || len(e.Unsat.Suggestions) == 0 || !strings.Contains(e.Unsat.Reasons[0].Message, "lone") {
		t.Errorf("%+v", e.Unsat)
	}
	// Nor is it left out where the template would do without it: it was asked for.
	b.db.MustExec(`UPDATE clusters SET template = jsonb_set(template, '{constraints,services,lone}', '{"quantities": {"min": 0}}') WHERE id = $1`, int64(id))
	_, err = b.addServices(b.ana(), id, []string{"lone", "cache"}, nil)
	wantKind(t, err, loom.Unsolvable)
	b.db.MustExec(`UPDATE clusters SET template = jsonb_set(template, '{constraints,layout,cantcoexist}', '[["db", "web"]]') WHERE id = $1`, int64(id))
	b.db.MustExec(`UPDATE clusters SET template = jsonb_set(template, '{compatibility,services}', '["base", "db", "web"]') WHERE id = $1`, int64(id))
	_, err = b.addServices(b.ana(), id, []string{"cache"}, nil)
	wantKind(t, err, loom.Unsolvable)
	b.db.MustExec(`UPDATE clusters SET template = template - 'compatibility' WHERE id = $1`, int64(id))
	// The layout comes before the provider fields, the state before the services,
	// and whether there is such a cluster before that.
	_, err = b.addServices(b.ana(), id, []string{"ghost"}, map[string]any{"zone": "c"})
	wantKind(t, err, loom.Unsolvable)
	_, err = b.addServices(b.ana(), id, []string{"cache"}, map[string]any{"zone": "c"})
	if e := wantKind(t, err, loom.Invalid); len(e.Fields) != 1 || e.Fields[0].Field != "providerFields.zone" {
		t.Errorf("fields %v", e.Fields)
	}
	for _, status := range []loom.ClusterStatus{loom.ClusterPending, loom.ClusterIncomplete, loom.ClusterInconsistent, loom.ClusterTerminated} {
		b.db.MustExec(`UPDATE clusters SET status = $2 WHERE id = $1`, int64(id), status)
		_, err = b.addServices(b.ana(), id, nil, nil)
		wantKind(t, err, loom.Conflict)
	}
	b.db.MustExec(`UPDATE clusters SET status = 'active' WHERE id = $1`, int64(id))
	_, err = b.addServices(b.actor("ben", loom.RoleUser), id, nil, nil)
	wantKind(t, err, loom.NotFound)
	_, err = b.addServices(b.ana(), 999, nil, nil)
	wantKind(t, err, loom.NotFound)
	reader := b.ana()
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	_, err = b.addServices(reader, id, []string{"cache"}, nil)
	wantKind(t, err, loom.Forbidden)
	if now := b.shape(id); !reflect.DeepEqual(now, before) {
		t.Errorf("what was refused left\n%+v\nwant\n%+v", now, before)
	}
	if n := b.count(`SELECT count(*) FROM operations`); n != 1 {
		t.Errorf("%d operations", n)
	}
}

// A service that follows a new one hears of it.
func TestFollowersAreConfiguredForNewServices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	db := service("db", []string{"base"})
	db.Follows = []string{"cache"}
	db.Provisioner.Actions[loom.ActionConfigure] = db.Provisioner.Actions[loom.ActionStart]
	b.save(b.tenant, loom.KindService, db)
	id := b.active(2)
	v := b.previewAdd(id, "cache")
	if got := lines(v); !slices.Contains(got, "change service db@1000: It is configured again after “cache”.") {
		t.Errorf("changes %v", got)
	}
}

func TestStalePreviewOfAdding(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.made(2)
	v := b.previewAdd(id, "cache", "base")
	// A newer version is not what was shown.
	newer := service("cache", nil)
	newer.DefaultConfig = map[string]any{"cache": map[string]any{"mb": 128}}
	b.save(b.tenant, loom.KindService, newer)
	_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	e := wantKind(t, err, loom.Conflict)
	if e.Preview == "" || !strings.Contains(e.Message, "“cache” is now version 2, not 1") {
		t.Fatalf("%+v", e)
	}
	fresh, err := b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview)
	if err != nil || fresh.Hash == v.Hash || !reflect.DeepEqual(fresh.Added, []string{"cache"}) {
		t.Fatalf("fresh %+v, %v", fresh.Added, err)
	}
	// Nor is another cluster.
	if _, err := b.addServices(b.ana(), id, []string{"lone"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(fresh))
	e = wantKind(t, err, loom.Conflict)
	if e.Preview == "" || !strings.Contains(e.Message, "The cluster changed") {
		t.Fatalf("%+v", e)
	}
	if fresh, err = b.clusters.PreviewByID(b.ctx, b.ana(), e.Preview); err != nil {
		t.Fatal(err)
	}
	if _, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(fresh)); err != nil {
		t.Fatal(err)
	}
	if now := b.shape(id); !slices.Contains(now.Services, "cache 2") || !slices.Contains(now.Services, "lone 1") {
		t.Errorf("cluster %+v", now)
	}
	// One whose service is gone cannot be replaced.
	b.runTasks("")
	gone := b.previewAdd(id, "bare")
	b.db.MustExec(`DELETE FROM catalog_versions WHERE kind = 'services' AND name = 'bare'`)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(gone))
	if e := wantKind(t, err, loom.Conflict); e.Preview != "" || e.Unsat == nil || !strings.Contains(e.Message, "no longer possible") {
		t.Errorf("%+v", e)
	}
}

// Twenty at once: one begins, the others hear that it runs.
func TestAddingBeginsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.active(3)
	names := []string{"cache", "lone", "bare"}
	wins := []string{}
	for i, err := range together(12, func(i int) error {
		_, err := b.addServices(b.ana(), id, names[i%3:i%3+1], nil)
		return err
	}) {
		if err == nil {
			wins = append(wins, names[i%3])
		} else if !errors.Is(err, loom.Conflict) {
			t.Error(err)
		}
	}
	if len(wins) != 1 {
		t.Fatalf("%v began", wins)
	}
	now := b.shape(id)
	if want := append([]string{"base 1", "db 1", "web 1"}, wins[0]+" 1"); len(now.Services) != 4 || !slices.Contains(now.Services, want[3]) {
		t.Errorf("services %v, want %v", now.Services, want)
	}
	for _, n := range now.Nodes {
		for _, name := range names {
			if name != wins[0] && strings.Contains(n, name) {
				t.Errorf("node %s has %s", n, name)
			}
		}
	}
}

// A hook that refuses, and an abort while it is asked, leave the cluster as it was.
func TestAddingThatNeverBegins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	id := b.made(3)
	ops := execution.New(b.db.DB, b.ring, execution.Options{})
	if _, err := b.addServices(b.ana(), id, []string{"lone"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	before := b.shape(id)
	b.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ($1, 'freeze', 'https://ci.example/', '{start}', true)`, b.tenant)
	for _, how := range []string{"refused", "aborted"} {
		revision := b.cluster(id).Revision
		ref, err := b.addServices(b.ana(), id, []string{"cache", "app", "bare"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		waiting := b.shape(id)
		if c := b.cluster(id); c.Latest.Status != loom.OperationNotSubmitted || len(waiting.Services) != 7 || waiting.Configs != 2 {
			t.Fatalf("the operation is %s, %+v", c.Latest.Status, waiting)
		}
		if how == "aborted" {
			_, err = ops.Abort(b.ctx, b.ana(), ref)
		} else {
			var delivery int64
			if err := b.db.Get(&delivery, `SELECT max(id) FROM hook_deliveries WHERE blocking AND status = 'waiting'`); err != nil {
				t.Fatal(err)
			}
			err = ops.RecordDelivery(b.ctx, loom.DeliveryID(delivery), loom.DeliveryOutcome{Status: loom.DeliveryRefused, Sent: true, Code: 409, Refusal: "Freeze."})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.endOperations()
		if now := b.shape(id); !reflect.DeepEqual(now, before) {
			t.Errorf("%s left\n%+v\nwant\n%+v", how, now, before)
		}
		if c := b.cluster(id); c.Revision <= revision || !c.Latest.Status.Final() {
			t.Errorf("%s: revision %d after %d, operation %s", how, c.Revision, revision, c.Latest.Status)
		}
	}
	// Without the hook it goes as if nothing had been.
	b.db.MustExec(`DELETE FROM hooks`)
	if _, err := b.addServices(b.ana(), id, []string{"cache", "app", "bare"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if now := b.shape(id); now.Status != loom.ClusterActive || len(now.Services) != 7 {
		t.Errorf("%+v", now)
	}
}
