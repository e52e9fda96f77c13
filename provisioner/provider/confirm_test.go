package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func machineOf(s *sshtest.Server) provider.Machine {
	return provider.Machine{Addresses: map[string]string{loom.AccessV4: s.Address}, Port: s.Port, HostKeys: s.HostKeys}
}

func specOf(s *sshtest.Server, user string) *loom.TaskSpec {
	return &loom.TaskSpec{Reach: loom.Anywhere(), Node: "n1", Hostname: "shop1-1000.lab.example", SSHUser: user, PrivateKey: loom.NewSecret(s.Key.PEM),
		Results: map[string]any{}, Provider: loom.Provider{Fields: map[string]any{}}}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", sshtest.SudoUser} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := sshtest.Start(t, sshtest.Options{Isolated: true})
			home := filepath.Join(s.Dir, "root")
			if user != "root" {
				home = filepath.Join(s.Dir, "home", user)
			}
			file := filepath.Join(home, ".ssh/authorized_keys")
			mine, friends, third := sshtest.NewKey(t, "ed25519", "").Authorized, sshtest.NewKey(t, "rsa", "").Authorized, sshtest.NewKey(t, "ecdsa", "").Authorized
			own := "# my own line\ncommand=\"true\" " + friends + " friend\n"
			if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.TrimSuffix(own, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			pool := remote.NewPool()
			defer pool.Close()
			ctx := provider.WithEnv(context.Background(), provider.Env{Dialer: pool, Handshakes: pool.Dialer()})
			sink := &sshtest.Record{}
			var recorded []string
			confirm := func(keys ...string) {
				t.Helper()
				spec := specOf(s, user)
				spec.OwnerKeys = keys
				result, err := provider.Confirm(ctx, spec, machineOf(s), sink)
				if err != nil || result.Status != 0 {
					t.Fatalf("%+v, %v\n%s", result, err, sink.Text())
				}
				recorded, _ = result.Result[loom.KeysFact].([]string)
				if result.Addresses[loom.AccessV4] != s.Address || result.Addresses[loom.BindV4] != s.Address || result.Result["ssh_port"] != s.Port {
					t.Fatalf("result %+v", result)
				}
				if got := result.Result["ssh_host_keys"].(map[string]string); got["ed25519"] != s.HostKeys["ed25519"] {
					t.Fatalf("host keys %v", got)
				}
			}
			want := func(block string, keys ...string) {
				t.Helper()
				if !slices.Equal(recorded, fingerprints(t, keys...)) {
					t.Fatalf("%v are recorded, want those of %v", recorded, keys)
				}
				got, err := os.ReadFile(file)
				if err != nil || string(got) != own+block {
					t.Fatalf("authorized_keys:\n%s\nwant:\n%s\n%v", got, own+block, err)
				}
			}
			confirm(mine+" me@home", mine+" again", friends, "garbage", `no-pty,command="rm" `+third)
			block := "# loom begin owner\n" + mine + " me@home\n" + third + "\n# loom end owner\n"
			want(block, mine, third) // the friend's runs a command and opens no session
			confirm(mine+" me@home", friends, third)
			want(block, mine, third)
			confirm(mine)
			want("# loom begin owner\n"+mine+"\n# loom end owner\n", mine)

			// KEYS does the same, and nothing else: again and again, and with the cluster's own key.
			keys := func(cluster string, keys ...string) {
				t.Helper()
				spec := specOf(s, user)
				spec.Action, spec.PublicKey, spec.OwnerKeys = loom.ActionKeys, cluster, keys
				conn, release, err := pool.Conn(context.Background(), remote.Target{Reach: loom.Anywhere(), Node: "n1", Address: s.Address, Port: s.Port, User: user,
					Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}})
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				result, err := provider.PutKeys(ctx, conn, spec, sink)
				if err != nil || result.Status != 0 || len(result.Result) != 1 {
					t.Fatalf("%+v, %v\n%s", result, err, sink.Text())
				}
				recorded, _ = result.Result[loom.KeysFact].([]string)
			}
			own2 := sshtest.NewKey(t, "ed25519", "").Authorized
			for range 3 {
				keys(own2+" loom cluster", mine, third)
				want("# loom begin owner\n"+own2+" loom cluster\n"+mine+"\n"+third+"\n# loom end owner\n", own2, mine, third)
			}
			before, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			keys(own2+" loom cluster", mine, third)
			if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
				t.Errorf("the same keys write the file again: %v", err)
			}
			keys("")
			want("")
			confirm()
			want("")
			if !strings.Contains(sink.Text(), "warning: public key 4 is not") {
				t.Errorf("no warning:\n%s", sink.Text())
			}
			conn, release, err := pool.Conn(context.Background(), remote.Target{Reach: loom.Anywhere(), Node: "n1", Address: s.Address, Port: s.Port, User: user,
				Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}})
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			out, err := conn.Exec(context.Background(), remote.Command{Text: "hostname; cat /etc/hostname; stat -c '%U %a' ~/.ssh/authorized_keys"})
			if err != nil || out.Stdout != "shop1-1000.lab.example\nshop1-1000.lab.example\n"+user+" 600\n" {
				t.Fatalf("%+v, %v", out, err)
			}
			if s.Dials() > 6 { // a banner each, and one login for all
				t.Errorf("%d connections", s.Dials())
			}
		})
	}
}

func TestConfirmKeepsLinesAfterABrokenMark(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	file := filepath.Join(s.Dir, "root/.ssh/authorized_keys")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	key, mine := sshtest.NewKey(t, "ed25519", "").Authorized, sshtest.NewKey(t, "ed25519", "").Authorized
	if err := os.WriteFile(file, []byte("# loom begin owner\n"+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := specOf(s, "root")
	spec.OwnerKeys = []string{mine}
	result, err := provider.Confirm(context.Background(), spec, machineOf(s), &sshtest.Record{})
	if err != nil || result.Status != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	got, _ := os.ReadFile(file)
	if want := key + "\n# loom begin owner\n" + mine + "\n# loom end owner\n"; string(got) != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestConfirmHostKeys(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true, HostKeys: []string{"ed25519", "rsa"}})
	m := machineOf(s)
	m.HostKeys = nil
	sink := &sshtest.Record{}
	result, err := provider.Confirm(context.Background(), specOf(s, "root"), m, sink)
	if err != nil || result.Status != 0 || !strings.Contains(sink.Text(), "learned on first use") {
		t.Fatalf("%+v, %v, %s", result, err, sink.Text())
	}
	if got := result.Result["ssh_host_keys"].(map[string]string); got["ed25519"] != s.HostKeys["ed25519"] || got["rsa"] != s.HostKeys["rsa"] {
		t.Fatalf("learned %v", got)
	}
	spec := specOf(s, "root")
	spec.Results["ssh_host_keys"] = map[string]any{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	result, err = provider.Confirm(context.Background(), spec, m, sink)
	if err != nil || result.Status != 1 || result.Message != "host key of 127.0.0.1 changed" || result.Retryable == nil || *result.Retryable {
		t.Fatalf("%+v, %v", result, err)
	}
}

func TestConfirmRefusals(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	cases := map[string]struct {
		change func(*loom.TaskSpec, *provider.Machine)
		want   string
	}{
		"no address":    {func(_ *loom.TaskSpec, m *provider.Machine) { m.Addresses = nil }, "no address"},
		"bad check":     {func(s *loom.TaskSpec, _ *provider.Machine) { s.Provider.Fields["connectivity_check"] = "a;b" }, "connectivity_check"},
		"no way out":    {func(s *loom.TaskSpec, _ *provider.Machine) { s.Provider.Fields["connectivity_check"] = "host.invalid" }, "cannot resolve host.invalid"},
		"port closed":   {func(s *loom.TaskSpec, _ *provider.Machine) { s.Provider.Fields["connectivity_check"] = "localhost" }, "cannot reach localhost on port 443"},
		"bad host name": {func(s *loom.TaskSpec, _ *provider.Machine) { s.Hostname = "a b" }, "no host name"},
		"needs sudo":    {func(s *loom.TaskSpec, _ *provider.Machine) { s.SSHUser = sshtest.PlainUser }, "needs passwordless sudo"},
		"no key":        {func(s *loom.TaskSpec, _ *provider.Machine) { s.PrivateKey = loom.Secret{} }, "no SSH key"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, m := specOf(s, "root"), machineOf(s)
			c.change(spec, &m)
			result, err := provider.Confirm(context.Background(), spec, m, &sshtest.Record{})
			if err != nil || result.Status != 1 || !strings.Contains(result.Message, c.want) {
				t.Fatalf("%+v, %v", result, err)
			}
		})
	}
}

func TestConfirmRetriesRefusedLogin(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	key := sshtest.NewKey(t, "ed25519", "")
	spec := specOf(s, "root")
	spec.PrivateKey = loom.NewSecret(key.PEM)
	sink := &sshtest.Record{}
	done := make(chan loom.TaskResult, 1)
	go func() {
		result, err := provider.Confirm(context.Background(), spec, machineOf(s), sink)
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	for deadline := time.Now().Add(15 * time.Second); !strings.Contains(sink.Text(), "trying again"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no refusal seen")
		}
	}
	file := filepath.Join(s.Dir, "root/.ssh/authorized_keys") // as first-boot configuration does it
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(key.Authorized+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result := <-done; result.Status != 0 {
		t.Fatalf("%+v", result)
	}
}

func TestConfirmTakesOutRequiretty(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	file := filepath.Join(s.Dir, "etc/sudoers.d/tty")
	conn, err := remote.Dial(context.Background(), remote.Target{Reach: loom.Anywhere(), Address: s.Address, Port: s.Port, Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Upload(context.Background(), remote.File{Path: "/etc/sudoers.d/tty", Mode: 0o440,
		Content: strings.NewReader("Defaults requiretty\nDefaults !insults\n")}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		result, err := provider.Confirm(context.Background(), specOf(s, sshtest.SudoUser), machineOf(s), &sshtest.Record{})
		if err != nil || result.Status != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	got, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || string(got) != "# Defaults requiretty\nDefaults !insults\n" || info.Mode().Perm() != 0o440 {
		t.Fatalf("%q, %v, %v", got, info.Mode(), err)
	}
}

// fingerprints returns those of keys in authorized_keys form, sorted.
func fingerprints(t *testing.T, keys ...string) []string {
	t.Helper()
	all := []string{}
	for _, line := range keys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ssh.FingerprintSHA256(key))
	}
	slices.Sort(all)
	return all
}
