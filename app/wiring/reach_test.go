package wiring

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/config"
	"loom/app/loom"
	"loom/provisioner"
	"loom/provisioner/automator"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/gce"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// aims say how a provider type is led to an address. A type that is not here fails the
// test: say how, or that it connects to nothing but what this host made (nil).
var aims = map[string]func(address string) map[string]any{
	"local": nil, "mock": nil,
	"static":       func(address string) map[string]any { return map[string]any{"hosts": address} },
	"aws":          endpoint("api_user", "api_password"),
	"digitalocean": endpoint("api_password"),
	"google":       endpoint("google_project"),
	"joyent":       endpoint("api_user", "ssh_keypair"),
	"openstack":    endpoint("api_user", "api_password", "openstack_tenant"),
	"rackspace":    endpoint("api_user", "api_password"),
}

func endpoint(filled ...string) func(string) map[string]any {
	return func(address string) map[string]any {
		fields := map[string]any{provider.EndpointField: "http://" + address}
		for _, name := range filled {
			fields[name] = "lab"
		}
		return fields
	}
}

// silentTask drops what a task says.
type silentTask struct{}

// Log does nothing.
func (silentTask) Log(string, string) {}

// Fact does nothing.
func (silentTask) Fact(map[string]any) error { return nil }

// TestEveryProviderKeepsToItsReach: each provider of this binary, wired as a provisioner wires
// it, connects to a loopback address where the installation names it, so that the test
// knows how to lead it there, and else never, whatever the task.
func TestEveryProviderKeepsToItsReach(t *testing.T) {
	t.Parallel()
	google := gce.New()
	cloud := fakecloud.New(google, nil)
	t.Cleanup(cloud.Close)
	listener, err := net.Listen("tcp", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var key map[string]string // of Google, which names the address itself
	if err := json.Unmarshal(google.Key(), &key); err != nil {
		t.Fatal(err)
	}
	key["endpoint_url"] = "http://" + listener.Addr().String()
	account, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	for name, content := range map[string]string{"aws": "", "google": string(account), "joyent": sshtest.NewKey(t, "ecdsa", "").PEM, "static": sshtest.NewKey(t, "ed25519", "").PEM} {
		for _, kind := range []string{"api_keys", "ssh_keys"} {
			dir := filepath.Join(files, "providertypes", name, kind)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "lab"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var hits atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			conn.Close()
		}
	}()
	address := listener.Addr().String()
	for _, option := range []string{"127.0.0.1", "127.0.0.0/8"} {
		values, err := config.Load(nil, []string{"LOOM_ALLOW_INSECURE_ENDPOINTS=true", "LOOM_MOCK=true", "LOOM_PROVIDER_NETWORKS=" + option, "LOOM_DATA_DIR=" + t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		e := &Environment{Values: values}
		t.Cleanup(e.Close)
		found, err := e.Plugins()
		if err != nil {
			t.Fatal(err)
		}
		networks, err := e.Reach()
		if err != nil {
			t.Fatal(err)
		}
		pool := remote.NewPool()
		t.Cleanup(func() { pool.Close() })
		automators, err := automator.NewRegistry()
		if err != nil {
			t.Fatal(err)
		}
		runner := &provisioner.Runner{Providers: found.Providers, Automators: automators, Pool: pool, Files: files, Networks: networks}
		for _, name := range found.Providers.Carried() {
			aim, known := aims[name]
			if !known {
				t.Errorf("the provider type %s connects to nobody knows what: add it to aims", name)
			}
			if aim == nil {
				continue
			}
			hits.Store(0)
			fields := aim(address)
			fields["ssh_key_resource"], fields["api_key_resource"] = "lab", "lab"
			var said []string
			for _, action := range []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionDelete} {
				spec := &loom.TaskSpec{Tenant: "lab", Action: action, Attempt: 1, Node: "n1", Hostname: "n1.lab", IdempotencyKey: "5f0e8c1a-2b7d-5a3c-9e4f-1d6b8a7c9e02", Flavor: "any", Image: "any",
					Provider: loom.Provider{Base: loom.Base{Name: name}, Type: name, Fields: fields}, Results: map[string]any{}, Reach: loom.Reach{Private: true}}
				if action != loom.ActionCreate {
					spec.Results["providerid"] = map[bool]string{true: address, false: "i-0123456789abcdef0"}[name == "static"]
					spec.Results["ssh-auth"] = map[string]any{"user": "root", "identityfile": "ssh_keys/lab"}
				}
				// Where the way is open nobody answers, which providers try again for minutes.
				ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{true: 300 * time.Millisecond, false: time.Minute}[option == "127.0.0.0/8"])
				result := runner.Run(ctx, spec, silentTask{})
				cancel()
				text, _ := json.Marshal(result)
				said = append(said, string(text))
				if option == "127.0.0.1" && (result.Status == 0 || result.Retryable == nil || *result.Retryable || !strings.Contains(result.Message, "127.0.0.3 ")) {
					t.Errorf("%s of %s: %s", action, name, text)
				}
			}
			if open := option == "127.0.0.0/8"; (hits.Load() > 0) != open {
				t.Errorf("%s with %s connected %d times: %s", name, option, hits.Load(), fmt.Sprint(said))
			}
		}
	}
}

// TestReachOfHooks: hooks follow LOOM_HOOK_NETWORKS, whatever providers reach, and what is
// taken away for all is taken away from hooks.
func TestReachOfHooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hooks, providers string
		yes, no          string
	}{
		{"", "", "8.8.8.8", "127.0.0.1 10.0.0.1 169.254.169.254"},
		{"", "10.0.0.0/8,127.0.0.0/8", "8.8.8.8", "127.0.0.1 10.0.0.1"},
		{"10.0.0.0/8", "", "8.8.8.8 10.0.0.1", "127.0.0.1 192.168.0.1"},
		{"10.0.0.0/8", "!10.9.0.0/16,!8.8.8.0/24", "10.0.0.1", "10.9.0.1 8.8.8.8"},
		{"0.0.0.0/0", "", "127.0.0.1 169.254.169.254", "::1"},
	} {
		values, err := config.Load(nil, []string{"LOOM_HOOK_NETWORKS=" + c.hooks, "LOOM_PROVIDER_NETWORKS=" + c.providers})
		if err != nil {
			t.Fatal(err)
		}
		reach, err := (&Environment{Values: values}).privateReach("LOOM_HOOK_NETWORKS")
		if err != nil {
			t.Fatal(err)
		}
		for may, list := range map[bool]string{true: c.yes, false: c.no} {
			for addr := range strings.FieldsSeq(list) {
				if reach.May(netip.MustParseAddr(addr)) != may {
					t.Errorf("%+v: %s is not %t", c, addr, may)
				}
			}
		}
	}
	values, err := config.Load(nil, []string{"LOOM_PROVIDER_NETWORKS=10.0.0.0/99"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Environment{Values: values}).privateReach("LOOM_HOOK_NETWORKS"); err == nil || !strings.Contains(err.Error(), "LOOM_PROVIDER_NETWORKS") {
		t.Errorf("a bad network gave %v", err)
	}
}
