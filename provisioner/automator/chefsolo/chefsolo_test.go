package chefsolo

import (
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// contractStub shows that the commands and files are right, not that a cookbook
// converges.
//
//go:embed testdata/contract-chef-solo.sh
var contractStub string

type machine struct {
	t     *testing.T
	s     *sshtest.Server
	conn  *remote.Conn
	files string
	sink  *sshtest.Record
}

// newMachine returns a machine; stub is the text of its chef-solo, "" for none.
func newMachine(t *testing.T, user, stub string) *machine {
	t.Helper()
	s := sshtest.Start(t, sshtest.Options{Isolated: true, Config: []string{"SetEnv PATH=/var/lib/stub:/usr/sbin:/usr/bin:/sbin:/bin"}})
	dial := func(user string) *remote.Conn {
		conn, err := remote.Dial(t.Context(), remote.Target{Reach: loom.Anywhere(), Address: s.Address, Port: s.Port, User: user, Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	text := `echo 'Defaults secure_path="/var/lib/stub:/usr/sbin:/usr/bin:/sbin:/bin"' >/etc/sudoers.d/path && chmod 0440 /etc/sudoers.d/path`
	if stub != "" {
		text += "\nmkdir -p /var/lib/stub && cat >/var/lib/stub/chef-solo && chmod 0755 /var/lib/stub/chef-solo"
	}
	if _, err := dial("root").Run(t.Context(), "set-up", remote.Command{Text: text, Stdin: strings.NewReader(stub)}); err != nil {
		t.Fatal(err)
	}
	return &machine{t: t, s: s, conn: dial(user), files: t.TempDir(), sink: &sshtest.Record{}}
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

func specOf(fields map[string]string) *loom.TaskSpec {
	return &loom.TaskSpec{
		Ref:    loom.TaskRef{Operation: loom.OperationRef{Cluster: 12, Number: 1}, Number: 34},
		Action: loom.ActionStart, Node: "n1", NodeNumber: 1000, Hostname: "shop12-1000.example.net", Services: []string{"base", "site"},
		Addresses: map[string]string{loom.AccessV4: "203.0.113.21"},
		Provider:  loom.Provider{Type: "local", Fields: map[string]any{"api_password": "s3cret-of-api"}},
		Config:    map[string]any{"nginx": map[string]any{"port": 80, "users": []any{"a", "b"}}, "coopr": map[string]any{"kept": true}},
		Nodes:     map[loom.NodeID]loom.NodeProperties{"n1": {Hostname: "shop12-1000.example.net"}}, Results: map[string]any{},
		Service: &loom.TaskService{Name: "site", Action: loom.ServiceAction{Type: TypeName, Fields: fields}},
	}
}

func (m *machine) run(fields map[string]string) loom.TaskResult {
	m.t.Helper()
	r, err := New().Run(m.t.Context(), specOf(fields), m.conn, m.files, m.sink)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, left := range []string{"cache/loom/00000012-001-034.json", "etc/chef/encrypted_data_bag_secret"} {
		if info, err := os.Lstat(filepath.Join(m.s.Dir, left)); err == nil && info.Mode().IsRegular() {
			m.t.Errorf("%s is still on the machine", left)
		}
	}
	return r
}

func (m *machine) kept(name string) string {
	data, _ := os.ReadFile(filepath.Join(m.s.Dir, "lib/contract", name))
	return strings.TrimSpace(string(data))
}

func TestContractOfChefSolo(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", sshtest.SudoUser} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, user, contractStub)
			m.resource("cookbooks/nginx/recipes/default.rb", "# nginx")
			m.resource("cookbooks/coopr_service_manager/recipes/default.rb", "# services")
			m.resource("roles/site.json", `{"name": "site"}`)
			m.resource("data_bags/users/ana.json", "{}")
			m.resource("secrets/bags", "the key of the bags")
			if r := m.bootstrap(map[string]string{"chef_distribution": "preinstalled"}); r.Status != 0 {
				t.Fatalf("bootstrap gave %+v\n%s", r, m.sink.Text())
			}
			fields := map[string]string{"run_list": " recipe[nginx::default], role[site] ,recipe[coopr_service_manager::default] ", "chef_license": "accept-silent",
				"json_attributes": `{"coopr": {"node": {"services": {"nginx": "start"}}}, "nginx": {"users": ["b", "c"], "port": 8080}}`}
			for range 2 {
				if r := m.run(fields); r.Status != 0 {
					t.Fatalf("the run gave %+v\n%s", r, m.sink.Text())
				}
			}
			if m.kept("lists") != "recipe[nginx::default],role[site],recipe[coopr_service_manager::default]\nrecipe[nginx::default],role[site],recipe[coopr_service_manager::default]" {
				t.Errorf("run lists are %q", m.kept("lists"))
			}
			if m.kept("secret") != "the key of the bags" || m.kept("license") != "accept-silent" {
				t.Errorf("secret %q, license %q", m.kept("secret"), m.kept("license"))
			}
			checkAttributes(t, m.kept("attributes.json"))

			if r := m.run(map[string]string{"run_list": "recipe[gone]"}); r.Status == 0 || !strings.Contains(r.Message, "exited with 1") {
				t.Errorf("a recipe that is not there gave %+v", r)
			}
			if err := os.RemoveAll(filepath.Join(m.files, "cookbooks/nginx")); err != nil {
				t.Fatal(err)
			}
			if r := m.bootstrap(nil); r.Status != 0 {
				t.Fatalf("the second bootstrap gave %+v", r)
			}
			if r := m.run(map[string]string{"run_list": "nginx"}); r.Status == 0 {
				t.Error("a cookbook that was taken away is still on the machine")
			}
		})
	}
}

// checkAttributes looks at what cookbooks are promised.
func checkAttributes(t *testing.T, text string) {
	t.Helper()
	var a map[string]any
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "s3cret-of-api") {
		t.Error("a credential of the provider is in the attributes")
	}
	dig := func(keys ...string) any {
		var v any = a
		for _, key := range keys {
			m, _ := v.(map[string]any)
			v = m[key]
		}
		return v
	}
	for _, c := range []struct {
		keys []string
		want any
	}{
		{[]string{"nginx", "port"}, 8080.0}, {[]string{"nginx", "users"}, []any{"a", "b", "c"}},
		{[]string{"coopr", "kept"}, true}, {[]string{"coopr", "node", "services", "nginx"}, "start"},
		{[]string{"coopr", "cluster", "nginx", "port"}, 8080.0}, {[]string{"coopr", "cluster", "nodes", "n1", "hostname"}, "shop12-1000.example.net"},
		{[]string{"loom", "cluster", "nodes", "n1", "hostname"}, "shop12-1000.example.net"}, {[]string{"coopr", "hostname"}, "shop12-1000.example.net"},
		{[]string{"loom", "clusterId"}, "00000012"}, {[]string{"coopr", "ipaddresses", "access_v4"}, "203.0.113.21"},
		{[]string{"coopr", "services"}, []any{"base", "site"}},
	} {
		if got := dig(c.keys...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v is %v, not %v", c.keys, got, c.want)
		}
	}
}

func TestMachineWithoutChef(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("chef-solo"); err == nil {
		t.Skip("chef-solo is on this host")
	}
	m := newMachine(t, "root", "")
	if r := m.bootstrap(map[string]string{"chef_distribution": "preinstalled"}); r.Status == 0 || !strings.Contains(r.Message, "no chef-solo") {
		t.Errorf("bootstrap gave %+v", r)
	}
	if r := m.run(map[string]string{"run_list": "nginx"}); r.Status == 0 || !strings.Contains(r.Message, "bootstrapped") {
		t.Errorf("a run gave %+v", r)
	}
}

// A real chef-solo of this host converges a cookbook that writes a file.
func TestRealChef(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("chef-solo"); err != nil {
		t.Skip("no chef-solo on this host; the contract stub says what it can")
	}
	m := newMachine(t, "root", "")
	m.resource("cookbooks/page/metadata.rb", "name 'page'\nversion '1.0.0'\n")
	m.resource("cookbooks/page/recipes/default.rb", "file '/var/lib/page' do\n  content node['coopr']['hostname']\nend\n")
	m.bootstrap(nil)
	if r := m.run(map[string]string{"run_list": "recipe[page]", "chef_license": "accept-silent"}); r.Status != 0 {
		t.Fatalf("the run gave %+v\n%s", r, m.sink.Text())
	}
	if data, _ := os.ReadFile(filepath.Join(m.s.Dir, "lib/page")); string(data) != "shop12-1000.example.net" {
		t.Errorf("the page is %q", data)
	}
}

func TestFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for _, list := range []string{"", " ", "recipe[a],", "recipe[a b];reboot", "recipe[$(id)]", "profile[x]"} {
		if got, err := runList(list); err == nil {
			t.Errorf("%q was read as %q", list, got)
		}
	}
	for _, fields := range []map[string]string{{"chef_distribution": "x"}, {"chef_version": "1;2"}, {"installer_url": "ftp://x"}} {
		if _, err := installation(fields); err == nil {
			t.Errorf("%v was taken", fields)
		}
	}
	config, attributes := map[string]any{"a": map[string]any{"b": 1, "c": 2}}, map[string]any{"a": map[string]any{"b": 1, "d": 3}}
	if err := clash("", config, attributes); err != nil {
		t.Error(err)
	}
	attributes["a"].(map[string]any)["c"] = 3
	if err := clash("", config, attributes); err == nil || !strings.Contains(err.Error(), "a.c") {
		t.Errorf("a clash gave %v", err)
	}
}
