package remote_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// TestFailure: what becomes of each kind of trouble, and that trouble of another
// sort stays the provisioner's own.
func TestFailure(t *testing.T) {
	t.Parallel()
	for kind, again := range map[error]bool{
		remote.ErrHostKeyChanged: false, remote.ErrHostCert: false, remote.ErrCredentials: false, remote.ErrJump: false,
		remote.ErrAuth: true, remote.ErrUnreachable: true, remote.ErrLost: true, remote.ErrSignal: true, remote.ErrSudo: true, remote.ErrFailed: true,
	} {
		result, err := remote.Failure(fmt.Errorf("signing in: %w", &remote.Error{Kind: kind, Text: "the sentence"}))
		never := result.Retryable != nil && !*result.Retryable
		if err != nil || result.Status != 1 || !strings.Contains(result.Message, "the sentence") || never == again {
			t.Errorf("%v: %+v, %v", kind, result, err)
		}
	}
	if _, err := remote.Failure(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// scripted is an SSH server whose sessions end as a function says, for what sshd
// never does.
func scripted(t *testing.T, end func(ssh.Channel)) remote.Target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := sshtest.NewKey(t, "ed25519", "")
	signer, err := ssh.ParsePrivateKey([]byte(key.PEM))
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		answers, err := ask("", "", []string{"Password: "}, []bool{false})
		if err != nil || len(answers) != 1 || answers[0] != "pw" {
			return nil, errors.New("no")
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	var work sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); work.Wait() })
	work.Go(func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer socket.Close()
				_, channels, requests, err := ssh.NewServerConn(socket, config)
				if err != nil {
					return
				}
				go ssh.DiscardRequests(requests)
				for asked := range channels {
					channel, requests, err := asked.Accept()
					if err != nil {
						return
					}
					for request := range requests {
						_ = request.Reply(true, nil)
						if request.Type == "exec" {
							break
						}
					}
					go ssh.DiscardRequests(requests)
					end(channel)
					_ = channel.Close()
				}
			})
		}
	})
	return remote.Target{Reach: loom.Anywhere(), Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Password: loom.NewSecret("pw")}
}

// TestExecWithoutStatus: a server that ends a command without saying how has lost
// it; that is never a success. The password answers keyboard-interactive, too.
func TestExecWithoutStatus(t *testing.T) {
	t.Parallel()
	conn := dial(t, scripted(t, func(c ssh.Channel) { _, _ = c.Write([]byte("half\n")) }))
	out, err := conn.Exec(context.Background(), remote.Command{Text: "true"})
	if !errors.Is(err, remote.ErrLost) || out.OK() || out.Code != -1 || out.Stdout != "half\n" {
		t.Fatalf("%+v, %v", out, err)
	}
	conn = dial(t, scripted(t, func(c ssh.Channel) {
		_, _ = c.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Name          string
			Core          bool
			Text, Written string
		}{"SEGV", true, "crashed", ""}))
	}))
	if out, err = conn.Exec(context.Background(), remote.Command{Text: "true"}); !errors.Is(err, remote.ErrSignal) || out.Signal != "SEGV" {
		t.Fatalf("%+v, %v", out, err)
	}
}

// TestHandshakeGate: at most eight connections to a host are unauthenticated at
// once, whoever makes them; another host has a count of its own.
func TestHandshakeGate(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := target(sshtest.Start(t, sshtest.Options{}))
	var accepted atomic.Int32
	var held sync.Map
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			held.Store(socket, true)
		}
	}()
	defer func() {
		_ = listener.Close()
		held.Range(func(socket, _ any) bool { _ = socket.(net.Conn).Close(); return true })
	}()
	var dialer remote.Dialer
	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	to := remote.Target{Reach: loom.Anywhere(), Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Password: loom.NewSecret("pw")}
	for i := range 20 {
		group.Go(func() {
			if i%2 == 0 {
				_, _ = dialer.Dial(ctx, to)
			} else {
				_ = dialer.WaitBanner(ctx, to, time.Hour)
			}
		})
	}
	until(t, "eight connections", func() bool { return accepted.Load() == remote.MaxHandshakes })
	conn, err := dialer.Dial(context.Background(), other) // others are not held up
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	// Asked while all eight are held: the end reaches those that wait one by one, and
	// some may still take the slots of those that it reached first.
	if n := accepted.Load(); n != remote.MaxHandshakes {
		t.Errorf("%d connections at once", n)
	}
}

// TestDialOldMachine: SHA-1 only where the provider's field allows it, and the
// refusal names the field.
func TestDialOldMachine(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{HostKeys: []string{"rsa"}, Config: []string{"HostKeyAlgorithms ssh-rsa", "KexAlgorithms diffie-hellman-group14-sha1", "MACs hmac-sha1", "Ciphers aes128-ctr"}})
	to := target(s)
	for _, recorded := range []map[string]string{nil, s.HostKeys} {
		to.HostKeys, to.Legacy = recorded, false
		if _, err := remote.Dial(context.Background(), to); !errors.Is(err, remote.ErrUnreachable) || !strings.Contains(err.Error(), "legacy_ssh_algorithms") {
			t.Fatalf("got %v", err)
		}
		to.Legacy = true
		dial(t, to)
	}
	if keys, err := new(remote.Dialer).ScanHostKey(context.Background(), to); err != nil || keys["rsa"] != s.HostKeys["rsa"] {
		t.Fatalf("%v, %v", keys, err)
	}
}

// TestDialLockedKey: an encrypted key of the user, as the field ssh_keyfile holds
// it, opens with the passphrase of the provider.
func TestDialLockedKey(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	key := sshtest.NewKey(t, "rsa", "open sesame")
	conn := dial(t, target(s))
	if err := conn.Upload(context.Background(), remote.File{Path: "/root/keys", Content: strings.NewReader(key.Authorized + "\n")}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Run(context.Background(), "key", remote.Command{Text: "mkdir -p /root/.ssh && mv /root/keys /root/.ssh/authorized_keys"}); err != nil {
		t.Fatal(err)
	}
	to, err := remote.TargetOf(&loom.TaskSpec{Reach: loom.Anywhere(), Node: "n", Addresses: map[string]string{loom.AccessV4: s.Address}, Results: map[string]any{"ssh_port": s.Port},
		Provider: loom.Provider{Fields: map[string]any{"ssh_keyfile": base64.StdEncoding.EncodeToString([]byte(key.PEM)), "ssh_key_passphrase": "open sesame"}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	dial(t, to)
}
