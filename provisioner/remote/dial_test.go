package remote_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func TestDialHostKeys(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
	other := sshtest.NewKey(t, "ed25519", "")
	cases := []struct {
		name     string
		recorded map[string]string
		want     error
		learned  string
	}{
		{"all recorded", s.HostKeys, nil, "ed25519"},
		{"rsa only, signed with SHA-2", map[string]string{"rsa": s.HostKeys["rsa"]}, nil, "rsa"},
		{"ecdsa only", map[string]string{"ecdsa": s.HostKeys["ecdsa"]}, nil, "ecdsa"},
		{"none recorded", nil, nil, "ed25519"},
		{"other key", map[string]string{"ed25519": other.Blob}, remote.ErrHostKeyChanged, ""},
		{"key of another type", map[string]string{"ed25519": s.HostKeys["rsa"]}, remote.ErrHostKeyChanged, ""},
		{"not base64", map[string]string{"ed25519": "%%%"}, remote.ErrHostKeyChanged, ""},
		{"unknown type", map[string]string{"dss": "AAAA"}, remote.ErrCredentials, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			to := target(s)
			to.HostKeys = c.recorded
			conn, err := remote.Dial(context.Background(), to)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v", err)
			}
			if c.want == remote.ErrHostKeyChanged {
				result, _ := remote.Failure(err)
				if result.Message != "host key of 127.0.0.1 changed" || result.Retryable == nil || *result.Retryable {
					t.Fatalf("result %+v", result)
				}
			}
			if err == nil {
				defer conn.Close()
				if got := conn.HostKeys(); got[c.learned] != s.HostKeys[c.learned] || len(got) != 1 {
					t.Fatalf("learned %v", got)
				}
			}
		})
	}
	t.Run("scan", func(t *testing.T) {
		t.Parallel()
		got, err := new(remote.Dialer).ScanHostKey(context.Background(), target(s))
		if err != nil || len(got) != 3 || got["rsa"] != s.HostKeys["rsa"] || got["ecdsa"] != s.HostKeys["ecdsa"] || got["ed25519"] != s.HostKeys["ed25519"] {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

func TestDialServerWithoutRecordedType(t *testing.T) {
	t.Parallel()
	to := target(sshtest.Start(t, sshtest.Options{HostKeys: []string{"rsa"}}))
	to.HostKeys = map[string]string{"ed25519": sshtest.NewKey(t, "ed25519", "").Blob}
	if _, err := remote.Dial(context.Background(), to); !errors.Is(err, remote.ErrHostKeyChanged) {
		t.Fatalf("got %v", err)
	}
	got, err := new(remote.Dialer).ScanHostKey(context.Background(), to)
	if err != nil || len(got) != 1 || got["rsa"] == "" {
		t.Fatalf("scan gave %v, %v", got, err)
	}
}

func TestDialCredentials(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true, Config: []string{"MaxAuthTries 3"}})
	locked := sshtest.NewKey(t, "rsa", "open sesame")
	cases := []struct {
		name   string
		change func(*remote.Target)
		want   error
		text   string
	}{
		{"password", func(t *remote.Target) {
			t.User, t.Keys, t.Password = sshtest.SudoUser, nil, loom.NewSecret(sshtest.Password)
		}, nil, ""},
		{"second key fits", func(to *remote.Target) {
			to.Keys = append([]loom.Secret{loom.NewSecret(sshtest.NewKey(t, "ecdsa", "").PEM)}, to.Keys...)
		}, nil, ""},
		{"wrong key", func(to *remote.Target) {
			to.Keys = []loom.Secret{loom.NewSecret(sshtest.NewKey(t, "ed25519", "").PEM)}
		}, remote.ErrAuth, "SSH authentication failed for root@127.0.0.1"},
		{"wrong password", func(to *remote.Target) {
			to.User, to.Keys, to.Password = sshtest.SudoUser, nil, loom.NewSecret("guess")
		}, remote.ErrAuth, "SSH authentication failed for tester@127.0.0.1"},
		{"nothing", func(to *remote.Target) { to.Keys = nil }, remote.ErrCredentials, "no SSH key and no password"},
		{"garbage", func(to *remote.Target) { to.Keys = []loom.Secret{loom.NewSecret("hunter2")} }, remote.ErrCredentials, "cannot be read"},
		{"passphrase missing", func(to *remote.Target) { to.Keys = []loom.Secret{loom.NewSecret(locked.PEM)} }, remote.ErrCredentials, "needs a passphrase"},
		{"passphrase wrong", func(to *remote.Target) {
			to.Keys, to.Passphrase = []loom.Secret{loom.NewSecret(locked.PEM)}, loom.NewSecret("no")
		}, remote.ErrCredentials, "cannot be read"},
		{"passphrase right, key unknown", func(to *remote.Target) {
			to.Keys, to.Passphrase = []loom.Secret{loom.NewSecret(locked.PEM)}, loom.NewSecret("open sesame")
		}, remote.ErrAuth, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			to := target(s)
			c.change(&to)
			conn, err := remote.Dial(context.Background(), to)
			if err == nil {
				_ = conn.Close()
			}
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v", err)
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "guess")) {
				t.Fatalf("the error gives the secret away: %v", err)
			}
		})
	}
}

func TestDialRetriesResets(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	s.Refuse(3)
	dial(t, target(s))
	if s.Dials() != 4 {
		t.Fatalf("%d dials", s.Dials())
	}
}

func TestDialManyAtOnce(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	var dialer remote.Dialer
	var group sync.WaitGroup
	for range 30 {
		group.Go(func() {
			conn, err := dialer.Dial(context.Background(), target(s))
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		})
	}
	group.Wait()
}

func TestDialUnreachable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	to := remote.Target{Reach: loom.Anywhere(), Address: "127.0.0.1", Port: port, Password: loom.NewSecret("whatever")}
	if _, err := remote.Dial(context.Background(), to); !errors.Is(err, remote.ErrUnreachable) {
		t.Fatalf("got %v", err)
	}
	err = new(remote.Dialer).WaitBanner(context.Background(), to, 50*time.Millisecond)
	if !errors.Is(err, remote.ErrUnreachable) {
		t.Fatalf("got %v", err)
	}
}

func TestDialCancelled(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	s.Silence()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		for s.Dials() == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel(cause)
	}()
	if _, err := remote.Dial(ctx, target(s)); !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}
}

func TestTargetOf(t *testing.T) {
	t.Parallel()
	spec := &loom.TaskSpec{Node: "n", Addresses: map[string]string{loom.AccessV4: "203.0.113.1"}, SSHUser: "ubuntu",
		Results: map[string]any{
			"ssh-auth":      map[string]any{"user": "admin", "password": "pw-of-cloud", "identityfile": "/var/old/installation/ssh_keys/prod"},
			"ssh_host_keys": map[string]any{"rsa": "AAAA"}, "ssh_port": float64(2222)}}
	if _, err := remote.TargetOf(spec, t.TempDir()); !errors.Is(err, remote.ErrCredentials) || !strings.Contains(err.Error(), "ssh_keys/prod") {
		t.Fatalf("missing resource: %v", err)
	}
	spec.Provider.Fields = map[string]any{"ssh_keyfile": "c2VjcmV0\n"}
	got, err := remote.TargetOf(spec, "")
	if err != nil || got.User != "admin" || got.Port != 2222 || got.HostKeys["rsa"] != "AAAA" || got.Password.Reveal() != "pw-of-cloud" ||
		len(got.Keys) != 1 || got.Keys[0].Reveal() != "secret" {
		t.Fatalf("got %+v, %v", got, err)
	}
	spec.Provider.Fields["ssh_keyfile"] = "***"
	if _, err := remote.TargetOf(spec, ""); !errors.Is(err, remote.ErrCredentials) {
		t.Fatalf("bad base64: %v", err)
	}
	spec.Provider.Fields = nil
	spec.Results["ssh-auth"] = map[string]any{"identityfile": "../passwd"}
	if _, err := remote.TargetOf(spec, "/etc/ssh"); !errors.Is(err, remote.ErrCredentials) {
		t.Fatalf("left the directory: %v", err)
	}
}

// TestTargetOfTakesTheProvidersOwn: a node's facts hold only what was made for it.
func TestTargetOfTakesTheProvidersOwn(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	files := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(files, "ssh_keys"), 0o755), os.WriteFile(filepath.Join(files, "ssh_keys", "prod"), []byte(key.PEM), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		auth, fields map[string]any
		password     string
		keys         int
	}{
		"made for the machine":   {map[string]any{"password": "made"}, map[string]any{"ssh_password": "of all"}, "made", 0},
		"of all machines":        {map[string]any{"user": "ops"}, map[string]any{"ssh_password": " of all\n"}, "of all", 0},
		"changed to a key":       {map[string]any{"user": "ops"}, map[string]any{"ssh_key_resource": "prod"}, "", 1},
		"a key beside its own":   {map[string]any{"password": "made"}, map[string]any{"ssh_key_resource": "prod"}, "made", 0},
		"both, the key recorded": {map[string]any{"identityfile": "ssh_keys/prod"}, map[string]any{"ssh_key_resource": "prod", "ssh_password": "of all"}, "of all", 1},
	} {
		got, err := remote.TargetOf(&loom.TaskSpec{Results: map[string]any{"ssh-auth": c.auth}, Provider: loom.Provider{Fields: c.fields}}, files)
		if err != nil || got.Password.Reveal() != c.password || len(got.Keys) != c.keys {
			t.Errorf("%s: %q, %d keys, %v", name, got.Password.Reveal(), len(got.Keys), err)
		}
	}
}
