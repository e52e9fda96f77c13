package docker

import (
	_ "embed"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// contractStub is a program in the place of docker that keeps containers as files
// and refuses what the real one refuses. It shows that the commands are right, not
// that an image runs.
//
//go:embed testdata/contract-docker.sh
var contractStub string

// host is a machine with the contract stub.
type host struct {
	t       *testing.T
	server  *sshtest.Server
	conn    *remote.Conn
	results map[string]any
	sink    *sshtest.Record
}

func newHost(t *testing.T, user string) *host {
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
	out, err := dial("root").Run(t.Context(), "set-up", remote.Command{Stdin: strings.NewReader(contractStub), Text: `
mkdir -p /var/lib/stub && cat >/var/lib/stub/docker && chmod 0755 /var/lib/stub/docker
echo 'Defaults secure_path="/var/lib/stub:/usr/sbin:/usr/bin:/sbin:/bin"' >/etc/sudoers.d/path && chmod 0440 /etc/sudoers.d/path`})
	if err != nil {
		t.Fatal(err, out)
	}
	return &host{t: t, server: s, conn: dial(user), results: map[string]any{}, sink: &sshtest.Record{}}
}

// file reads what the stub keeps.
func (h *host) file(name string) string {
	data, _ := os.ReadFile(filepath.Join(h.server.Dir, "lib", "stub", name))
	return string(data)
}

func (h *host) do(action loom.TaskAction, service string, fields map[string]string) loom.TaskResult {
	h.t.Helper()
	spec := &loom.TaskSpec{Action: action, Services: []string{"db", "web"}, Results: h.results,
		Service: &loom.TaskService{Name: service, Action: loom.ServiceAction{Type: TypeName, Fields: fields}}}
	r, err := New().Run(h.t.Context(), spec, h.conn, "", h.sink)
	if err != nil {
		h.t.Fatal(err)
	}
	for key, value := range r.Result {
		if h.results[key] = value; value == nil {
			delete(h.results, key)
		}
	}
	return r
}

func (h *host) must(action loom.TaskAction, service string, fields map[string]string) {
	h.t.Helper()
	if r := h.do(action, service, fields); r.Status != 0 {
		h.t.Fatalf("%s of %s gave %+v\n%s", action, service, r, h.sink.Text())
	}
}

func TestContractLifeOfAContainer(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", sshtest.SudoUser} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, user)
			if r, err := New().Bootstrap(t.Context(), &loom.TaskSpec{}, h.conn, "", h.sink); err != nil || r.Status != 0 {
				t.Fatalf("bootstrap gave %+v, %v", r, err)
			}
			db := map[string]string{"image_name": "registry.lab/mysql:8", "publish_ports": "3306", "volumes": "/var/lib/stub/data:/var/lib/mysql",
				"environment_variables": `MYSQL_ROOT_PASSWORD="top,secret", TZ=UTC`}
			web := map[string]string{"image_name": "site", "publish_ports": "80:8080, 53/udp", "links": "db", "command": "serve --name 'a b'"}
			h.must(loom.ActionInstall, "db", db)
			if _, err := os.Stat(filepath.Join(h.server.Dir, "lib", "stub", "data")); err != nil {
				t.Error("the directory of the volume was not made:", err)
			}
			h.must(loom.ActionConfigure, "db", db)
			h.must(loom.ActionInitialize, "db", db)
			h.must(loom.ActionStart, "db", db)
			h.must(loom.ActionStart, "db", db) // again
			h.must(loom.ActionInstall, "web", web)
			h.must(loom.ActionStart, "web", web)
			if got := h.results["ports"]; !reflect.DeepEqual(got, []int{53, 80, 3306}) {
				t.Errorf("ports are %v", got)
			}
			if log := h.file("calls"); strings.Contains(log, "secret") || strings.Count(log, "run|") != 2 || !strings.Contains(log, "|--link|loom-db:db|") {
				t.Errorf("calls:\n%s", log)
			}
			if env := h.file("containers/loom-db/env"); env != "MYSQL_ROOT_PASSWORD=top,secret\nTZ=UTC\n" {
				t.Errorf("variables are %q", env)
			}
			if command := h.file("containers/loom-web/args"); !strings.HasSuffix(command, "|site|serve|--name|a b|\n") {
				t.Errorf("the command is %q", command)
			}
			first := h.results["registry.lab/mysql:8"].(map[string]any)["id"]

			db["environment_variables"] = "TZ=CET"
			h.must(loom.ActionStart, "db", db)
			if h.file("containers/loom-db/env") != "TZ=CET\n" || h.results["registry.lab/mysql:8"].(map[string]any)["id"] == first {
				t.Error("other fields did not make another container")
			}
			if r := h.do(loom.ActionStart, "other", map[string]string{"image_name": "x", "publish_ports": "80"}); r.Status == 0 || !strings.Contains(r.Message, "port 80") {
				t.Errorf("a taken port gave %+v", r)
			}

			h.must(loom.ActionStop, "web", web)
			if got := h.results["ports"]; !reflect.DeepEqual(got, []int{3306}) || h.file("containers/loom-web/state") != "exited\n" {
				t.Errorf("after the stop ports are %v, the container is %q", got, h.file("containers/loom-web/state"))
			}
			h.must(loom.ActionStart, "web", web)
			if h.file("containers/loom-web/state") != "running\n" {
				t.Error("the container did not start again")
			}
			h.must(loom.ActionRemove, "web", web)
			h.must(loom.ActionRemove, "web", web)
			h.must(loom.ActionStop, "web", web)
			if _, there := h.results["site"]; there || h.file("containers/loom-web/state") != "" {
				t.Errorf("the removed container left %v", h.results)
			}
		})
	}
}

func TestContractFailures(t *testing.T) {
	t.Parallel()
	h := newHost(t, "root")
	if r := h.do(loom.ActionInstall, "web", map[string]string{"image_name": "missing/image"}); r.Status == 0 || !strings.Contains(r.Message, "manifest unknown") {
		t.Errorf("an image that is not there gave %+v", r)
	}
	for _, fields := range []map[string]string{
		{}, {"image_name": "a;rm -rf /"}, {"image_name": "a", "restart_policy": "never"}, {"image_name": "a", "volumes": "data:/x"},
		{"image_name": "a", "publish_ports": "http"}, {"image_name": "a", "publish_ports": "1:99999999"}, {"image_name": "a", "links": "--privileged"},
		{"image_name": "a", "environment_variables": "no value"}, {"image_name": "a", "environment_variables": `A="open`},
	} {
		if r := h.do(loom.ActionStart, "web", fields); r.Status == 0 || r.Retryable == nil || *r.Retryable || !strings.Contains(r.Message, "field") {
			t.Errorf("%v gave %+v", fields, r)
		}
	}
	if _, err := h.conn.Run(t.Context(), "set-up", remote.Command{Text: "echo down >/var/lib/stub/down"}); err != nil {
		t.Fatal(err)
	}
	if r, err := New().Bootstrap(t.Context(), &loom.TaskSpec{}, h.conn, "", h.sink); err != nil || r.Status == 0 || !strings.Contains(r.Message, "does not answer") {
		t.Errorf("an engine that is down gave %+v, %v", r, err)
	}
	if _, err := h.conn.Run(t.Context(), "set-up", remote.Command{Text: "rm /var/lib/stub/docker; [ ! -e /usr/bin/docker ]"}); err == nil {
		if r, err := New().Bootstrap(t.Context(), &loom.TaskSpec{}, h.conn, "", h.sink); err != nil || r.Status == 0 || !strings.Contains(r.Message, "no docker") {
			t.Errorf("a machine without docker gave %+v, %v", r, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a/b:1", `A=1,B="2,3"`, "80:8080,53", "/a:/b", "x:y")
	f.Fuzz(func(t *testing.T, image, environment, ports, volumes, links string) {
		c, err := parse(map[string]string{"image_name": image, "environment_variables": environment, "publish_ports": ports, "volumes": volumes, "links": links})
		if err != nil {
			return
		}
		for _, item := range c.Environment {
			if strings.ContainsAny(item, "\n\x00") || !strings.Contains(item, "=") {
				t.Errorf("variable %q of %q", item, environment)
			}
		}
		if strings.HasPrefix(c.Image, "-") {
			t.Errorf("image %q", c.Image)
		}
	})
}
