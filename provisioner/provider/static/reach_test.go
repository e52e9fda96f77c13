package static_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider/static"
	"loom/provisioner/remote/sshtest"
)

// TestWalls: machines of one's own are looked for, reserved, set up, given back and
// probed only where the tenant may reach them, straight or by way of a jump host.
func TestWalls(t *testing.T) {
	t.Parallel()
	f := newFarm(t, "")
	jump := sshtest.Start(t, sshtest.Options{Isolated: true})
	taken, _ := f.create("n1")
	if taken.Status != 0 {
		t.Fatalf("%+v", taken)
	}
	here := fmt.Sprint("127.0.0.1:", f.servers[0].Port)
	dials := f.servers[0].Dials()
	for _, c := range []struct {
		hosts, jump, says string
		reach             loom.Reach
	}{
		{here, "", "127.0.0.1 ", loom.Reach{}}, {here, "", "127.0.0.1 ", loom.Reach{Private: true}},
		{strings.Replace(here, "127.0.0.1", "localhost", 1), "", "localhost leads to an address", loom.Reach{}},
		{"169.254.169.254", "", "169.254.169.254 ", loom.Reach{Private: true}}, {"10.0.0.1", "", "10.0.0.1 is in a private network", loom.Reach{}},
		{here, fmt.Sprint("gate@127.0.0.1:", jump.Port), "127.0.0.1 ", loom.Reach{}}, {here, "gate@localhost:" + fmt.Sprint(jump.Port), "localhost leads to an address", loom.Reach{}},
		{here, "gate@10.0.0.1", "10.0.0.1 is in a private network", loom.Reach{Networks: loom.Named(netip.MustParsePrefix("127.0.0.1/32"))}},
	} {
		leaks := func(said string) bool {
			return strings.Contains(c.says, "localhost") && (strings.Contains(said, "127.0.0.1 ") || strings.Contains(said, "special address"))
		}
		spec := f.spec("n1", nil)
		spec.Reach = c.reach
		spec.Provider.Fields = map[string]any{"hosts": c.hosts, "ssh_key_resource": "key0", "ssh_jump": c.jump, "ssh_jump_key_resource": "key0"}
		name := fmt.Sprint(c.hosts, " by ", c.jump)
		check := func(what string, r loom.TaskResult, err error) {
			t.Helper()
			if err != nil || r.Status == 0 || r.Retryable == nil || *r.Retryable || !strings.Contains(r.Message, c.says) || !strings.Contains(r.Message, "LOOM_PROVIDER_NETWORKS") || leaks(r.Message) {
				t.Errorf("%s of %s gave %+v, %v", what, name, r, err)
			}
		}
		r, err := static.New().Create(f.ctx, spec, &sshtest.Record{})
		check("create", r, err)
		spec.Results = map[string]any{"providerid": c.hosts, "ssh-auth": taken.Result["ssh-auth"]}
		r, err = static.New().Confirm(f.ctx, spec, &sshtest.Record{})
		check("confirm", r, err)
		r, err = static.New().Delete(f.ctx, spec, &sshtest.Record{})
		check("delete", r, err)
		call := &loom.ProviderCall{Tenant: "lab", Reach: c.reach, Provider: spec.Provider}
		if probe, err := static.New().Probe(f.ctx, call); err != nil || probe.OK || !strings.Contains(fmt.Sprint(probe.Checks), c.says) {
			t.Errorf("probe of %s gave %+v, %v", name, probe, err)
		}
		if list, err := static.New().List(f.ctx, call); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("list of %s gave %v, %v", name, list, err)
		}
	}
	if n := f.servers[0].Dials() - dials + jump.Dials(); n != 0 {
		t.Errorf("%d connections to where nobody may connect", n)
	}
	spec := f.spec("n1", nil)
	spec.Reach = loom.Reach{Networks: loom.Named(netip.MustParsePrefix("127.0.0.1/32"))}
	if r, err := static.New().Delete(f.ctx, spec, &sshtest.Record{}); err != nil || r.Status != 0 || f.held(0) != "" {
		t.Errorf("where it is named: %+v, %v", r, err)
	}
}
