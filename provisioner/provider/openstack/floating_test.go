package openstack_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/cloudtest"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/openstack"
)

// floating is a lab whose machines need a floating address.
func floating(t *testing.T) (*cloudtest.Lab, *stack.Stack) {
	t.Helper()
	l, dialect := lab(t, true)
	dialect.Hidden, dialect.FloatingAddress = true, l.SSH.Address
	l.Fields["floating_ip"], l.Fields["floating_network"] = "on", stack.ExternalName
	return l, dialect
}

// portOf is the id of the port of a task's server.
func portOf(spec *loom.TaskSpec) string { return "port-" + spec.Results["providerid"].(string) }

func TestConformanceWithFloatingAddresses(t *testing.T) {
	t.Parallel()
	l, dialect := floating(t)
	l.Conform()
	if left := dialect.Addresses(); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestFloatingAddressIsMade(t *testing.T) {
	t.Parallel()
	l, dialect := floating(t)
	// None of these is free for the node.
	dialect.Give(stack.Address{Port: stack.Stranger})
	dialect.Give(stack.Address{Network: stack.LabNet})
	dialect.Give(stack.Address{Project: "other"})
	dialect.Give(stack.Address{Description: "loom-key-of-another-node"})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	// The answer is lost: the address that was made is found.
	l.Cloud.Inject(fakecloud.Fault{Op: stack.Float, Lost: true})
	confirmed, sink := l.Must(spec, loom.ActionConfirm, 0)
	if confirmed.Addresses[loom.AccessV4] != l.SSH.Address || confirmed.Addresses[loom.BindV4] != "192.0.2.7" {
		t.Errorf("confirm gave %+v", confirmed)
	}
	all := dialect.Addresses()
	if len(all) != 5 {
		t.Fatalf("%+v\n%s", all, sink.Text())
	}
	made := all[4]
	if made.Port != portOf(spec) || spec.Results["floating_ip_id"] != made.ID || spec.Results["floating_ip_created"] != true || made.Description != "loom-key-"+spec.IdempotencyKey {
		t.Errorf("made %+v, stored %v", made, spec.Results)
	}
	if facts := sink.Facts(); len(facts) == 0 || facts[0]["floating_ip_id"] != made.ID {
		t.Errorf("reported %v", facts)
	}
	// Repeated, also where nothing could be stored, it is the same one.
	delete(spec.Results, "floating_ip_id")
	delete(spec.Results, "floating_ip_created")
	l.Must(spec, loom.ActionConfirm, 0)
	if n := len(dialect.Addresses()); n != 5 || spec.Results["floating_ip_id"] != made.ID || spec.Results["floating_ip_created"] != true {
		t.Errorf("%d addresses, stored %v", n, spec.Results)
	}
	// DELETE finds it by its description.
	delete(spec.Results, "floating_ip_id")
	l.Must(spec, loom.ActionDelete, 0)
	if all := dialect.Addresses(); len(all) != 4 {
		t.Errorf("left: %+v", all)
	}
	if _, there := spec.Results["floating_ip_created"]; there {
		t.Errorf("delete does not clear %v", spec.Results)
	}
}

func TestFreeFloatingAddressIsTaken(t *testing.T) {
	t.Parallel()
	l, dialect := floating(t)
	dialect.Quota = 0 // none can be made
	free := dialect.Give(stack.Address{Description: "of the house"})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	l.Cloud.Inject(fakecloud.Fault{Op: stack.SetFloat, Lost: true}) // the second try meets its own revision
	l.Must(spec, loom.ActionConfirm, 0)
	if all := dialect.Addresses(); all[0].Port != portOf(spec) || spec.Results["floating_ip_id"] != free || spec.Results["floating_ip_created"] != false {
		t.Errorf("%+v, stored %v", all, spec.Results)
	}
	l.Must(spec, loom.ActionDelete, 0)
	if all := dialect.Addresses(); len(all) != 1 || all[0].Port != "" {
		t.Errorf("after delete: %+v", all)
	}
}

// Two workers may take the same address: whoever finds it gone takes another.
func TestStolenFloatingAddress(t *testing.T) {
	t.Parallel()
	l, dialect := floating(t)
	dialect.Thieves = 2
	for range 2 {
		dialect.Give(stack.Address{})
	}
	third := dialect.Give(stack.Address{})
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	_, sink := l.Must(spec, loom.ActionConfirm, 0)
	if spec.Results["floating_ip_id"] != third || strings.Count(sink.Text(), "somebody else was faster") != 2 {
		t.Errorf("stored %v\n%s", spec.Results, sink.Text())
	}
	// With all of them stolen, one is made.
	dialect.Thieves = 1
	dialect.Give(stack.Address{})
	spec = l.Spec(2)
	l.Must(spec, loom.ActionCreate, 0)
	l.Must(spec, loom.ActionConfirm, 0)
	if spec.Results["floating_ip_created"] != true {
		t.Errorf("stored %v", spec.Results)
	}
	// An address that belongs to another server by now is left alone.
	lost := l.Spec(3)
	l.Must(lost, loom.ActionCreate, 0)
	lost.Results["floating_ip_id"], lost.Results["floating_ip_created"] = spec.Results["floating_ip_id"], true
	l.Must(lost, loom.ActionDelete, 0)
	if !slices.ContainsFunc(dialect.Addresses(), func(a stack.Address) bool { return a.ID == spec.Results["floating_ip_id"] && a.Port == portOf(spec) }) {
		t.Errorf("the address of another server is gone: %+v", dialect.Addresses())
	}
}

func TestFloatingAddressesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	l, dialect := floating(t)
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	for _, c := range []struct {
		network string
		quota   int
		message string
		never   bool
	}{
		{"", 9, "floating_network", true}, {"absent", 9, "no external network “absent”", true}, {stack.LabNet, 9, "could not be found", false},
		{stack.ExternalName, 0, "Quota exceeded", false},
	} {
		dialect.Quota = c.quota
		spec.Provider.Fields["floating_network"] = c.network
		r, _ := l.Must(spec, loom.ActionConfirm, 1)
		if never := r.Retryable != nil && !*r.Retryable; !strings.Contains(r.Message, c.message) || never != c.never {
			t.Errorf("%q, quota %d gave %+v", c.network, c.quota, r)
		}
	}
	// A DELETE that could not give the address back is tried again.
	spec.Provider.Fields["floating_network"], dialect.Quota = stack.External, 9
	l.Must(spec, loom.ActionConfirm, 0)
	l.Cloud.Inject(fakecloud.Fault{Op: stack.Unfloat, Status: 400})
	l.Must(spec, loom.ActionDelete, 1)
	if spec.Results["floating_ip_id"] == nil || spec.Results["providerid"] == nil {
		t.Errorf("forgotten: %v", spec.Results)
	}
	l.Must(spec, loom.ActionDelete, 0)
	if all := dialect.Addresses(); len(all) != 0 {
		t.Errorf("left: %+v", all)
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	net := func(pairs ...string) []any {
		list := []any{map[string]any{"addr": "fd00::1", "version": 6.0, "OS-EXT-IPS:type": "fixed"}, "nonsense", map[string]any{"addr": "nonsense"}}
		for n := 0; n < len(pairs); n += 2 {
			list = append(list, map[string]any{"addr": pairs[n], "version": 4.0, "OS-EXT-IPS:type": pairs[n+1]})
		}
		return list
	}
	for _, c := range []struct {
		found        map[string]any
		order        []string
		access, bind string
	}{
		{map[string]any{"lab": net("10.0.0.1", "fixed")}, nil, "10.0.0.1", "10.0.0.1"},
		{map[string]any{"lab": net("10.0.0.1", "fixed", "192.0.2.1", "floating")}, nil, "192.0.2.1", "10.0.0.1"},
		{map[string]any{"private": net("10.0.0.1", "fixed"), "public": net("192.0.2.1", "fixed")}, nil, "192.0.2.1", "10.0.0.1"},
		{map[string]any{"private": net("10.0.0.1", "fixed", "192.0.2.9", "floating"), "public": net("192.0.2.1", "fixed")}, nil, "192.0.2.9", "10.0.0.1"},
		{map[string]any{"public": net("192.0.2.1", "fixed")}, nil, "192.0.2.1", "192.0.2.1"},
		{map[string]any{"a": net("10.1.0.1", "fixed"), "b": net("10.2.0.1", "fixed")}, []string{"b", "a"}, "10.2.0.1", "10.2.0.1"},
		{map[string]any{"a": net("10.1.0.1", "fixed", "192.0.2.1", "floating"), "b": net("10.2.0.1", "fixed")}, []string{"b", "a"}, "192.0.2.1", "10.2.0.1"},
		{map[string]any{"a": net("10.1.0.1", "fixed", "192.0.2.1", "floating", "192.0.2.2", "floating"), "private": net("10.2.0.1", "fixed")}, nil, "192.0.2.2", "10.2.0.1"},
		{map[string]any{"a": net("10.1.0.1", "")}, nil, "10.1.0.1", "10.1.0.1"},
		{map[string]any{"a": net(), "b": "nonsense"}, nil, "", ""}, {nil, nil, "", ""},
	} {
		if access, bind := openstack.Choose(c.found, c.order); access != c.access || bind != c.bind {
			t.Errorf("%v %v gave %s and %s", c.found, c.order, access, bind)
		}
	}
}

// The networks of the fields decide in their order, which is not that of names.
func TestNetworksDecide(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Fields["network_ids"] = stack.LabNet + "," + stack.StorageNet
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	o := cloud.Options{Insecure: true, Pace: cloud.Pace{Sleep: l.Clock.Sleep}}
	if access, bind, err := openstack.Addresses(l.Context(), o, spec, &cloudtest.Sink{}); err != nil || access != "10.0.0.2" || bind != "10.0.0.2" {
		t.Errorf("%s, %s, %v", access, bind, err)
	}
	if n := len(l.Cloud.Calls(stack.Network)); n != 2 {
		t.Errorf("%d networks were looked at", n)
	}
}

// Nothing goes out without encryption unless the option allows it, not even to
// where the catalog leads.
func TestEncryption(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	strict := openstack.New(cloud.Options{Pace: cloud.Pace{Sleep: l.Clock.Sleep}})
	r, err := strict.Create(l.Context(), l.Spec(1), &cloudtest.Sink{})
	if err != nil || r.Status != 202 || !strings.Contains(r.Message, "openstack_auth_url") || !strings.Contains(r.Message, "LOOM_ALLOW_INSECURE_ENDPOINTS") {
		t.Errorf("%+v, %v", r, err)
	}
	if n := len(l.Cloud.Calls("")); n != 0 {
		t.Errorf("%d calls", n)
	}
	// A front with TLS, whose catalog leads to plain HTTP.
	front := httptest.NewTLSServer(l.Cloud)
	defer front.Close()
	for _, c := range []struct {
		verify, message string
	}{{"", "certificate"}, {"true", "certificate"}, {"false", "the cloud’s catalog names http://"}} {
		spec := l.Spec(1)
		spec.Provider.Fields["openstack_auth_url"], spec.Provider.Fields["openstack_ssl_verify_peer"] = front.URL+"/v3", c.verify
		sink := &cloudtest.Sink{}
		if r, err := strict.Create(l.Context(), spec, sink); err != nil || r.Status == 0 || !strings.Contains(r.Message, c.message) {
			t.Errorf("verify %q gave %+v, %v\n%s", c.verify, r, err, sink.Text())
		}
	}
	if n := l.Cloud.Counts(); n.Created != 0 {
		t.Errorf("%+v", n)
	}
}
