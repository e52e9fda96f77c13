package external

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// needSSH skips without the ssh program.
func needSSH(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
			t.Fatal("ssh is not installed (package openssh-client)")
		}
		t.Skip("ssh is not installed (package openssh-client)")
	}
}

func targetOf(s *sshtest.Server) remote.Target {
	return remote.Target{Reach: loom.Anywhere(), Address: s.Address, Port: s.Port, User: s.User, Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys}
}

// TestLentSSH: a plugin reaches its machine with the ssh program, without ever
// seeing a key.
func TestLentSSH(t *testing.T) {
	t.Parallel()
	needSSH(t)
	server := sshtest.Start(t, sshtest.Options{})
	conn, err := remote.Dial(t.Context(), targetOf(server))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := host(t)
	p := load(t, h, plant(t, KindAutomator, `cat
ssh -F "$LOOM_SSH_CONFIG" node 'echo user $(id -un) over $SSH_CONNECTION' || exit 3
ssh-add -l; ssh-add -D; ssh-add -l
cat "$LOOM_SSH_CONFIG"
find "$LOOM_SCRATCH/.." -type f | while read -r f; do grep -l 'PRIVATE KEY' "$f" && exit 4; done
exit 0`, func(m map[string]any) { m["result"] = "exit-code" }))
	r := &record{}
	result, err := h.Automator(p, "lab-automator").Run(t.Context(), task(loom.ActionStart), conn, "", r)
	if err != nil || result.Status != 0 {
		t.Fatalf("%+v, %v\n%s", result, err, r.text())
	}
	text := r.text()
	for _, want := range []string{"user " + server.User + " over", "StrictHostKeyChecking yes", "IdentityAgent ", "ControlMaster auto", `"alias":"node"`, `"password":null`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Count(text, "(ED25519)") != 2 || strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("the agent: %s", text)
	}
	nothingLeft(t, h)
}

// TestLentSSHByJumpHost: the ssh program takes the same way as Loom, with the keys
// and host keys of the jump host.
func TestLentSSHByJumpHost(t *testing.T) {
	t.Parallel()
	needSSH(t)
	server, gate := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	to := targetOf(server)
	hop := targetOf(gate)
	hop.HostKeys = nil // learned by Loom's own connection
	to.Jump = []remote.Target{hop}
	conn, err := remote.Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := host(t)
	p := load(t, h, plant(t, KindAutomator, `cat >/dev/null
ssh -F "$LOOM_SSH_CONFIG" node 'echo at $SSH_CONNECTION' || exit 3
ssh-add -l
cat "$LOOM_SSH_CONFIG"`, func(m map[string]any) { m["result"] = "exit-code" }))
	before, r := gate.Dials(), &record{}
	result, err := h.Automator(p, "lab-automator").Run(t.Context(), task(loom.ActionStart), conn, "", r)
	if err != nil || result.Status != 0 || gate.Dials() != before+1 {
		t.Fatalf("%+v, %v, %d connections to the jump host\n%s", result, err, gate.Dials()-before, r.text())
	}
	text := r.text()
	for _, want := range []string{"ProxyJump loom-jump-1", "HostKeyAlias loom-jump-1", " " + fmt.Sprint(server.Port)} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Count(text, "(ED25519)") != 2 || strings.Contains(text, "accept-new") {
		t.Errorf("keys: %s", text)
	}
	nothingLeft(t, h)
}

// TestLentSSHChecksTheHost: another host key than the recorded one is refused.
func TestLentSSHChecksTheHost(t *testing.T) {
	t.Parallel()
	needSSH(t)
	server := sshtest.Start(t, sshtest.Options{})
	target := targetOf(server)
	target.HostKeys = map[string]string{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	h := host(t)
	p := load(t, h, plant(t, KindAutomator, `ssh -F "$LOOM_SSH_CONFIG" node true`, func(m map[string]any) { m["result"] = "exit-code" }))
	r := &record{}
	c := specCall(p, KindAutomator, "lab-automator", task(loom.ActionStart), "")
	c.target = &target
	if result, err := h.run(t.Context(), c, r); err != nil || result.Status == 0 || !strings.Contains(r.text(), "Host key verification failed") {
		t.Errorf("%+v, %v\n%s", result, err, r.text())
	}
	for _, bad := range []remote.Target{{Address: "a b"}, {Address: "h", User: "x\ny"}, {Address: "h", Keys: []loom.Secret{loom.NewSecret("no key")}}} {
		c.target = &bad
		if result, err := h.run(t.Context(), c, r); err != nil || result.Status != 1 || result.Retryable == nil {
			t.Errorf("%+v: %+v, %v", bad, result, err)
		}
	}
	walled := targetOf(server)
	walled.Reach = loom.Reach{Private: true}
	named, behind := walled, walled
	named.Address, behind.Jump = "localhost", []remote.Target{{Address: "169.254.169.254", Reach: walled.Reach}}
	for _, refused := range []remote.Target{walled, named, behind} {
		c.target = &refused
		if result, err := h.run(t.Context(), c, &record{}); err != nil || result.Status != 1 || result.Retryable == nil || *result.Retryable || !strings.Contains(result.Message, "LOOM_PROVIDER_NETWORKS") {
			t.Errorf("%s is lent: %+v, %v", refused.HostPort(), result, err)
		}
	}
	nothingLeft(t, h)
}

// TestLentPassword: where there is only a password, ssh gets it by SSH_ASKPASS.
func TestLentPassword(t *testing.T) {
	t.Parallel()
	needSSH(t)
	server := sshtest.Start(t, sshtest.Options{Isolated: true})
	target := remote.Target{Reach: loom.Anywhere(), Address: server.Address, Port: server.Port, User: sshtest.SudoUser, Password: loom.NewSecret(sshtest.Password), HostKeys: server.HostKeys}
	h := host(t)
	p := load(t, h, plant(t, KindAutomator, `for i in 1 2 3; do ssh -F "$LOOM_SSH_CONFIG" -o ControlPath=none node 'echo I am $(id -un)' || exit 3; done; cat "$SSH_ASKPASS"; env; ls -l "$LOOM_SCRATCH/../lent"; "$SSH_ASKPASS"`, func(m map[string]any) { m["result"] = "exit-code" }))
	r := &record{}
	c := specCall(p, KindAutomator, "lab-automator", task(loom.ActionStart), "")
	c.target, c.secrets = &target, []string{sshtest.Password}
	result, err := h.run(t.Context(), c, r)
	if err != nil || result.Status != 0 || strings.Count(r.text(), "I am tester") != 3 || strings.Count(r.text(), "[redacted]") != 1 || strings.Contains(r.text(), sshtest.Password) {
		t.Errorf("%+v, %v\n%s", result, err, r.text())
	}
	nothingLeft(t, h)
}

// TestCloudConfirm: the plugin waits for the cloud, Loom does the rest.
func TestCloudConfirm(t *testing.T) {
	t.Parallel()
	server := sshtest.Start(t, sshtest.Options{Isolated: true})
	h := host(t)
	script := `cat >/dev/null; printf '{"t":"result","status":0,"ipaddresses":{"access_v4":"` + server.Address + `"},"result":{"ssh_port":%s}}\n' "$(cat "$LOOM_PLUGIN_DIR/port")"`
	p := load(t, h, plant(t, KindProvider, script, func(m map[string]any) {
		m["types"] = map[string]any{"lab-provider": map[string]any{"kind": KindProvider, "confirm": "cloud"}}
	}))
	port := func(text string) {
		if err := os.WriteFile(p.Dir+"/port", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec := task(loom.ActionConfirm)
	spec.PrivateKey = loom.NewSecret(server.Key.PEM)
	spec.Results = map[string]any{"providerid": "m-1", "ssh-auth": map[string]any{"user": server.User}}
	ctx := provider.WithEnv(t.Context(), provider.Env{})
	port(`"nonsense"`)
	result, err := h.Provider(p, "lab-provider").Confirm(ctx, spec, &record{})
	if err != nil || result.Status != 1 || !strings.Contains(result.Message, "ssh_port") {
		t.Errorf("a bad port: %+v, %v", result, err)
	}
	port(itoa(server.Port))
	r := &record{}
	result, err = h.Provider(p, "lab-provider").Confirm(ctx, spec, r)
	keys, _ := result.Result["ssh_host_keys"].(map[string]string)
	if err != nil || result.Status != 0 || keys["ed25519"] != server.HostKeys["ed25519"] || result.Addresses[loom.BindV4] != server.Address || !strings.Contains(r.text(), "signed in as "+server.User) {
		t.Errorf("%+v, %v\n%s", result, err, r.text())
	}
	nothingLeft(t, h)
}
