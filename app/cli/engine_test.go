//go:build e2e

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"loom/app/api/wire"
	"loom/app/loom"
	"loom/provisioner/automator/docker/enginetest"
	"loom/provisioner/remote"
)

// giveBack is the clean-up script that docs/plugins/docker.md has for hosts with Docker; it
// stops the balancer, too, which is no container.
func giveBack(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(text(t, "../../docs/plugins/docker.md"), "```sh\n")
	script, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/plugins/docker.md has no clean-up script")
	}
	return script + "service haproxy stop\n"
}

// TestRealDocker takes the web cluster of the starter catalog, whose web servers are
// containers of real engines, through create, expand, upgrade and delete.
func TestRealDocker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "LOOM_PROVIDER_NETWORKS=10.0.0.0/8")
	yard := enginetest.Start(t, enginetest.Docker, 3)
	hosts := ""
	for _, m := range yard.Machines {
		yard.Image(m, "site/web:1", "One")
		yard.Image(m, "site/web:2", "Two")
		hosts += m.Address + "\n"
	}
	// containers gives what engines say of all their containers, by address.
	containers := func() map[string]string {
		found := map[string]string{}
		for _, m := range yard.Machines {
			out, err := yard.Dial(m, "root").Run(t.Context(), "look", remote.Command{Text: "docker ps -a --format '{{.Image}} {{.Names}} {{.State}}'"})
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.TrimSpace(out.Stdout); text != "" {
				found[m.Address] = text
			}
		}
		return found
	}

	w.up()
	user, admin := w.user(), w.client("demo", "admin", "admin")
	admin.resource("providertypes", "static", "ssh_keys", keyResource, yard.Key.PEM)
	admin.resource("providertypes", "static", "scripts", "give-back.sh", giveBack(t))
	admin.sync()
	admin.call("PUT", "/v2/providers/docker-hosts", map[string]any{"name": "docker-hosts", "providertype": "static",
		"provisioner": map[string]any{"hosts": hosts, "ssh_key_resource": keyResource, "cleanup_script": "give-back.sh"}}, nil)
	admin.offers("docker-hosts", "local-small", "any", "debian12", "any")
	image := func(tag string) {
		var service map[string]any
		admin.call("GET", "/v2/services/nginx", nil, &service)
		run := action("docker", map[string]string{"image_name": "site/web:" + tag, "publish_ports": "80", "volumes": "/etc/hostname:/etc/machine-name"})
		service["provisioner"].(map[string]any)["actions"] = map[string]any{"install": run, "start": run, "stop": run, "remove": run}
		admin.call("PUT", "/v2/services/nginx", service, nil)
	}
	image("1")

	// serves looks at the cluster as visitors do, at each web server and at all engines.
	serves := func(c wire.Cluster, tag, title string, servers int) {
		t.Helper()
		w.servesFromAll(c)
		want := map[string]string{}
		for _, server := range addresses(t, c, "nginx") {
			want[server] = fmt.Sprintf("site/web:%s loom-nginx running", tag)
			_, body, err := fetch("http://" + server + "/")
			if err != nil || !strings.Contains(body, "<h1>"+title+"</h1>") {
				t.Errorf("%s shows %q, %v", server, body, err)
			}
		}
		if got := containers(); len(want) != servers || !maps.Equal(got, want) {
			t.Errorf("containers %v, want %d: %v", got, servers, want)
		}
	}
	id := user.create("web-cluster", 2, map[string]any{"provider": "docker-hosts", "services": []string{"haproxy", "nginx"}})
	user.waitActive(id)
	serves(user.cluster(id), "1", "One", 1)

	user.change(id, "expand", map[string]any{"numMachines": 3})
	c := user.cluster(id)
	serves(c, "1", "One", 2)

	image("2")
	front := "http://" + address(t, c, "haproxy") + "/"
	var tasks []wire.Task
	w.whileServing(front, func() { tasks = user.change(id, "upgrade", map[string]any{"services": []string{"nginx"}}) })
	serves(user.cluster(id), "2", "Two", 2)
	if !slices.ContainsFunc(tasks, func(task wire.Task) bool { return task.Service == "nginx" && task.Action == loom.ActionInstall }) {
		t.Errorf("the upgrade installed nothing: %v", tasks)
	}

	user.remove(id)
	if left := containers(); len(left) > 0 {
		t.Errorf("the deleted cluster left %v", left)
	}
	if _, body, err := fetch(front); err == nil {
		t.Errorf("the deleted cluster answers %s", body)
	}
}
