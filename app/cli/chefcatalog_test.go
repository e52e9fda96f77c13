//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"loom/app/api/wire"
	"loom/app/loom"
	"loom/app/testkit"
)

// TestHadoopDistributedByTheContractStub makes the large cluster of the
// predecessor's catalog, which is no part of Loom, with its own chef-solo services.
func TestHadoopDistributedByTheContractStub(t *testing.T) {
	t.Parallel()
	folder := testkit.Catalog(t)
	newKitchen(t, folder, "hadoop-distributed", 5).cook()
}

// TestChefCatalogByTheContractStub does the same with a small catalog that uses all
// that run lists, attributes and macros can do.
func TestChefCatalogByTheContractStub(t *testing.T) {
	t.Parallel()
	k := newKitchen(t, "testdata/ledger", "ledger", 4)
	k.cook()
	// By hand, besides what the test works out by itself.
	worker := nodeOf(t, k.cluster, 1003)
	for _, r := range k.records[worker.ID] {
		if r.task.Service != "ledger-worker" {
			continue
		}
		threads := map[bool]string{true: "16", false: "4"}[r.task.Action == loom.ActionConfigure]
		for path, want := range map[string]any{
			"workers.count": "3", "workers.instance": "worker-3", "workers.threads": threads, "texts.share": "100% of 3 by user", "texts.date": "%%Y-%%m-%%d",
			"texts.discount": "50% off", "texts.money": "$3", "texts.adjacent": "user3", "texts.mail": "user@ledger.example",
			"absent.audit": "%host.service.ledger-audit%:9000", "absent.none": "0", "absent.both": "%host.service.ledger-audit% beside " + nodeOf(t, k.cluster, 1000).Properties.Hostname,
			"store.me": worker.Properties.Hostname, "coopr.hostname": worker.Properties.Hostname, "loom.hostname": worker.Properties.Hostname,
		} {
			if got := valueAt(r.attributes, path); got != want {
				t.Errorf("%s: %s is %v, want %v", r.task.Action, path, got, want)
			}
		}
	}
	for i, link := range k.cluster.Links {
		want := []string{"http://" + nodeOf(t, k.cluster, 1000).Properties.Addresses[loom.AccessV4] + ":8080/user", "http://" + nodeOf(t, k.cluster, 1002).Properties.Hostname + "/"}[i]
		if link.URL != want {
			t.Errorf("link %s leads to %s, want %s", link.Label, link.URL, want)
		}
	}
}

// valueAt reads a path of a JSON object.
func valueAt(object map[string]any, path string) any {
	first, rest, deeper := strings.Cut(path, ".")
	if inner, ok := object[first].(map[string]any); ok && deeper {
		return valueAt(inner, rest)
	}
	return object[first]
}

// kitchen is a catalog of chef-solo services, with machines that have the contract
// stub of Chef.
type kitchen struct {
	t        *testing.T
	w        *world
	h        *hostMachines
	folder   string
	template loom.Template
	services map[string]loom.Service
	machines []machine
	count    int

	cluster wire.Cluster
	config  map[string]any
	// records is what reached the machines, by node.
	records map[loom.NodeID][]record
}

// record is one run of Chef, as the machine saw it.
type record struct {
	file, list string
	attributes map[string]any
	task       wire.Task
}

// keepCalls writes down what the stub was told, once for each task.
const keepCalls = `#!/bin/sh
mkdir -p /var/lib/contract/calls
file=/var/lib/contract/calls/$(basename "$1")
[ ! -e "$file" ] || { echo "$1 was carried out before" >&2; exit 1; }
{ printf '%s\n' "$3"; cat "$1"; echo; } >"$file"
`

func newKitchen(t *testing.T, folder, template string, machines int) *kitchen {
	t.Helper()
	k := &kitchen{t: t, w: newWorld(t, "LOOM_PROVIDER_NETWORKS=10.0.0.0/8"), folder: folder, count: machines, services: map[string]loom.Service{}, records: map[loom.NodeID][]record{}}
	in := realInput(t, folder, template)
	k.template, k.services = in.Template, in.Catalog
	k.w.up()
	k.h = k.w.hostMachines()
	return k
}

var listed = regexp.MustCompile(`(recipe|role)\[([^\]]+)\]`)

// stock makes the cookbooks and roles that the services name, as resources. They
// are empty: nobody cooks here.
func (k *kitchen) stock(admin *client) {
	k.t.Helper()
	books := map[string]fstest.MapFS{}
	roles := map[string]bool{}
	for _, s := range k.services {
		for _, a := range s.Provisioner.Actions {
			for _, item := range listed.FindAllStringSubmatch(a.Fields["run_list"], -1) {
				if item[1] == "role" {
					roles[item[2]] = true
					continue
				}
				book, recipe, named := strings.Cut(item[2], "::")
				if !named {
					recipe = "default"
				}
				if books[book] == nil {
					books[book] = fstest.MapFS{"metadata.rb": {Data: []byte("name '" + book + "'\n")}}
				}
				books[book]["recipes/"+recipe+".rb"] = &fstest.MapFile{Data: []byte("# for a test\n")}
			}
		}
	}
	for name, files := range books {
		admin.resource("automatortypes", "chef-solo", "cookbooks", name, archive(k.t, name, files))
	}
	for name := range roles {
		admin.resource("automatortypes", "chef-solo", "roles", name+".json", `{"name": "`+name+`", "run_list": []}`)
	}
	k.t.Logf("%d cookbooks and %d roles for %d services", len(books), len(roles), len(k.services))
}

// cook makes the cluster on machines of the provider that the template names and
// checks what reached them.
func (k *kitchen) cook() {
	t, admin, user := k.t, k.w.client("demo", "admin", "admin"), k.w.user()
	t.Helper()
	k.w.loom("seed", "--tenant", "demo", k.folder)
	k.stock(admin)
	k.machines = k.h.pool("rack", starterImage, equipment, map[string]string{"chef-solo": text(t, chefStub), "converge": keepCalls}, k.count)
	provider := k.template.Defaults.Provider
	admin.resource("providertypes", "static", "ssh_keys", keyResource, k.h.key.PEM)
	admin.sync()
	admin.call("PUT", "/v2/providers/"+provider, map[string]any{"name": provider, "providertype": "static",
		"provisioner": map[string]any{"hosts": hostLines(k.machines), "ssh_key_resource": keyResource}}, nil)
	id := user.create(k.template.Name, k.count, map[string]any{"name": "kitchen"})
	user.waitActive(id)
	k.cluster = user.cluster(id)
	user.call("GET", "/v2/clusters/"+id+"/config", nil, &k.config)
	k.collect(user.tasks(id, 1))
	k.check()
	user.remove(id)
}

// collect reads the records of all machines and finds the task of each.
func (k *kitchen) collect(tasks []wire.Task) {
	k.t.Helper()
	byFile := map[string]wire.Task{}
	for _, task := range tasks {
		byFile[fmt.Sprintf("%s-001-%03d.json", k.cluster.ID, task.Number)] = task
	}
	for _, n := range k.cluster.Nodes {
		for _, m := range k.machines {
			if m.Address != n.Properties.Addresses[loom.AccessV4] {
				continue
			}
			lines := strings.Split(strings.TrimSpace(k.h.read(m, `cd /var/lib/contract/calls && for f in *; do echo "$f"; cat "$f"; done`)), "\n")
			for ; len(lines) >= 3; lines = lines[3:] {
				r := record{file: lines[0], list: lines[1], task: byFile[lines[0]]}
				if err := json.Unmarshal([]byte(lines[2]), &r.attributes); err != nil {
					k.t.Fatalf("%s: %v", r.file, err)
				}
				if r.task.Node != n.ID {
					k.t.Errorf("%s on node %d is of another node", r.file, n.Properties.Number)
				}
				k.records[n.ID] = append(k.records[n.ID], r)
			}
		}
	}
}

// check compares the records with the catalog: every action of every service that
// the catalog defines reached its nodes once, with its run list and its attributes.
func (k *kitchen) check() {
	t := k.t
	t.Helper()
	runs, values, macros := 0, 0, 0
	for _, n := range k.cluster.Nodes {
		seen := map[string]record{}
		for _, r := range k.records[n.ID] {
			seen[r.task.Service+" "+string(r.task.Action)] = r
		}
		wanted := 0
		for _, s := range n.Services {
			service := k.services[s.Name]
			for _, action := range []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart} {
				if !service.Defines(action) {
					continue
				}
				wanted++
				r, ok := seen[s.Name+" "+string(action)]
				if !ok {
					t.Errorf("%s of %s never reached node %d", action, s.Name, n.Properties.Number)
					continue
				}
				fields := service.Provisioner.Actions[action].Fields
				if list := strings.Join(strings.Fields(fields["run_list"]), ""); r.list != list {
					t.Errorf("%s of %s ran %s, the catalog says %s", action, s.Name, r.list, list)
				}
				v, m := k.compare(n, service.Name, r, fields["json_attributes"])
				values, macros, runs = values+v, macros+m, runs+1
			}
		}
		if len(k.records[n.ID]) != wanted {
			t.Errorf("node %d was cooked %d times, the catalog says %d", n.Properties.Number, len(k.records[n.ID]), wanted)
		}
	}
	t.Logf("%d runs on %d nodes, %d values of the config and of attributes, %d of them with macros", runs, len(k.cluster.Nodes), values, macros)
	if macros == 0 {
		t.Error("no macro reached any machine")
	}
}

// compare checks the attributes of one run against the config of the catalog with
// its macros worked out here, the attributes of the action laid over it, and what
// cookbooks may know of the cluster. It counts values, and those with macros.
func (k *kitchen) compare(n wire.Node, service string, r record, attributes string) (values, macros int) {
	k.t.Helper()
	own := map[string]any{}
	if strings.TrimSpace(attributes) != "" {
		if err := json.Unmarshal([]byte(attributes), &own); err != nil {
			k.t.Fatal(err)
		}
	}
	m := macroFacts{k.cluster, n}
	expanded := m.walk(k.config, func(before, after string) {
		if values++; before != after {
			macros++
		}
	}).(map[string]any)
	config := laid(expanded, own)
	cluster := laid(config, nil)
	var services []any
	for _, s := range n.Services {
		services = append(services, s.Name)
	}
	addresses := map[string]any{}
	for kind, address := range n.Properties.Addresses {
		addresses[kind] = address
	}
	for _, top := range []string{"coopr", "loom"} {
		told, _ := r.attributes[top].(map[string]any)
		inner, _ := told["cluster"].(map[string]any)
		k.checkNodes(asObject(inner["nodes"]))
		delete(inner, "nodes")
		config[top] = laid(asObject(config[top]), map[string]any{"cluster": cluster, "services": services, "hostname": n.Properties.Hostname,
			"clusterId": k.cluster.ID, "ipaddresses": addresses})
	}
	if differ(config, r.attributes) {
		want, _ := json.Marshal(config)      //nolint:errcheck // plain values
		got, _ := json.Marshal(r.attributes) //nolint:errcheck // plain values
		k.t.Errorf("%s of %s on node %d got\n%s\nwant\n%s", r.task.Action, service, n.Properties.Number, got, want)
	}
	return values, macros
}

// checkNodes checks what a cookbook is told of the nodes of the cluster.
func (k *kitchen) checkNodes(told map[string]any) {
	k.t.Helper()
	for _, n := range k.cluster.Nodes {
		one := asObject(told[string(n.ID)])
		services, _ := one["services"].([]any)
		if one["hostname"] != n.Properties.Hostname || valueAt(one, "ipaddresses."+loom.BindV4) != n.Properties.Addresses[loom.BindV4] ||
			fmt.Sprint(one["nodenum"]) != strconv.Itoa(n.Properties.Number) || len(services) != len(n.Services) {
			k.t.Errorf("of node %d cookbooks are told %v", n.Properties.Number, one)
		}
	}
	if len(told) != len(k.cluster.Nodes) {
		k.t.Errorf("cookbooks are told of %d nodes, want %d", len(told), len(k.cluster.Nodes))
	}
}
