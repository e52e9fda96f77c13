package clusters_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestExpandAndShrink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	v := b.previewOf(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	if want := "Adds 1 node, configures db again, runs 9 tasks in 8 stages. Changes nothing else."; v.Summary() != want {
		t.Errorf("summary %q, want %q", v.Summary(), want)
	}
	if v.Before.Nodes != 3 || v.After.Nodes != 4 || v.Layout.Machines() != 4 || len(v.Nodes) != 4 || v.Nodes[3].Hostname != "web-tier1-1003.lab.example" {
		t.Errorf("quota %+v to %+v, nodes %+v", v.Before, v.After, v.Nodes)
	}
	same(t, "changes", lines(v), []string{
		"change service db@1000: It follows web, whose nodes change.", "create service base@1003: ", "create service web@1003: "})
	same(t, "tasks", steps(v.Plan), []string{"bootstrap@1003", "configure db@1000", "configure web@1003", "confirm@1003", "create@1003",
		"install base@1003", "install web@1003", "start base@1003", "start web@1003"})
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	if before := b.before(ref); len(before.Nodes) != 3 || len(before.Services) != 3 {
		t.Errorf("before %+v", before)
	}
	var node loom.Node
	nodes, err := store.NodesByCluster(b.ctx, b.db, b.tenant, id)
	if err != nil || len(nodes) != 4 {
		t.Fatalf("%d nodes, %v", len(nodes), err)
	}
	if node = nodes[3]; node.ID != v.Nodes[3].ID || node.Flavor != "s1" || node.Image != "deb12" || node.SSHUser != "ops" || !reflect.DeepEqual(node.Automators, []string{"shell"}) {
		t.Errorf("node %+v", node)
	}
	b.runTasks("")
	same(t, "expanded", b.members(id), []string{"1000 1 small base+db", "1001 1 small base+web", "1002 1 small base+web", "1003 1 small base+web"})

	// The last one goes first, after its neighbours heard of it.
	v = b.previewOf(loom.ChangeShrink, id, clusters.ChangeInput{Machines: 3})
	if want := "Removes 1 node with all that is on it, configures db again, runs 3 tasks in 3 stages. Changes nothing else."; v.Summary() != want {
		t.Errorf("summary %q, want %q", v.Summary(), want)
	}
	same(t, "tasks", steps(v.Plan), []string{"configure db@1000", "delete@1003", "stop web@1003"})
	if !slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.Contains(w, "Node 1003 leaves: what is on the disks") }) || v.After.Nodes != 3 {
		t.Errorf("warnings %v, quota after %+v", v.Warnings, v.After)
	}
	if _, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v)); err != nil {
		t.Fatal(err)
	}
	if got := b.members(id); got[3] != "1003 1 small base+web leaving" {
		t.Errorf("while it shrinks: %v", got)
	}
	b.runTasks("")
	same(t, "shrunk", b.members(id), []string{"1000 1 small base+db", "1001 1 small base+web", "1002 1 small base+web"})
	c := b.cluster(id)
	if len(c.Gone) != 1 || c.Gone[0].ID != node.ID || c.Status != loom.ClusterActive {
		t.Errorf("gone %+v, %s", c.Gone, c.Status)
	}
	if list, err := b.clusters.Clusters(b.ctx, b.ana(), clusters.ListInput{}); err != nil || list.Items[0].Nodes != 3 {
		t.Errorf("list %+v, %v", list.Items, err)
	}
	if use, err := store.QuotaUse(b.ctx, b.db, b.tenant); err != nil || use.Nodes != 3 {
		t.Errorf("quota %+v, %v", use, err)
	}
	if _, err := b.clusters.NodeRecord(b.ctx, b.ana(), id, node.ID); err != nil {
		t.Errorf("the page of a node that left: %v", err)
	}
	if shown, err := b.clusters.NodeProperties(b.ctx, b.ana(), id, nil); err != nil || len(shown) != 3 {
		t.Errorf("%d properties, %v", len(shown), err)
	}
	// Numbers are not used again.
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 5})
	b.alter(loom.ChangeShrink, id, clusters.ChangeInput{Nodes: []loom.NodeID{b.node(id, 1001), b.node(id, 1004)}})
	same(t, "by name", b.members(id), []string{"1000 1 small base+db", "1002 1 small base+web", "1005 1 small base+web"})
	// A cluster that is deleted shows the nodes that it had then.
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if c := b.cluster(id); c.Status != loom.ClusterTerminated || len(c.Nodes) != 3 || len(c.Gone) != 3 {
		t.Errorf("terminated %s with %d nodes, %d gone", c.Status, len(c.Nodes), len(c.Gone))
	}
	if list, err := b.clusters.Clusters(b.ctx, b.ana(), clusters.ListInput{}); err != nil || list.Items[0].Nodes != 3 {
		t.Errorf("list %+v, %v", list.Items, err)
	}
}

// Further machines are like those that are there, whatever the template's default.
func TestExpandKeepsTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	in := request(2)
	in.HardwareType = "xlarge"
	ref, err := b.clusters.Create(b.ctx, b.ana(), in)
	if err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	id := ref.Cluster
	// The types say something else by now: new machines are made by that.
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "xlarge"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "l2", "disk": "9"}}})
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 3})
	c := b.cluster(id)
	if n := c.Nodes[2]; n.HardwareType != "xlarge" || n.Flavor != "l2" || c.Nodes[1].Flavor != "l1" {
		t.Errorf("%+v", n)
	}
	if got := b.count(`SELECT count(*) FROM clusters WHERE type_settings->'hardware'->'xlarge'->>'disk' = '9'`); got != 1 {
		t.Error("the settings of the type were not kept")
	}
	// A type that no longer fits the provider gives way to any other.
	b.save(b.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "xlarge"}, ProviderMap: map[string]map[string]string{}})
	b.alter(loom.ChangeExpand, id, clusters.ChangeInput{Machines: 4})
	if n := b.cluster(id).Nodes[3]; n.HardwareType != "small" {
		t.Errorf("%+v", n)
	}
}

func TestRemoveServices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withMore()
	b.withRoles()
	id := b.made(3)
	if _, err := b.addServices(b.ana(), id, []string{"cache", "app", "bare"}, nil); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	_, err := b.begin(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: []string{"cache"}})
	e := wantKind(t, err, loom.Unsolvable)
	if err := says(err, "app", "cache"); err != nil {
		t.Error(err)
	}
	// What would help names the whole list; it was tried, so it works.
	var help []string
	for _, s := range e.Unsat.Suggestions {
		if len(s.Services) > 0 {
			help = s.Services
		}
	}
	same(t, "suggestion", help, []string{"app", "cache"})
	v := b.previewOf(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: append(help, "bare")})
	if !strings.HasPrefix(v.Summary(), "Removes 3 services from the cluster, runs ") && !strings.Contains(v.Summary(), "0 tasks") {
		t.Errorf("summary %q", v.Summary())
	}
	if !slices.Contains(lines(v), "remove service bare@1000: It defines no action for that, so nothing runs.") {
		t.Errorf("changes %v", lines(v))
	}
	if !slices.Contains(v.Warnings, "“cache” has no remove action: its files stay on the machines.") {
		t.Errorf("warnings %v", v.Warnings)
	}
	config := b.shape(id).Config
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	now := b.shape(id)
	same(t, "services", now.Services, []string{"base 1", "db 2", "web 2"})
	if now.Status != loom.ClusterActive || !reflect.DeepEqual(now.Config, config) || len(b.before(ref).Services) != 6 {
		t.Errorf("%+v", now)
	}
	same(t, "nodes", now.Nodes, []string{"1000 [base db] [shell]", "1001 [base web] [shell]", "1002 [base web] [shell]"})

	for _, c := range []struct {
		names []string
		kind  loom.Kind
		texts []string
	}{
		{nil, loom.Invalid, []string{"services", "Name the services"}},
		{[]string{"ghost"}, loom.Unsolvable, []string{"ghost is not on the cluster"}},
		{[]string{"base"}, loom.Unsolvable, []string{"base"}},
		{[]string{"a\x00"}, loom.Invalid, []string{"services[0]", "NUL"}},
		{[]string{"base", "db", "web"}, loom.Unsolvable, []string{"1000"}},
	} {
		_, err := b.begin(loom.ChangeRemoveServices, id, clusters.ChangeInput{Services: c.names})
		wantKind(t, err, c.kind)
		if err := says(err, c.texts...); err != nil {
			t.Error(err)
		}
	}
	// STOP and REMOVE are those of the version that was there.
	v = b.previewOf(loom.ChangeRemoveServices, b.made(2), clusters.ChangeInput{Services: []string{"db"}})
	same(t, "tasks", steps(v.Plan), []string{"stop db@1000"})
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(4)
	_, err := b.begin(loom.ChangeUpgrade, id, clusters.ChangeInput{})
	wantKind(t, err, loom.Invalid)
	if err := says(err, "services", "Nothing is newer"); err != nil {
		t.Error(err)
	}
	newer := role("web")
	newer.DefaultConfig = map[string]any{"web": map[string]any{"threads": 8, "port": 1}}
	start := newer.Provisioner.Actions[loom.ActionStart]
	start.Type = "chef-solo"
	newer.Provisioner.Actions[loom.ActionStart] = start
	b.save(b.tenant, loom.KindService, newer)
	v := b.previewOf(loom.ChangeUpgrade, id, clusters.ChangeInput{Batch: 2})
	if !strings.HasPrefix(v.Summary(), "Brings 1 service to the newest version, runs ") || v.ByAction[loom.ActionStop] != 3 || v.ByAction[loom.ActionInstall] != 3 {
		t.Errorf("summary %q, %v", v.Summary(), v.ByAction)
	}
	var web []clusters.Change
	for _, c := range v.Changes {
		if c.Name == "web" {
			web = append(web, c)
		}
	}
	if len(web) != 3 || web[0].Change != "restart" || web[0].Old != 2 || web[0].New != 3 || web[0].Node != 1001 {
		t.Errorf("changes %+v", v.Changes)
	}
	ref, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	if err != nil {
		t.Fatal(err)
	}
	if was := b.before(ref).Services["web"]; was.Version != 2 {
		t.Errorf("before: web %d", was.Version)
	}
	// STOP is that of the version which runs.
	if n := b.count(`SELECT count(*) FROM tasks WHERE operation_id = (SELECT max(id) FROM operations) AND action = 'stop' AND NOT old`); n != 0 {
		t.Errorf("%d STOP of the new version", n)
	}
	b.runTasks("")
	now := b.shape(id)
	if !slices.Contains(now.Services, "web 3") || !slices.Contains(now.Services, "db 2") || !strings.Contains(now.Nodes[1], "chef-solo") || strings.Contains(now.Nodes[0], "chef-solo") {
		t.Errorf("%+v", now)
	}
	config, _ := now.Config["web"].(map[string]any)
	if config["threads"] == nil || config["port"] == nil || now.Configs != 2 {
		t.Errorf("config %v, %d revisions", now.Config, now.Configs)
	}
	// Only those named.
	b.renew("web")
	b.renew("db")
	b.alter(loom.ChangeUpgrade, id, clusters.ChangeInput{Services: []string{"db"}})
	if now := b.shape(id); !slices.Contains(now.Services, "web 3") || !slices.Contains(now.Services, "db 3") {
		t.Errorf("%+v", now)
	}
	for _, c := range []struct {
		in    clusters.ChangeInput
		kind  loom.Kind
		texts []string
	}{
		{clusters.ChangeInput{Services: []string{"db"}}, loom.Invalid, []string{"services", "Nothing is newer"}},
		{clusters.ChangeInput{Services: []string{"ghost"}}, loom.NotFound, []string{"services", "ghost"}},
		{clusters.ChangeInput{Batch: 3}, loom.Invalid, []string{"minHealthy", "takes down 3 of the 3 nodes with “web”"}},
		{clusters.ChangeInput{Batch: -1}, loom.Invalid, []string{"batch"}},
		{clusters.ChangeInput{MinHealthy: new(4)}, loom.Invalid, []string{"minHealthy", "at least 4"}},
		{clusters.ChangeInput{OnFailure: "panic"}, loom.Invalid, []string{"onFailure"}},
	} {
		_, err := b.begin(loom.ChangeUpgrade, id, c.in)
		wantKind(t, err, c.kind)
		if err := says(err, c.texts...); err != nil {
			t.Error(err)
		}
	}
	// The new definition counts, also for what stays.
	rival := role("web")
	rival.Dependencies.Conflicts = []string{"db"}
	b.save(b.tenant, loom.KindService, rival)
	_, err = b.begin(loom.ChangeUpgrade, id, clusters.ChangeInput{})
	wantKind(t, err, loom.Unsolvable)
	if err := says(err, "db"); err != nil {
		t.Error(err)
	}
}
