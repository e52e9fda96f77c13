package provisioner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/health"
	"loom/provisioner/provider"
	"loom/provisioner/provider/static"
	"loom/provisioner/remote/sshtest"
)

// TestLoadOfLocalMachines: what a local machine says of its disk is that of the host, so only its
// provider is believed, also where the provider does not know.
func TestLoadOfLocalMachines(t *testing.T) {
	t.Parallel()
	r := runner(t, nil)
	var err error
	if r.Providers, err = provider.NewRegistry(housing{}, static.New()); err != nil {
		t.Fatal(err)
	}
	said := loom.Load{CPU: 5, Memory: 40, Disk: 90}
	for providerType, want := range map[string]loom.Load{"house": loom.NoLoad, "static": said} {
		if got := r.loadOf(&loom.TaskSpec{Provider: loom.Provider{Type: providerType}}, health.Seen{Load: said}); got != want {
			t.Errorf("%s: %+v, want %+v", providerType, got, want)
		}
	}
}

// TestLook: a machine is looked at over a real sshd, with checks of every kind; one that
// shows another key, or is not there, is said to.
func TestLook(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	r := runner(t, nil)
	var err error
	if r.Providers, err = provider.NewRegistry(static.New()); err != nil {
		t.Fatal(err)
	}
	web, err := net.Listen("tcp", net.JoinHostPort(s.Address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/well" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, "all is well")
	})}
	go server.Serve(web)
	t.Cleanup(func() { _ = server.Close() })
	port := web.Addr().(*net.TCPAddr).Port
	service := func(name string, check loom.ServiceCheck) loom.ServiceLook {
		return loom.ServiceLook{Name: name, Check: check.WithDefaults()}
	}
	url := func(path string) string { return fmt.Sprintf("http://%s%s", web.Addr(), path) }
	look := &loom.HealthLook{
		HealthNode: loom.HealthNode{Node: "n1", Tenant: "t1", Incarnation: 1, Operation: 2},
		Spec: &loom.TaskSpec{Tenant: "t1", Action: loom.ActionKeys, Node: "n1", PrivateKey: loom.NewSecret(s.Key.PEM), SSHUser: s.User, Hostname: "n1.example",
			Addresses: map[string]string{loom.AccessV4: s.Address}, Sensitive: []string{"hunter2!"}, Provider: loom.Provider{Type: "static", Fields: map[string]any{}},
			Results: map[string]any{"ssh_port": s.Port, "ssh_host_keys": s.HostKeys}},
		Services: []loom.ServiceLook{
			service("well", loom.ServiceCheck{Command: "echo fine"}), service("ill", loom.ServiceCheck{Command: "echo the password is hunter2!; exit 3"}),
			service("page", loom.ServiceCheck{HTTP: &loom.HTTPCheck{URL: url("/well"), Contains: "all is"}}), service("sick page", loom.ServiceCheck{HTTP: &loom.HTTPCheck{URL: url("/ill")}}),
			service("port", loom.ServiceCheck{TCP: &loom.TCPCheck{Port: port}}), service("no port", loom.ServiceCheck{TCP: &loom.TCPCheck{Port: 1}}),
			service("elsewhere", loom.ServiceCheck{HTTP: &loom.HTTPCheck{URL: "http://192.0.2.1/"}}), service("later", loom.ServiceCheck{Command: "exit 9"}),
			{Name: "stopped", Status: loom.HealthOff}, {Name: "unknown", Status: loom.HealthUnchecked},
		},
	}
	due := func(service string) bool { return service != "later" }
	if _, kept := r.Alive(t.Context(), "n1"); kept {
		t.Error("a connection is kept before there was one")
	}
	seen, err := r.Look(t.Context(), look, due)
	if err != nil || seen.Unreachable || seen.Refused != "" || seen.Operation != 2 || seen.Memory < 0 || seen.Disk < 0 {
		t.Fatalf("%+v, %v", seen, err)
	}
	for name, want := range map[string]string{
		"well": "", "ill": "exit status 3: the password is [redacted]", "page": "", "sick page": "HTTP status 503", "port": "", "no port": "connection refused",
		"elsewhere": "the URL leads to another machine",
	} {
		if got := seen.Services[name]; !got.Checked || got.Passed != (want == "") || got.Message != want {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
	}
	if got := seen.Services["later"]; got.Checked {
		t.Errorf("a check that was not due: %+v", got)
	}
	if seen.Services["stopped"].Status != loom.HealthOff || seen.Services["unknown"].Status != loom.HealthUnchecked {
		t.Errorf("services without checks: %+v", seen.Services)
	}
	if alive, kept := r.Alive(t.Context(), "n1"); !alive || !kept {
		t.Errorf("alive %v, kept %v", alive, kept)
	}

	// Files are summed where that is asked for.
	if seen.BootID == "" || !seen.SummedAt.IsZero() || seen.Services["well"].Files != nil {
		t.Errorf("files that nobody asked for: %+v", seen)
	}
	summed := *look
	summed.Sum, summed.Services = true, []loom.ServiceLook{{Name: "well", Files: []string{"/etc/hostname", "/not/there"}}, {Name: "later", Files: []string{"/etc/hostname"}}, {Name: "none"}}
	seen, err = r.Look(t.Context(), &summed, due)
	if err != nil || seen.SummedAt.IsZero() {
		t.Fatalf("%+v, %v", seen, err)
	}
	well, later, none := seen.Services["well"].Files, seen.Services["later"].Files, seen.Services["none"].Files
	if gone, there := well["/not/there"]; len(well["/etc/hostname"]) != 64 || !there || gone != "" || later["/etc/hostname"] != well["/etc/hostname"] || none != nil {
		t.Errorf("sums: %+v", seen.Services)
	}

	trouble := func(name string, change func(*loom.TaskSpec), want func(loom.HealthSeen, error) bool) {
		t.Helper()
		other := *look
		spec := *look.Spec
		spec.Results = map[string]any{"ssh_port": s.Port, "ssh_host_keys": s.HostKeys}
		change(&spec)
		other.Spec = &spec
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if seen, err := r.Look(ctx, &other, due); !want(seen, err) {
			t.Errorf("%s: %+v, %v", name, seen, err)
		}
	}
	trouble("another host key", func(spec *loom.TaskSpec) {
		spec.Results["ssh_host_keys"] = map[string]any{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	}, func(seen loom.HealthSeen, err error) bool {
		return err == nil && !seen.Unreachable && strings.Contains(seen.Refused, "host key")
	})
	trouble("no host key", func(spec *loom.TaskSpec) { delete(spec.Results, "ssh_host_keys") },
		func(_ loom.HealthSeen, err error) bool { return err != nil })
	trouble("refused", func(spec *loom.TaskSpec) {
		spec.PrivateKey = loom.NewSecret(sshtest.NewKey(t, "ed25519", "").PEM)
	}, func(seen loom.HealthSeen, err error) bool {
		return err == nil && !seen.Unreachable && seen.Refused != ""
	})
	trouble("nobody there", func(spec *loom.TaskSpec) { spec.Results["ssh_port"] = 1 },
		func(seen loom.HealthSeen, err error) bool { return err == nil && seen.Unreachable })
}

// TestLookByJumpHost: checks of a machine behind a jump host, which another user than root signs
// in to, run as root there, and URLs and ports are reached by way of the jump host.
func TestLookByJumpHost(t *testing.T) {
	t.Parallel()
	s, jump := sshtest.Start(t, sshtest.Options{Isolated: true}), sshtest.Start(t, sshtest.Options{Isolated: true})
	r := runner(t, nil)
	var err error
	if r.Providers, err = provider.NewRegistry(static.New()); err != nil {
		t.Fatal(err)
	}
	r.Files = t.TempDir()
	keys := filepath.Join(r.Files, "providertypes/static/ssh_keys")
	if err := errors.Join(os.MkdirAll(keys, 0o700), os.WriteFile(filepath.Join(keys, "gate"), []byte(jump.Key.PEM), 0o400)); err != nil {
		t.Fatal(err)
	}
	web, err := net.Listen("tcp", net.JoinHostPort(s.Address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "well") })}
	go server.Serve(web)
	t.Cleanup(func() { _ = server.Close() })
	service := func(name string, check loom.ServiceCheck) loom.ServiceLook {
		return loom.ServiceLook{Name: name, Check: check.WithDefaults()}
	}
	gate := fmt.Sprintf("127.0.0.1:%d", jump.Port)
	look := &loom.HealthLook{
		HealthNode: loom.HealthNode{Node: "n1", Tenant: "t1", Incarnation: 1, Operation: 1},
		Spec: &loom.TaskSpec{Tenant: "t1", Action: loom.ActionKeys, Node: "n1", PrivateKey: loom.NewSecret(s.Key.PEM), SSHUser: sshtest.SudoUser,
			Addresses: map[string]string{loom.AccessV4: s.Address}, Provider: loom.Provider{Type: "static", Fields: map[string]any{"ssh_jump": sshtest.PlainUser + "@" + gate, "ssh_jump_key_resource": "gate"}},
			Results: map[string]any{"ssh_port": s.Port, "ssh_host_keys": s.HostKeys, "ssh_jump_host_keys": map[string]any{gate: jump.HostKeys}}},
		Services: []loom.ServiceLook{
			service("root", loom.ServiceCheck{Command: "[ $(id -u) = 0 ] || { echo I am $(id -un); exit 3; }"}),
			service("page", loom.ServiceCheck{HTTP: &loom.HTTPCheck{URL: fmt.Sprintf("http://%s/", web.Addr()), Contains: "well"}}),
			service("port", loom.ServiceCheck{TCP: &loom.TCPCheck{Port: web.Addr().(*net.TCPAddr).Port}}),
		},
	}
	all := func(string) bool { return true }
	seen, err := r.Look(t.Context(), look, all)
	if err != nil || seen.Unreachable || seen.Refused != "" {
		t.Fatalf("%+v, %v", seen, err)
	}
	for name, want := range map[string]string{"root": "", "page": "the URL leads to another machine", "port": "the URL leads to another machine"} {
		if got := seen.Services[name]; !got.Checked || got.Passed != (want == "") || got.Message != want {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
	}
	if n := jump.Dials(); n != 1 {
		t.Errorf("%d connections to the jump host", n)
	}

	// A jump host that takes nobody is a machine that does not answer.
	jump.Silence()
	jump.Cut()
	if seen, err = r.Look(t.Context(), look, all); err != nil || !seen.Unreachable {
		t.Errorf("without the jump host: %+v, %v", seen, err)
	}
}
