package puppet

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// machine is a host with the real puppet.
type machine struct {
	t     *testing.T
	s     *sshtest.Server
	conn  *remote.Conn
	files string
	sink  *sshtest.Record
}

func newMachine(t *testing.T, user string) *machine {
	t.Helper()
	if _, err := exec.LookPath("puppet"); err != nil {
		if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
			t.Fatal("puppet is not installed (package puppet-agent)")
		}
		t.Skip("puppet is not installed (package puppet-agent)")
	}
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	conn, err := remote.Dial(t.Context(), remote.Target{Reach: loom.Anywhere(), Address: s.Address, Port: s.Port, User: user, Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &machine{t: t, s: s, conn: conn, files: t.TempDir(), sink: &sshtest.Record{}}
}

func (m *machine) resource(name, content string) {
	m.t.Helper()
	path := filepath.Join(m.files, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) bootstrap(fields map[string]string) loom.TaskResult {
	m.t.Helper()
	r, err := New().Bootstrap(m.t.Context(), &loom.TaskSpec{BootstrapFields: map[string]map[string]string{TypeName: fields}}, m.conn, m.files, m.sink)
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

func (m *machine) run(action loom.TaskAction, fields map[string]string) loom.TaskResult {
	m.t.Helper()
	r, err := New().Run(m.t.Context(), specOf(action, fields), m.conn, m.files, m.sink)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(m.s.Dir, "cache/loom/puppet/run/00000012-001-034")); err == nil {
		m.t.Error("the files of the run are still on the machine")
	}
	return r
}

func specOf(action loom.TaskAction, fields map[string]string) *loom.TaskSpec {
	return &loom.TaskSpec{
		Ref:    loom.TaskRef{Operation: loom.OperationRef{Cluster: 12, Number: 1}, Number: 34},
		Action: action, Node: "n1", Hostname: "shop12-1000.example.net", Services: []string{"site"},
		Addresses: map[string]string{loom.AccessV4: "203.0.113.21"},
		Provider:  loom.Provider{Type: "local", Fields: map[string]any{"api_password": "s3cret-of-api"}},
		Config:    map[string]any{"site": map[string]any{"port": 8080}, "site::root": "/var/lib/site", "site::greeting": "of the cluster"},
		Nodes:     map[loom.NodeID]loom.NodeProperties{"n1": {Hostname: "shop12-1000.example.net"}}, Results: map[string]any{},
		Service: &loom.TaskService{Name: "site", Action: loom.ServiceAction{Type: TypeName, Fields: fields}},
	}
}

const siteClass = `class site(String $root, String $greeting, String $colour = 'none') {
  file { $root: ensure => directory }
  file { "${root}/page":
    content => "${facts['loom']['action']} on ${facts['loom']['hostname']}: ${greeting}, ${colour}, port ${facts['loom']['cluster']['site']['port']}\n",
  }
}
`

func TestRealPuppet(t *testing.T) {
	t.Parallel()
	m := newMachine(t, sshtest.SudoUser)
	m.resource("modules/site/manifests/init.pp", siteClass)
	m.resource("manifests/site.pp", "include site\n")
	m.resource("manifests/broken.pp", "file { '/nonexistent/dir/x': content => 'y' }\n")
	m.resource("hiera/lab/hiera.yaml", "version: 5\nhierarchy:\n  - name: lab\n    path: common.yaml\n")
	m.resource("hiera/lab/data/common.yaml", "site::colour: blue\nsite::greeting: of the lab\n")
	if r := m.bootstrap(map[string]string{"puppet_distribution": "preinstalled"}); r.Status != 0 {
		t.Fatalf("bootstrap gave %+v\n%s", r, m.sink.Text())
	}
	page := func() string {
		data, _ := os.ReadFile(filepath.Join(m.s.Dir, "lib/site/page"))
		return string(data)
	}
	if r := m.run(loom.ActionConfigure, map[string]string{"manifest": "site.pp", "hiera_resource": "lab", "parameters": `{"site::greeting": "of the action"}`}); r.Status != 0 || r.Message != "changed" {
		t.Fatalf("the first run gave %+v\n%s", r, m.sink.Text())
	}
	if got := page(); got != "configure on shop12-1000.example.net: of the action, blue, port 8080\n" {
		t.Errorf("the page is %q", got)
	}
	if r := m.run(loom.ActionConfigure, map[string]string{"manifest": "site.pp", "hiera_resource": "lab", "parameters": `{"site::greeting": "of the action"}`}); r.Status != 0 || r.Message != "nothing to change" {
		t.Errorf("the second run gave %+v", r)
	}
	if r := m.run(loom.ActionInstall, map[string]string{"classes": "site"}); r.Status != 0 || page() != "install on shop12-1000.example.net: of the cluster, none, port 8080\n" {
		t.Errorf("classes gave %+v, the page is %q", r, page())
	}
	if r := m.run(loom.ActionInstall, map[string]string{"manifest": "broken.pp"}); r.Status == 0 || !strings.Contains(r.Message, "exited with 4") {
		t.Errorf("a failing manifest gave %+v", r)
	}
	if r := m.run(loom.ActionInstall, map[string]string{"classes": "absent"}); r.Status == 0 || !strings.Contains(r.Message, "exited with 1") {
		t.Errorf("a class that is not there gave %+v", r)
	}
	for _, name := range []string{"manifest", "hiera_resource"} {
		fields := map[string]string{"classes": "site", name: "gone.pp"}
		if name == "manifest" {
			delete(fields, "classes")
		}
		if r := m.run(loom.ActionInstall, fields); r.Status == 0 || !strings.Contains(r.Message, "“gone.pp” is not on the machine") {
			t.Errorf("a %s that is not there gave %+v", name, r)
		}
	}
	if strings.Contains(m.sink.Text(), "s3cret-of-api") {
		t.Error("a credential of the provider is in the output")
	}

	// Resources that went away are not on the machine any longer.
	if err := os.RemoveAll(filepath.Join(m.files, "modules/site")); err != nil {
		t.Fatal(err)
	}
	if r := m.bootstrap(nil); r.Status != 0 {
		t.Fatalf("the second bootstrap gave %+v", r)
	}
	if r := m.run(loom.ActionInstall, map[string]string{"manifest": "site.pp"}); r.Status == 0 {
		t.Error("a module that was taken away still works")
	}
}

func TestRealPuppetSystemService(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "root")
	script := "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: looper\n# Default-Start: 2\n# Default-Stop: 0\n### END INIT INFO\ncase $1 in\nstart) echo on >/var/lib/looper ;;\nstop) rm -f /var/lib/looper ;;\nstatus) [ -e /var/lib/looper ] || exit 3 ;;\nesac\n"
	if _, err := m.conn.Run(t.Context(), "set-up", remote.Command{Text: "mkdir -p /etc/init.d && cat >/etc/init.d/looper && chmod 0755 /etc/init.d/looper", Stdin: strings.NewReader(script)}); err != nil {
		t.Fatal(err)
	}
	if r := m.bootstrap(nil); r.Status != 0 {
		t.Fatalf("bootstrap gave %+v", r)
	}
	state := filepath.Join(m.s.Dir, "lib/looper")
	for range 2 {
		if r := m.run(loom.ActionStart, map[string]string{"service_name": "looper"}); r.Status != 0 {
			t.Fatalf("start gave %+v\n%s", r, m.sink.Text())
		}
		if _, err := os.Stat(state); err != nil {
			t.Fatal("the service does not run:", err)
		}
	}
	if r := m.run(loom.ActionStop, map[string]string{"service_name": "looper"}); r.Status != 0 {
		t.Fatalf("stop gave %+v\n%s", r, m.sink.Text())
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("the service still runs")
	}
}

func TestFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for _, fields := range []map[string]string{
		{}, {"manifest": "../x"}, {"manifest": "a.pp", "classes": "b"}, {"classes": "web', exec{'x"}, {"classes": "Web"},
		{"classes": "web", "parameters": "[]"}, {"classes": "web", "parameters": "{} x"}, {"classes": "web", "environment": "a b"},
		{"classes": "web", "hiera_resource": "../../etc"}, {"service_name": "x"},
	} {
		if _, err := parse(specOf(loom.ActionInstall, fields)); err == nil {
			t.Errorf("%v was taken", fields)
		}
	}
	for _, fields := range []map[string]string{{"puppet_distribution": "x"}, {"puppet_major": "8; reboot"}, {"installer_url": "file:///x"}} {
		if _, err := installation(fields); err == nil {
			t.Errorf("%v was taken", fields)
		}
	}
}

// The fact holds what manifests are promised, and no credentials.
func TestFactOfARun(t *testing.T) {
	t.Parallel()
	spec := specOf(loom.ActionStart, map[string]string{"classes": "web"})
	a, err := parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := a.files(spec)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(archive), "s3cret-of-api") {
		t.Error("the fact holds a credential")
	}
	_, rest, _ := strings.Cut(string(archive), `{"loom":`)
	var told map[string]any
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&told); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"clusterId", "hostname", "ipaddresses", "services", "service", "action", "cluster", "nodes"} {
		if told[key] == nil {
			t.Errorf("the fact has no %s: %v", key, told)
		}
	}
}
