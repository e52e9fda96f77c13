package clusters_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

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
	var web []clusters.ChangeLine
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

// script stores a version of the script of a service; live puts it in use.
func (b *bundle) script(service string, version int, content string, live bool) {
	b.t.Helper()
	b.file("shell/scripts/"+service+".sh", version, content, live)
}

// file is script for a file of any automator, by its key.
func (b *bundle) file(key string, version int, content string, live bool) {
	b.t.Helper()
	b.stage(key, version, content, live)
	if live {
		b.sync()
	}
}

// stage stores a version of a file of an automator, and stages it if asked to.
func (b *bundle) stage(key string, version int, content string, staged bool) {
	b.t.Helper()
	parts := strings.Split(key, "/")
	b.exec(func(tx *sqlx.Tx) error {
		ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: parts[0], Type: parts[1], Name: parts[2]}
		r := loom.Resource{ResourceRef: ref, Version: version, Format: "file", SHA256: content, Object: fmt.Sprint(key, version)}
		if _, err := store.InsertResource(b.ctx, tx, b.tenant, r); err != nil || !staged {
			return err
		}
		return store.SlateResource(b.ctx, tx, b.tenant, ref, version, true)
	})
}

// sync puts the staged files in use.
func (b *bundle) sync() {
	b.t.Helper()
	b.exec(func(tx *sqlx.Tx) error {
		_, err := store.NewResourceSet(b.ctx, tx, b.tenant)
		return err
	})
}

// nothingNewer checks that a cluster cannot be upgraded.
func (b *bundle) nothingNewer(when string, id loom.ClusterID) {
	b.t.Helper()
	_, err := b.begin(loom.ChangeUpgrade, id, clusters.ChangeInput{})
	if err := says(err, "services", "Nothing is newer"); err != nil {
		b.t.Errorf("%s: %v", when, err)
	}
}

// newerFiles returns what an upgrade of a cluster would say of the files of services.
func (b *bundle) newerFiles(id loom.ClusterID) string {
	b.t.Helper()
	newer, err := b.clusters.Newer(b.ctx, b.ana(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, e := range newer {
		for _, f := range e.Files {
			all = append(all, e.Name+": "+f)
		}
	}
	return strings.Join(all, ", ")
}

// scripted is a cluster with scripts in version 1, and a mock that runs these.
func (b *bundle) scripted() (loom.ClusterID, *mock) {
	b.t.Helper()
	b.withRoles()
	m := b.mock()
	m.scripts = map[string]int{}
	for _, service := range []string{"base", "db", "web"} {
		b.script(service, 1, service+" one", true)
		m.scripts[service] = 1
	}
	id := b.create(b.ana(), 3).Cluster
	m.run(nil)
	return id, m
}

// TestReleasedFilesMakeClustersUpgradable: a file that is in use in another version than
// when a service was set up makes its clusters upgradable, and the upgrade runs what another
// version of the service would run.
func TestReleasedFilesMakeClustersUpgradable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, m := b.scripted()
	b.nothingNewer("after the create", id)
	b.script("web", 2, "web two", false)
	b.nothingNewer("with a file that is not in use", id)
	b.script("web", 3, "web one", true)
	b.nothingNewer("with the same content under another number", id)
	b.script("web", 4, "web four", true)
	if got := b.newerFiles(id); got != "web: web.sh v4" {
		t.Errorf("newer files: %s", got)
	}
	_, err := b.clusters.Newer(b.ctx, loom.Actor{Tenant: "t2", TenantName: "other", User: "eve", Role: loom.RoleAdmin}, id)
	wantKind(t, err, loom.NotFound)
	if err := says(func() error {
		_, err := b.begin(loom.ChangeUpgrade, id, clusters.ChangeInput{Services: []string{"db"}})
		return err
	}(), "services", "Nothing is newer"); err != nil {
		t.Error(err)
	}
	v := b.previewOf(loom.ChangeUpgrade, id, clusters.ChangeInput{})
	for _, c := range v.Changes {
		if c.Name == "web" && (c.Change != "restart" || c.Because != "Newer files: web.sh v4." || c.Old != nil) {
			t.Errorf("change %+v", c)
		}
	}
	if !strings.HasPrefix(v.Summary(), "Brings 1 service to the newest version") {
		t.Errorf("summary %q", v.Summary())
	}
	m.scripts["web"] = 4
	m.starts(clusters.PreviewInput{Kind: loom.ChangeUpgrade, Cluster: id})
	m.run(nil)
	same(t, "tasks of web", slices.DeleteFunc(m.ran, func(s string) bool { return !strings.HasSuffix(s, "web") }),
		[]string{"stop 1001 web", "install 1001 web", "configure 1001 web", "start 1001 web", "stop 1002 web", "install 1002 web", "configure 1002 web", "start 1002 web"})
	b.nothingNewer("after the upgrade", id)

	// A restart runs the new start alone; what was installed is older still.
	b.script("db", 2, "db two", true)
	m.scripts["db"] = 2
	if _, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: loom.ChangeRestart}); err != nil {
		t.Fatal(err)
	}
	m.run(nil)
	if got := b.newerFiles(id); got != "db: db.sh v2" {
		t.Errorf("newer files after a restart: %s", got)
	}
	// What is withdrawn is nothing newer.
	b.db.MustExec(`UPDATE resources SET live = false WHERE name = 'db.sh'`)
	b.nothingNewer("without the file", id)
}

// TestReleasedCookbooksAndModulesMakeClustersUpgradable: the files of all automators count, as
// loom.ResourceRef.UsedBy says.
func TestReleasedCookbooksAndModulesMakeClustersUpgradable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plugin, key string
		fields      map[string]string
	}{
		{"chef-solo", "chef-solo/cookbooks/nginx", map[string]string{"run_list": "nginx::default"}},
		{"chef-solo", "chef-solo/data_bags/users", map[string]string{"run_list": "nginx"}},
		{"puppet", "puppet/modules/web", map[string]string{"classes": "web::service"}},
	} {
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.withRoles()
			s := role("web")
			s.Provisioner.Actions[loom.ActionInstall] = loom.ServiceAction{Type: c.plugin, Fields: c.fields}
			b.save(b.tenant, loom.KindService, s)
			b.file(c.key, 1, "one", true)
			m := b.mock()
			m.files = func(s step) map[string]int {
				if s.Service != "web" || s.Action != string(loom.ActionInstall) {
					return nil
				}
				return map[string]int{c.key: 1}
			}
			id := b.create(b.ana(), 3).Cluster
			m.run(nil)
			b.nothingNewer("after the create", id)
			b.file(c.key, 2, "two", true)
			if got, want := b.newerFiles(id), "web: "+c.key[strings.LastIndex(c.key, "/")+1:]+" v2"; got != want {
				t.Errorf("newer files: %q, want %q", got, want)
			}
			if v := b.previewOf(loom.ChangeUpgrade, id, clusters.ChangeInput{}); v.ByAction[loom.ActionInstall] != 2 {
				t.Errorf("an upgrade does %v", v.ByAction)
			}
		})
	}
}

// TestReleasedFilesAfterAFailure: what came into use after a service failed, and which its
// failed action runs, is what a retry is offered with.
func TestReleasedFilesAfterAFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	b.save(loom.SuperTenant, loom.KindAutomatorType, &loom.PluginType{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}},
		Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{"script": {Type: "text", ResourceType: "scripts"}}}}})
	for _, service := range []string{"base", "db", "web"} {
		b.script(service, 1, service+" one", true)
	}
	m := b.mock()
	ref := b.create(b.ana(), 3)
	m.run(func(s step) bool { return s.Service == "web" && s.Action == string(loom.ActionStart) })
	released := func(when, want string) {
		t.Helper()
		files, err := b.clusters.ReleasedFiles(b.ctx, b.ana(), ref)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, fmt.Sprintf("%s: %s %d → %d", f.Service, f.Name, f.Used, f.Version))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	released("after the failure", "")
	b.script("web", 2, "web two", false)
	released("with a file that is not in use", "")
	b.script("db", 2, "db two", true)
	released("with a file of another service", "")
	b.script("web", 3, "web one", true)
	released("with the same content under another number", "")
	b.script("web", 4, "web four", true)
	released("with a file in use", "web: web.sh 1 → 4")
	_, err := b.clusters.ReleasedFiles(b.ctx, loom.Actor{Tenant: "t2", TenantName: "other", User: "eve", Role: loom.RoleAdmin}, ref)
	wantKind(t, err, loom.NotFound)
}

// TestLabelsAreNoUpgrade: what people see makes no cluster upgradable, what machines run does.
func TestLabelsAreNoUpgrade(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withRoles()
	id := b.made(3)
	for what, change := range map[string]func(*loom.Service){
		"label": func(s *loom.Service) { s.Label = "Web server" }, "description": func(s *loom.Service) { s.Description = "It serves." },
		"icon": func(s *loom.Service) { s.Icon = "globe" }, "deprecated": func(s *loom.Service) { s.Deprecated = true },
		"nothing": func(s *loom.Service) { s.DefaultConfig, s.Follows = map[string]any{}, []string{} },
	} {
		s := role("web")
		change(s)
		b.save(b.tenant, loom.KindService, s)
		b.nothingNewer(what, id)
	}
	for what, change := range map[string]func(*loom.Service){
		"an action": func(s *loom.Service) {
			s.Provisioner.Actions[loom.ActionInstall] = loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": "web.sh", "args": "other"}}
		},
		"config":       func(s *loom.Service) { s.DefaultConfig = map[string]any{"web": map[string]any{"threads": 9}} },
		"dependencies": func(s *loom.Service) { s.Dependencies.Runtime.Uses = []string{"db"} },
	} {
		s := role("web")
		change(s)
		b.save(b.tenant, loom.KindService, s)
		if v := b.previewOf(loom.ChangeUpgrade, id, clusters.ChangeInput{}); v.ByAction[loom.ActionInstall] != 2 {
			t.Errorf("%s: %v", what, v.ByAction)
		}
	}
}

// TestUpgradeOfFilesHasWaysOut: an upgrade for files alone that fails is retried, taken back
// by itself or rolled back like any other, wherever it fails.
func TestUpgradeOfFilesHasWaysOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, m := b.scripted()
	version := 1
	for _, action := range []loom.TaskAction{loom.ActionStop, loom.ActionInstall, loom.ActionConfigure, loom.ActionStart} {
		for _, node := range []int{1001, 1002} {
			for _, way := range []string{"retry", "rollback", "undo"} {
				what := fmt.Sprintf("%s at %s on %d", way, action, node)
				version++
				b.script("web", version, fmt.Sprint("web ", version), true)
				m.scripts["web"] = version
				fails := func(s step) bool {
					return !s.Undo && s.Action == string(action) && s.Service == "web" && s.Node == node
				}
				in := clusters.PreviewInput{Kind: loom.ChangeUpgrade, Cluster: id}
				if way == "undo" {
					in.Change.OnFailure = loom.OnFailureUndo
				}
				ref := b.starts(in)
				m.run(fails)
				if way == "undo" {
					if op := b.latest(id); op.Status != loom.OperationRolledBack {
						t.Fatalf("%s: the operation is %s: %s", what, op.Status, op.Message)
					}
				} else {
					var err error
					if way == "retry" {
						_, err = b.retryOf(b.ana(), ref, clusters.ChangeInput{})
					} else {
						_, err = b.rollbackOf(b.ana(), ref)
					}
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					m.run(nil)
				}
				c := b.cluster(id)
				if c.Status != loom.ClusterActive {
					t.Fatalf("%s: the cluster is %s: %s", what, c.Status, c.Latest.Message)
				}
				for _, n := range c.Nodes {
					if n.ServiceStates["web"] != "" && n.ServiceStates["web"] != loom.ServiceStarted {
						t.Errorf("%s: web on %d is %s; ran %q", what, n.Number, n.ServiceStates["web"], m.ran)
					}
				}
				if way == "retry" {
					b.nothingNewer(what, id)
				} else if i := slices.IndexFunc(m.ran, func(s string) bool {
					return node == 1001 && strings.HasSuffix(s, " 1002 web") && !strings.Contains(s, "configure")
				}); i >= 0 {
					t.Errorf("%s: %s, though that node was not reached; ran %q", what, m.ran[i], m.ran)
				}
				if b.newerFiles(id) != "" { // where it went back before it came that far
					b.starts(clusters.PreviewInput{Kind: loom.ChangeUpgrade, Cluster: id})
					m.run(nil)
				}
				b.nothingNewer(what+", upgraded", id)
			}
		}
	}
}
