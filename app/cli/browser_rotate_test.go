//go:build e2e && browser

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"loom/app/api/wire"
	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/ocean"
)

// TestBrowserRotate replaces the token of a provider with running clusters: at the cloud,
// which refuses the old one from then on, and then on the provider's page. Whatever is
// done with the machines that the old token made succeeds with the new one.
func TestBrowserRotate(t *testing.T) {
	t.Parallel()
	j := newJourney(t, browser.Options{}, "LOOM_ALLOW_INSECURE_ENDPOINTS=true", "LOOM_PROVIDER_NETWORKS=127.0.0.0/8,10.0.0.0/8")
	h := j.hostMachines()
	user, admin, super := j.user(), j.client("demo", "admin", "admin"), j.client("superadmin", "admin", "admin")
	offers := clouds(t, h)
	droplets := offers[slices.IndexFunc(offers, func(o *offer) bool { return o.name == "digitalocean" })]
	droplets.enter(h, admin)
	admin.offers(droplets.name, "local-medium", droplets.flavor, "debian12", droplets.image)
	admin.call("POST", "/v2/clustertemplates", `{"name": "small-cluster", "defaults": {"services": ["nginx"], "provider": "digitalocean",
		"hardwaretype": "local-small", "imagetype": "debian12", "config": {"web": {"title": "Small"}}},
		"compatibility": {"hardwaretypes": ["local-small", "local-medium"], "imagetypes": ["debian12"], "services": ["nginx"]},
		"constraints": {"size": {"min": 1, "max": 5}}, "administration": {"leaseduration": {"initial": 0, "max": 0, "step": 0}}}`, nil)
	admin.sync()
	id, goes := user.create("small-cluster", 1, nil), user.create("small-cluster", 1, map[string]any{"name": "goes"})
	user.waitActive(id)
	user.waitActive(goes)

	// Until the provider gets the new token, a delete leaves its machine behind.
	droplets.rotate()
	user.call("DELETE", "/v2/clusters/"+goes, nil, nil)
	user.waitStatus(goes, loom.ClusterIncomplete)
	var left []wire.LeftBehind
	if super.call("GET", "/v2/leftovers", nil, &left); len(left) != 1 || left[0].Cluster != goes {
		t.Errorf("left behind: %+v", left)
	}
	j.signIn("admin")
	j.b.Open(j.url + "/admin/providers/digitalocean")
	j.hands.Activate("Edit", "a[href='/admin/providers/digitalocean/edit']")
	j.at("the editor", `/edit$`)
	j.hands.Activate("Replace", "details:has(input[name='provisioner.api_password']) > summary")
	j.hands.Fill("the token", "input[name='provisioner.api_password']", ocean.NextToken)
	j.hands.Activate("Save", "#editor .c-form-bar button[data-kind=primary]")
	j.at("the provider", `^/admin/providers/digitalocean$`)
	j.b.WaitText("Saved the provider digitalocean as version 2.")

	// The sweep for leftovers, which also runs when an instance starts, ends the delete.
	first := j.processes[0]
	first.kill(t, syscall.SIGTERM)
	first.waitEnd(t)
	j.up()
	j.eventually("the end of the leftover", func() error {
		if s := user.cluster(goes).Status; s != loom.ClusterTerminated {
			return fmt.Errorf("cluster %s is %s", goes, s)
		}
		return nil
	})
	j.removeDouble(super, droplets.cloud, user.cluster(id).Nodes[0])

	user.change(id, "repair", map[string]any{"nodes": []loom.NodeID{user.cluster(id).Nodes[0].ID}})
	user.change(id, "resize", map[string]any{"hardwaretype": "local-medium"})

	cluster := "/clusters/" + id
	j.b.Open(j.url + cluster + "/scale")
	j.hands.Fill("the number of nodes", "#f-numMachines", "2")
	j.b.WaitText("Adds 1 node")
	j.hands.Activate("Preview", "form[action='/previews'] button[data-kind=primary]")
	preview := j.at("the preview", `^/previews/`)
	j.hands.Activate("Scale", "form[action='"+preview+"/apply'] button[data-kind=primary]")
	j.at("the cluster", `^`+cluster+`$`)
	user.waitActive(id)
	for _, web := range addresses(t, user.cluster(id), "nginx") {
		if _, body, err := fetch("http://" + web + "/"); err != nil || !strings.Contains(body, "Small") {
			t.Errorf("%s answers %v %s", web, err, body)
		}
	}
	// One of each cluster, the double, and what came by repair, resize and expand.
	if n := droplets.cloud.Counts(); n.Live != 2 || n.Created != 6 {
		t.Errorf("the cloud counts %+v", n)
	}
	j.b.Open(j.url + cluster)
	j.remove(id, user.cluster(id).Name)
	j.quiet()
}

// removeDouble makes a second machine of a node at the cloud, as a request whose answer
// was lost does. The administrator's search finds it, and a superadmin removes it.
func (j *journey) removeDouble(super *client, cloud *fakecloud.Cloud, node wire.Node) {
	j.t.Helper()
	machines := cloud.Machines()
	own := machines[slices.IndexFunc(machines, func(m fakecloud.Machine) bool { return m.Key == loom.IdempotencyKey(node.ID, node.Incarnation) })]
	double, err := cloud.Make(context.Background(), fakecloud.Machine{ID: "3164%04d", Key: own.Key, Name: own.Name, Flavor: own.Flavor, Image: own.Image, Words: own.Words})
	if err != nil {
		j.t.Fatal(err)
	}
	j.b.Open(j.url + "/admin/providers/digitalocean/orphans")
	j.hands.Activate("Look now", "form[action='/admin/providers/digitalocean/orphans'] button[type=submit]")
	j.b.WaitText(double.ID)
	var orphans []wire.Orphan
	if super.call("GET", "/v2/orphans", nil, &orphans); len(orphans) != 1 || orphans[0].Machine != double.ID {
		j.t.Fatalf("orphans: %+v, want %s", orphans, double.ID)
	}
	super.call("DELETE", "/v2/orphans/"+orphans[0].ID, nil, nil)
	if ids := cloud.ByKey()[own.Key]; !slices.Equal(ids, []string{own.ID}) {
		j.t.Errorf("the node has the machines %v, want %s", ids, own.ID)
	}
}
