//go:build e2e

package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"loom/app/api/wire"
	"loom/app/loom"
)

// archive packs a folder as the resource of a type of format archive, under the
// name of its top folder.
func archive(t *testing.T, name string, folder fs.FS) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	err := fs.WalkDir(folder, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, file)
		if err == nil {
			err = packed.WriteHeader(&tar.Header{Name: path.Join(name, file), Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
		}
		if err == nil {
			_, err = packed.Write(content)
		}
		return err
	})
	for _, end := range []func() error{packed.Close, zipped.Close} {
		if e := end(); err == nil {
			err = e
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// text reads a file beside the tests.
func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The programs that stand for Chef and docker, and where machines have them.
const (
	chefStub   = "../../provisioner/automator/chefsolo/testdata/contract-chef-solo.sh"
	dockerStub = "../../provisioner/automator/docker/testdata/contract-docker.sh"

	equipment = `set -e
mkdir -p /var/lib/stub /var/lib/contract
[ ! -e /opt/equipment/chef-solo ] || install -m 0755 /opt/equipment/chef-solo /usr/bin/chef-solo
[ ! -e /opt/equipment/converge ] || install -m 0755 /opt/equipment/converge /var/lib/contract/converge
[ ! -e /opt/equipment/docker ] || install -m 0755 /opt/equipment/docker /usr/bin/docker
[ ! -e /opt/equipment/engine ] || install -m 0755 /opt/equipment/engine /var/lib/stub/engine`

	// puppetImage holds the real Puppet of Debian.
	puppetImage = "bookworm:haproxy,nginx-light,puppet-agent"
)

// way is one automator's way to the services of the web cluster.
type way struct {
	name, imageType string
	// actions of a service, from the seeded ones.
	actions func(service string, seeded map[string]any) map[string]any
	cluster string
}

func action(kind string, fields map[string]string) any {
	return map[string]any{"type": kind, "fields": fields}
}

// ways returns the four. Chef and docker are contract stubs on the machines: what they
// are told is what the real ones would be told, how they do it is not.
func ways() []*way {
	return []*way{
		{name: "shell", imageType: "debian12", actions: func(_ string, seeded map[string]any) map[string]any { return seeded }},
		{name: "chef-solo by the contract stub", imageType: "debian12", actions: func(service string, _ map[string]any) map[string]any {
			recipe := map[string]string{"nginx": "recipe[site::web]", "haproxy": "recipe[site::balancer]"}[service]
			chef := func(list, attributes string) any {
				return action("chef-solo", map[string]string{"run_list": list, "json_attributes": attributes, "chef_distribution": "preinstalled"})
			}
			return map[string]any{"install": chef(recipe, ""), "configure": chef(recipe, ""), "start": chef(recipe+", recipe[site::service]", `{"site": {"unit": "`+service+`"}}`)}
		}},
		{name: "puppet", imageType: "debian12-bare", actions: func(service string, _ map[string]any) map[string]any {
			return map[string]any{
				"configure": action("puppet", map[string]string{"manifest": "site.pp", "puppet_distribution": "preinstalled"}),
				"start":     action("puppet", map[string]string{"service_name": service}),
			}
		}},
		{name: "docker by the contract stub", imageType: "debian12", actions: func(service string, seeded map[string]any) map[string]any {
			fields := map[string]map[string]string{
				"nginx":   {"image_name": "site/web:1", "publish_ports": "80", "volumes": "/etc/nginx:/etc/nginx,/var/www/loom:/var/www/loom"},
				"haproxy": {"image_name": "site/balancer:1", "publish_ports": "80,8404", "volumes": "/etc/haproxy:/etc/haproxy"},
			}[service]
			// A container has nothing to configure; the files that are mounted have.
			return map[string]any{"install": action("docker", fields), "configure": seeded["configure"], "start": action("docker", fields), "stop": action("docker", fields)}
		}},
	}
}

// served is what a visitor of a web cluster can tell of it.
type served struct {
	title, host, by      string
	health, balancer     string
	statistics, machines int
}

// visit looks at a cluster from outside; what differs from cluster to cluster by
// right, the names of its machines, is only compared with what they should be.
func visit(t *testing.T, c wire.Cluster) (seen served) {
	t.Helper()
	front := "http://" + address(t, c, "haproxy")
	answer, err := plain.Get(front + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if names := hostnames(c, "nginx"); slices.Contains(names, answer.Header.Get("X-Served-By")) {
		seen.by = "a web server of the cluster"
	}
	_, body, err := fetch(front + "/")
	if err != nil {
		t.Fatal(err)
	}
	if m := servedBy.FindStringSubmatch(body); m != nil && slices.Contains(hostnames(c, "nginx"), m[1]) {
		seen.host = "a web server of the cluster"
	}
	_, rest, _ := strings.Cut(body, "<h1>")
	seen.title, _, _ = strings.Cut(rest, "</h1>")
	_, seen.health, _ = fetch(front + "/healthz")
	_, seen.balancer, _ = fetch("http://" + address(t, c, "nginx") + "/healthz")
	seen.statistics, _, _ = fetch(front + ":8404/")
	seen.machines = len(c.Nodes)
	return seen
}

// TestEveryAutomator carries the starter catalog's web cluster out four times: by the
// seeded shell scripts, by chef-solo (a contract stub), by the real puppet and by
// docker (a contract stub). Visitors cannot tell the four clusters apart.
func TestEveryAutomator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "LOOM_PROVIDER_NETWORKS=10.0.0.0/8")
	w.up()
	h := w.hostMachines()
	user, admin := w.user(), w.client("demo", "admin", "admin")
	const folder = "testdata/automators/"
	tools := map[string]string{"chef-solo": text(t, chefStub), "converge": text(t, folder+"converge.py"), "docker": text(t, dockerStub), "engine": text(t, folder+"engine.sh")}
	lines := ""
	for _, m := range h.pool("equipped", starterImage, equipment, tools, 6) {
		lines += m.Address + " image=equipped\n"
	}
	for _, m := range h.pool("puppet", puppetImage, "", nil, 2) {
		lines += m.Address + " image=puppet\n"
	}
	admin.resource("providertypes", "static", "ssh_keys", keyResource, h.key.PEM)
	admin.resource("automatortypes", "chef-solo", "cookbooks", "site", archive(t, "site", os.DirFS(folder+"cookbook")))
	admin.resource("automatortypes", "puppet", "modules", "site", archive(t, "site", os.DirFS(folder+"module")))
	admin.resource("automatortypes", "puppet", "manifests", "site.pp", text(t, folder+"site.pp"))
	admin.sync()
	admin.call("PUT", "/v2/providers/pool", map[string]any{"name": "pool", "providertype": "static", "provisioner": map[string]any{"hosts": lines, "ssh_key_resource": keyResource}}, nil)
	admin.offers("pool", "local-small", "any", "debian12", "equipped")
	admin.offers("pool", "local-small", "any", "debian12-bare", "puppet")

	seeded := map[string]map[string]any{}
	all := ways()
	for _, way := range all {
		for _, name := range []string{"nginx", "haproxy"} {
			var service map[string]any
			admin.call("GET", "/v2/services/"+name, nil, &service)
			provisioner := service["provisioner"].(map[string]any)
			if seeded[name] == nil {
				seeded[name] = provisioner["actions"].(map[string]any)
			}
			provisioner["actions"] = way.actions(name, seeded[name])
			admin.call("PUT", "/v2/services/"+name, service, nil)
		}
		way.cluster = user.create("web-cluster", 2, map[string]any{"name": "site-" + strings.Fields(way.name)[0], "provider": "pool", "imagetype": way.imageType,
			"config": map[string]any{"web": map[string]any{"title": "The one site"}, "haproxy": map[string]any{"backends": "%join(map(ip.service.nginx,'$'),' ')%"}}})
	}
	want := served{title: "The one site", host: "a web server of the cluster", by: "a web server of the cluster", health: "ok\n", balancer: "ok\n", statistics: http.StatusOK, machines: 2}
	for _, way := range all {
		t.Run(way.name, func(t *testing.T) {
			user.waitActive(way.cluster)
			c := user.cluster(way.cluster)
			w.servesFromAll(c)
			if got := visit(t, c); got != want {
				t.Errorf("visitors see %+v, want %+v", got, want)
			}
			user.carriedOut(way)
		})
	}
	for _, way := range all {
		user.remove(way.cluster)
	}
}

// carriedOut checks that the services came by the automator in question, as the logs
// of their tasks say, and not by another one.
func (c *client) carriedOut(way *way) {
	c.t.Helper()
	says := map[string]string{"shell": "running nginx.sh", "chef-solo": "converging recipe[site::", "puppet": "applying manifest site.pp", "docker": "docker pull site/"}
	kind := strings.Fields(way.name)[0]
	found := 0
	for _, task := range c.tasks(way.cluster, 1) {
		if !slices.Contains([]loom.TaskAction{loom.ActionInstall, loom.ActionConfigure}, task.Action) {
			continue
		}
		log := c.taskLog(way.cluster, 1, task.Number)
		if strings.Contains(log, says[kind]) {
			found++
		}
	}
	if found == 0 {
		c.t.Errorf("%s: no log says %q", way.name, says[kind])
	}
}
