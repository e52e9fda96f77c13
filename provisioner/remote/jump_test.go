package remote_test

import (
	"context"
	"errors"
	"fmt"
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

// behind returns a target that is reached by way of jump hosts.
func behind(s *sshtest.Server, jumps ...*sshtest.Server) remote.Target {
	to := target(s)
	for _, jump := range jumps {
		hop := target(jump)
		hop.Node = ""
		to.Jump = append(to.Jump, hop)
	}
	return to
}

// port returns the port at which a machine was reached.
func port(t *testing.T, conn *remote.Conn) string {
	t.Helper()
	out, err := conn.Run(context.Background(), "who", remote.Command{Text: `set -- $SSH_CONNECTION; echo "$4"`})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.Stdout)
}

// TestJump: everything about a machine goes by way of its jump hosts, on one
// connection to each, and the last of its users to go closes it.
func TestJump(t *testing.T) {
	t.Parallel()
	machine, first, second := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	pool := remote.NewPool()
	defer pool.Close()
	to := behind(machine, first, second)
	ctx := context.Background()
	if err := pool.Dialer().WaitBanner(ctx, to, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	bare := to
	bare.HostKeys = nil
	keys, err := pool.Dialer().ScanHostKey(ctx, bare)
	if err != nil || keys["ed25519"] != machine.HostKeys["ed25519"] {
		t.Fatalf("%v, %v", keys, err)
	}
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			mine := to
			mine.Node = loom.NodeID(fmt.Sprint("n", i))
			conn, release, err := pool.Conn(ctx, mine)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if got := port(t, conn); got != fmt.Sprint(machine.Port) {
				t.Errorf("on the machine with port %s", got)
			}
			if got := conn.JumpHostKeys(); len(got) != 2 || got[to.Jump[0].HostPort()]["ed25519"] != first.HostKeys["ed25519"] ||
				got[to.Jump[1].HostPort()]["ed25519"] != second.HostKeys["ed25519"] {
				t.Errorf("keys of jump hosts: %v", got)
			}
			big := strings.Repeat("0123456789abcdef", 1<<15)
			if err := conn.Upload(ctx, remote.File{Path: filepath.Join(machine.Dir, fmt.Sprint("big", i)), Content: strings.NewReader(big)}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if first.Dials() != 1 || second.Dials() != 1 {
		t.Errorf("%d and %d connections to the jump hosts", first.Dials(), second.Dials())
	}
	// A jump host that dies takes the machines' connections with it; the next task
	// comes by anew.
	conn, release, err := pool.Conn(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, remote.Command{Text: "echo go; sleep 100", Line: func(string, string) { first.Cut() }})
	release()
	if !errors.Is(err, remote.ErrLost) {
		t.Fatalf("got %v", err)
	}
	conn, release, err = pool.Conn(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if first.Dials() != 2 || second.Dials() != 2 {
		t.Errorf("%d and %d connections to the jump hosts after one died", first.Dials(), second.Dials())
	}
	_ = pool.Close()
	<-conn.Done()
}

func TestJumpTrouble(t *testing.T) {
	t.Parallel()
	machine, jump := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	closed := sshtest.Start(t, sshtest.Options{Config: []string{"AllowTcpForwarding no"}})
	gone := 1 // nobody listens there
	stranger := sshtest.NewKey(t, "ed25519", "")
	at := fmt.Sprintf("jump host 127.0.0.1:%d", jump.Port)
	for name, c := range map[string]struct {
		change func(*remote.Target)
		want   error
		text   string
		never  bool
	}{
		"refused":        {func(to *remote.Target) { to.Jump[0].Keys = []loom.Secret{loom.NewSecret(stranger.PEM)} }, remote.ErrAuth, at + ": SSH authentication failed for " + jump.User, false},
		"no key":         {func(to *remote.Target) { to.Jump[0].Keys = nil }, remote.ErrCredentials, at + ": no SSH key", true},
		"other host key": {func(to *remote.Target) { to.Jump[0].HostKeys = map[string]string{"ed25519": stranger.Blob} }, remote.ErrHostKeyChanged, at + ": host key of 127.0.0.1 changed", true},
		"not there":      {func(to *remote.Target) { to.Jump[0].Port = gone }, remote.ErrUnreachable, "jump host 127.0.0.1:1: no SSH connection", false},
		"no forwarding":  {func(to *remote.Target) { to.Jump[0] = behind(machine, closed).Jump[0] }, remote.ErrJump, "does not pass on connections to", true},
		"machine away":   {func(to *remote.Target) { to.Port = gone }, remote.ErrUnreachable, "no SSH connection to 127.0.0.1:1 by way of " + at, false},
		"second not there": {func(to *remote.Target) {
			to.Jump = append(to.Jump, to.Jump[0])
			to.Jump[1].Port = gone
		}, remote.ErrUnreachable, "jump host 127.0.0.1:1: no SSH connection to 127.0.0.1:1 by way of " + at, false},
		"machine's host key": {func(to *remote.Target) { to.HostKeys = map[string]string{"ed25519": stranger.Blob} }, remote.ErrHostKeyChanged, "host key of 127.0.0.1 changed", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := behind(machine, jump)
			c.change(&to)
			pool := remote.NewPool()
			defer pool.Close()
			_, _, err := pool.Conn(context.Background(), to)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v", err)
			}
			result, err := remote.Failure(err)
			if err != nil || result.Status != 1 || (result.Retryable != nil && !*result.Retryable) != c.never {
				t.Fatalf("%+v, %v", result, err)
			}
			if name == "machine's host key" {
				return
			}
			// Waiting ends at once where it is useless, else with the limit.
			limit := time.Hour
			if c.want == remote.ErrUnreachable {
				limit = 100 * time.Millisecond
			}
			err = pool.Dialer().WaitBanner(context.Background(), to, limit)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "jump host ") {
				t.Fatalf("waiting: %v", err)
			}
		})
	}
}

// TestJumpCancelled: neither a silent jump host nor a silent machine behind one
// holds a task that is told to end.
func TestJumpCancelled(t *testing.T) {
	t.Parallel()
	machine, jump := sshtest.Start(t, sshtest.Options{}), sshtest.Start(t, sshtest.Options{})
	silent := sshtest.Start(t, sshtest.Options{})
	silent.Silence()
	for name, to := range map[string]remote.Target{"jump host": behind(machine, silent), "machine": behind(silent, jump)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause := errors.New("enough")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			before := silent.Dials()
			go func() {
				for silent.Dials() == before {
					time.Sleep(time.Millisecond)
				}
				cancel(cause)
			}()
			if _, err := remote.Dial(ctx, to); !errors.Is(err, cause) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestJumpOf(t *testing.T) {
	t.Parallel()
	own, theirs, pinned := sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ecdsa", "")
	files := t.TempDir()
	if err := os.Mkdir(filepath.Join(files, "ssh_keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "ssh_keys/jump"), []byte(theirs.PEM), 0o400); err != nil {
		t.Fatal(err)
	}
	of := func(fields map[string]any, results map[string]any) (remote.Target, error) {
		return remote.TargetOf(&loom.TaskSpec{Node: "n", Addresses: map[string]string{loom.AccessV4: "10.0.0.5"}, PrivateKey: loom.NewSecret(own.PEM),
			Results: results, Provider: loom.Provider{Fields: fields}}, files)
	}
	to, err := of(map[string]any{"ssh_jump": " ops@Gate.example , 10.0.0.1:2222,x@[2001:db8::1]:22, 2001:db8::2", "ssh_key_passphrase": "pp", "legacy_ssh_algorithms": "on",
		"ssh_jump_host_key": "# ours\n" + pinned.Authorized + "\n[10.0.0.1]:2222 " + theirs.Authorized + "\n"}, nil)
	if err != nil || len(to.Jump) != 4 {
		t.Fatalf("%+v, %v", to.Jump, err)
	}
	for i, want := range []struct {
		user, place string
		keys        map[string]string
	}{
		{"ops", "gate.example:22", map[string]string{"ecdsa": pinned.Blob}}, {"", "10.0.0.1:2222", map[string]string{"ed25519": theirs.Blob}},
		{"x", "[2001:db8::1]:22", map[string]string{"ecdsa": pinned.Blob}}, {"", "[2001:db8::2]:22", map[string]string{"ecdsa": pinned.Blob}},
	} {
		hop := to.Jump[i]
		if hop.User != want.user || hop.HostPort() != want.place || fmt.Sprint(hop.HostKeys) != fmt.Sprint(want.keys) || !hop.Legacy || hop.Passphrase.Reveal() != "pp" ||
			len(hop.Keys) != 1 || hop.Keys[0].Reveal() != own.PEM {
			t.Errorf("jump host %d: %+v", i, hop)
		}
	}
	recorded := map[string]any{"ssh_jump_host_keys": map[string]any{"gate:22": map[string]any{"ed25519": own.Blob}}}
	to, err = of(map[string]any{"ssh_jump": "ops@gate,ops@other", "ssh_jump_key_resource": "/old/place/ssh_keys/jump"}, recorded)
	if err != nil || to.Jump[0].HostKeys["ed25519"] != own.Blob || to.Jump[1].HostKeys != nil || to.Jump[0].Keys[0].Reveal() != theirs.PEM || to.Keys[0].Reveal() != own.PEM {
		t.Errorf("%+v, %v", to.Jump, err)
	}
	if to, err = of(map[string]any{"ssh_jump": ""}, recorded); err != nil || to.Jump != nil {
		t.Errorf("%+v, %v", to.Jump, err)
	}
	for name, fields := range map[string]map[string]any{
		"ssh_jump":              {"ssh_jump": "a b@gate"},
		"names no host":         {"ssh_jump": "ops@gate,,ops@other"},
		"between 1 and 65535":   {"ssh_jump": "ops@gate:0"},
		"give user@host":        {"ssh_jump": "ops@ga_te:22x"},
		"at most 8":             {"ssh_jump": strings.Repeat("ops@gate,", 8) + "ops@gate"},
		"ssh_jump_host_key":     {"ssh_jump": "gate", "ssh_jump_host_key": "not a key"},
		"is no public host key": {"ssh_jump": "gate", "ssh_jump_host_key": "@cert-authority * " + own.Authorized},
		"ssh_keys/away":         {"ssh_jump": "gate", "ssh_jump_key_resource": "away"},
	} {
		if _, err := of(fields, nil); !errors.Is(err, remote.ErrCredentials) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", fields, err)
		}
	}
}
