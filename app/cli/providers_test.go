//go:build e2e

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/api/wire"
	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/ec2"
	"loom/provisioner/fakecloud/gce"
	"loom/provisioner/fakecloud/ocean"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/fakecloud/triton"
)

// keyResource is the name of the key that opens all machines of these tests.
const keyResource = "lab-key"

// offer is a provider of the catalog, with what stands for its cloud.
type offer struct {
	name          string
	fields        map[string]any
	flavor, image string
	// cloud is its fake cloud, nil where there is no API; make and remove are its
	// operations, throttle how it refuses a call as too many.
	cloud        *fakecloud.Cloud
	make, remove string
	throttle     fakecloud.Fault
	// before does harm before a phase, after looks at the end what came of it; held
	// gives the keys of the nodes that something is held for. They are for offers
	// without a fake cloud.
	before func(phase string)
	after  func()
	// rotate replaces the credentials at the cloud, after which the old ones are refused,
	// and gives the fields that change; nil where there is nothing to replace.
	rotate func() map[string]any
	held   func() []string

	// cluster is the one made here, nodes those that it has had.
	cluster string
	nodes   map[loom.NodeID]bool
}

// clouds returns the providers with an API, each in front of a fake cloud whose
// servers are machines of this host.
func clouds(t *testing.T, h *hostMachines) []*offer {
	t.Helper()
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.key.Authorized))
	if err != nil {
		t.Fatal(err)
	}
	google, amazon, keystone, rackspace, droplets := gce.New(), ec2.New(), stack.New(), stack.NewRackspace(), ocean.New()
	triangle := triton.New(public.(ssh.CryptoPublicKey).CryptoPublicKey())
	admin := h.w.client("demo", "admin", "admin")
	rotated := func(rotate func(), fields map[string]any) func() map[string]any {
		return func() map[string]any { rotate(); return fields }
	}
	offers := []*offer{
		{name: "aws", flavor: ec2.Size, image: ec2.Image, make: "RunInstances", remove: "TerminateInstances",
			throttle: fakecloud.Fault{Status: 503, Code: "RequestLimitExceeded", Message: "Request limit exceeded."},
			fields: map[string]any{"api_user": ec2.KeyID, "api_password": ec2.Secret, "ssh_keypair": ec2.KeyPair, "aws_region": "us-east-1",
				"security_groups": ec2.Group, "subnet_id": ""},
			rotate: rotated(amazon.Rotate, map[string]any{"api_user": ec2.NextKeyID, "api_password": ec2.NextSecret})},
		{name: "openstack", flavor: stack.Flavor, image: stack.Image, make: stack.Create, remove: stack.Delete, throttle: fakecloud.Fault{Status: 429, RetryAfter: "1"},
			fields: map[string]any{"api_user": stack.User, "api_password": stack.Password, "openstack_tenant": stack.Project, "ssh_keypair": stack.KeyPair},
			rotate: rotated(keystone.Rotate, map[string]any{"api_password": stack.NextPassword})},
		{name: "rackspace", flavor: stack.Flavor, image: stack.Image, make: stack.Create, remove: stack.Delete, throttle: fakecloud.Fault{Status: 413, RetryAfter: "1"},
			fields: map[string]any{"api_user": stack.User, "api_password": stack.APIKey, "rackspace_region": "dfw", "ssh_keypair": stack.KeyPair},
			rotate: rotated(rackspace.Rotate, map[string]any{"api_password": stack.NextPassword})},
		{name: "google", flavor: gce.Size, image: gce.Image, make: gce.Insert, remove: gce.Delete, throttle: fakecloud.Fault{Status: 403, Code: "rateLimitExceeded"},
			fields: map[string]any{"google_project": gce.Project, "api_key_resource": "account", "zone_name": gce.Zone, "google_data_disk_size_gb": "20"},
			rotate: func() map[string]any {
				admin.resource("providertypes", "google", "api_keys", "account-2", string(google.Rotate()))
				admin.sync()
				return map[string]any{"api_key_resource": "account-2"}
			}},
		{name: "joyent", flavor: triton.Package, image: triton.Image, make: triton.Create, remove: triton.Delete, throttle: fakecloud.Fault{Status: 429},
			fields: map[string]any{"api_user": triton.Login, "ssh_keypair": triton.KeyName},
			rotate: rotated(triangle.Rotate, map[string]any{"ssh_keypair": triton.NextKeyName})},
		{name: "digitalocean", flavor: ocean.Size, image: ocean.Image, make: ocean.Create, remove: ocean.Delete, throttle: fakecloud.Fault{Status: 429, RetryAfter: "1"},
			fields: map[string]any{"api_password": ocean.Token, "ssh_keypair": ocean.KeyName, "digitalocean_region": ocean.Region},
			rotate: rotated(droplets.Rotate, map[string]any{"api_password": ocean.NextToken})},
	}
	dialects := []fakecloud.Dialect{amazon, keystone, rackspace, google, triangle, droplets}
	for i, o := range offers {
		o.cloud = fakecloud.New(dialects[i], h.behind(o.name))
		t.Cleanup(o.cloud.Close)
		o.fields["ssh_key_resource"], o.fields["endpoint_url"] = keyResource, o.cloud.URL()
	}
	offers[1].fields["openstack_auth_url"] = offers[1].cloud.URL() + "/v3"
	admin.resource("providertypes", "google", "api_keys", "account", string(google.Key()))
	return offers
}

// own returns the provider of machines that are there already. One line of its list
// names a machine that does not answer.
func own(t *testing.T, h *hostMachines) *offer {
	machines := h.pool("static", starterImage, "", nil, 3)
	h.w.client("demo", "admin", "admin").resource("providertypes", "static", "scripts", "clean.sh", "#!/bin/sh\nfor s in nginx haproxy; do service $s stop; done\necho given back >>/root/journal\n")
	return &offer{name: "static", flavor: "any", image: "any",
		fields: map[string]any{"hosts": "127.0.0.1:9\n" + hostLines(machines[:2]), "ssh_key_resource": keyResource, "cleanup_script": "clean.sh"},
		rotate: func() map[string]any { return map[string]any{"hosts": "127.0.0.1:9\n" + hostLines(machines)} },
		after: func() {
			for _, m := range machines {
				if journal := h.read(m, "cat /root/journal"); journal != "given back\n" {
					t.Errorf("static: on %s the clean-up script left %q", m.Address, journal)
				}
			}
		},
		held: func() (keys []string) {
			for _, m := range machines {
				if key := strings.TrimSpace(h.read(m, "cat /var/lib/loom-node/key 2>/dev/null || :")); key != "" {
					keys = append(keys, key)
				}
			}
			return keys
		}}
}

// thisHost returns the provider of the starter catalog. One of its machines hangs as
// soon as it is there, until the others are confirmed; one dies before the delete.
func (w *world) thisHost(user *client) *offer {
	o := &offer{name: "local"}
	mine := func() (found []machine) {
		for _, m := range w.machines() {
			if o.nodes[loom.NodeID(m.Node)] {
				found = append(found, m)
			}
		}
		return found
	}
	strike := func(s syscall.Signal) (pid int) {
		w.eventually("a machine of the local provider", func() error {
			for _, m := range mine() {
				if m.PID != 0 {
					pid = m.PID
					return syscall.Kill(pid, s)
				}
			}
			return fmt.Errorf("none of %v is there", o.nodes)
		})
		return pid
	}
	struck := 0
	o.before = func(phase string) {
		switch phase {
		case "creating":
			hangs := strike(syscall.SIGSTOP)
			w.eventually("the machines beside the one that hangs", func() error {
				confirmed := 0
				for _, n := range user.cluster(o.cluster).Nodes {
					if n.Properties.Addresses[loom.AccessV4] != "" {
						confirmed++
					}
				}
				if confirmed < len(o.nodes)-1 {
					return fmt.Errorf("%d of %d are confirmed", confirmed, len(o.nodes))
				}
				return nil
			})
			if err := syscall.Kill(hangs, syscall.SIGCONT); err != nil {
				w.t.Error(err)
			}
		case "delete":
			strike(syscall.SIGKILL)
		default:
			return
		}
		struck++
	}
	o.held = func() (keys []string) {
		for _, m := range mine() {
			keys = append(keys, m.Key)
		}
		return keys
	}
	o.after = func() {
		if struck != 2 {
			w.t.Errorf("local: %d machines were struck, want 2", struck)
		}
	}
	return o
}

// enter stores the provider and what it offers; admin.sync makes its key live.
func (o *offer) enter(h *hostMachines, admin *client) {
	admin.t.Helper()
	admin.resource("providertypes", o.name, "ssh_keys", keyResource, h.key.PEM)
	admin.call("PUT", "/v2/providers/"+o.name, map[string]any{"name": o.name, "providertype": o.name, "provisioner": o.fields}, nil)
	admin.offers(o.name, "local-small", o.flavor, "debian12", o.image)
}

// harm makes the cloud misbehave in a phase.
func (o *offer) harm(phase string) {
	if o.before != nil {
		o.before(phase)
	}
	if o.cloud == nil {
		return
	}
	throttled := o.throttle
	switch phase {
	case "create":
		o.cloud.Behave(fakecloud.Behaviour{Pending: 1, Leaving: 1})
		o.cloud.Inject(fakecloud.Fault{Op: o.make, Lost: true})
		throttled.Op, throttled.Times = o.make, 2
		o.cloud.Inject(throttled)
	case "expand":
		o.cloud.Inject(fakecloud.Fault{Op: o.make, Garbled: true})
		o.cloud.Inject(fakecloud.Fault{Status: 503, Times: 2})
	case "delete":
		o.cloud.Inject(fakecloud.Fault{Op: o.remove, Lost: true})
		throttled.Op, throttled.Times = o.remove, 1
		o.cloud.Inject(throttled)
	}
}

// note remembers the nodes that the cluster has had.
func (o *offer) note(c wire.Cluster) {
	if o.nodes == nil {
		o.nodes = map[loom.NodeID]bool{}
	}
	for _, n := range c.Nodes {
		o.nodes[n.ID] = true
	}
}

// count checks what is held for the nodes of the cluster: one machine each, or
// none in the end, and never one too many before.
func (o *offer) count(t *testing.T, h *hostMachines, c wire.Cluster, want int) {
	t.Helper()
	keys := map[string]int{}
	if o.cloud == nil {
		for _, key := range o.held() {
			keys[key]++
		}
	} else {
		for key, ids := range o.cloud.ByKey() {
			keys[key] = len(ids)
		}
		n, made := o.cloud.Counts(), max(want, len(o.nodes))
		if n.Live != want || n.Doubles != 0 || n.Created != made || h.left(o.name) != want {
			t.Errorf("%s counts %+v with %d machines behind, want %d that live, %d made and none doubled", o.name, n, h.left(o.name), want, made)
		}
		if left := o.cloud.Pending(); len(left) != 0 {
			t.Errorf("%s: these faults never struck: %+v", o.name, left)
		}
	}
	wanted := map[string]int{}
	if want > 0 {
		for _, n := range c.Nodes {
			wanted[loom.IdempotencyKey(n.ID, n.Incarnation)] = 1
		}
	}
	if len(wanted) != want || !maps.Equal(keys, wanted) {
		t.Errorf("%s holds %v, want one each for %v", o.name, keys, slices.Collect(maps.Keys(wanted)))
	}
}

// TestEveryProvider takes the starter catalog's web cluster through its life at
// every provider at once, in one instance: the clouds through their official clients
// against fake clouds that lose answers, throttle and are slow, machines that were
// there already, one of whose list is dead, machines of this host that hang and die,
// and an external plugin that fails half way. After the create the credentials at every
// cloud are replaced, and the providers get the new ones: what is there already grows,
// changes and goes with them. In the end nobody has one machine too many.
func TestEveryProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "LOOM_ALLOW_INSECURE_ENDPOINTS=true", "LOOM_PROVIDER_NETWORKS=127.0.0.0/8,10.0.0.0/8")
	y := w.yard()
	loomUp := w.up()
	h := w.hostMachines()
	user, admin := w.user(), w.client("demo", "admin", "admin")
	offers := append(clouds(t, h), own(t, h), y.open(h, loomUp), w.thisHost(user))
	for _, o := range offers {
		if o.fields == nil {
			continue // it is in the starter catalog
		}
		o.enter(h, admin)
	}
	admin.sync()
	// A plugin that came while the instance runs counts as one that its provisioner has.
	w.eventually("previews without a warning", func() error {
		for _, o := range offers {
			var preview struct{ Warnings []string }
			user.call("POST", "/v2/previews", map[string]any{"kind": "create", "request": map[string]any{"name": "look", "clusterTemplate": "web-cluster",
				"numMachines": 3, "provider": o.name}}, &preview)
			if len(preview.Warnings) > 0 {
				return fmt.Errorf("%s: %v", o.name, preview.Warnings)
			}
		}
		return nil
	})

	// Each phase begins at all of them before it is waited for at any.
	phase := func(name string, machines int, begin func(o *offer)) {
		t.Helper()
		started := time.Now()
		for _, o := range offers {
			o.harm(name)
			begin(o)
		}
		for _, o := range offers {
			if name == "create" {
				o.note(user.cluster(o.cluster))
				o.harm("creating")
			}
		}
		for _, o := range offers {
			if machines == 0 {
				user.waitStatus(o.cluster, loom.ClusterTerminated)
			} else {
				user.waitActive(o.cluster)
			}
			c := user.cluster(o.cluster)
			o.note(c)
			o.count(t, h, c, machines)
			if machines > 0 {
				w.servesFromAll(c)
			}
			t.Logf("%s at %s: after %s", name, o.name, time.Since(started).Round(time.Millisecond))
		}
	}
	var began struct{ OperationID string }
	phase("create", 2, func(o *offer) {
		o.cluster = user.create("web-cluster", 2, map[string]any{"name": "shop-" + o.name, "provider": o.name})
	})
	// From here on the clouds refuse the credentials that the clusters were made with, and
	// expand needs the host that the list of hosts did not have.
	for _, o := range offers {
		if o.rotate == nil {
			continue
		}
		maps.Copy(o.fields, o.rotate())
		admin.call("PUT", "/v2/providers/"+o.name, map[string]any{"name": o.name, "providertype": o.name, "provisioner": o.fields}, nil)
	}
	phase("expand", 3, func(o *offer) {
		user.call("POST", "/v2/clusters/"+o.cluster+"/expand", map[string]any{"numMachines": 3}, &began)
	})
	phase("configure", 3, func(o *offer) {
		var config map[string]any
		user.call("GET", "/v2/clusters/"+o.cluster+"/config", nil, &config)
		config["web"] = map[string]any{"title": "Made by " + o.name}
		user.call("PUT", "/v2/clusters/"+o.cluster+"/config", map[string]any{"config": config}, nil)
	})
	for _, o := range offers {
		for _, web := range addresses(t, user.cluster(o.cluster), "nginx") {
			if _, body, err := fetch("http://" + web + "/"); err != nil || !strings.Contains(body, "Made by "+o.name) {
				t.Errorf("%s: after the change %s answers %v %s", o.name, web, err, body)
			}
		}
	}
	y.progressReached(user)
	phase("delete", 0, func(o *offer) { user.call("DELETE", "/v2/clusters/"+o.cluster, nil, nil) })
	for _, o := range offers {
		if o.after != nil {
			o.after()
		}
	}
}
