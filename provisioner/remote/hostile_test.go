package remote_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

// stalling is a connection of a machine that may stop reading for good.
type stalling struct {
	net.Conn
	stall, closed chan struct{}
	once, end     sync.Once
}

// Read reads, or waits for the end of the connection.
func (s *stalling) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	select {
	case <-s.stall:
		<-s.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

// Close closes.
func (s *stalling) Close() error {
	s.end.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// hostile is a machine whose SSH server was replaced: it answers keepalives, and sessions
// as serve does, which may call stall: then it reads nothing more.
func hostile(t *testing.T, serve func(asked ssh.NewChannel, stall func())) remote.Target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(sshtest.NewKey(t, "ed25519", "").PEM))
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PasswordCallback: func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(signer)
	var work sync.WaitGroup
	over, end := context.WithCancel(context.Background())
	t.Cleanup(func() { end(); _ = listener.Close(); work.Wait() })
	work.Go(func() {
		for {
			plain, err := listener.Accept()
			if err != nil {
				return
			}
			socket := &stalling{Conn: plain, stall: make(chan struct{}), closed: make(chan struct{})}
			context.AfterFunc(over, func() { _ = socket.Close() })
			stall := func() { socket.once.Do(func() { close(socket.stall) }) }
			work.Go(func() {
				_, channels, requests, err := ssh.NewServerConn(socket, config)
				if err != nil {
					return
				}
				work.Go(func() {
					for request := range requests {
						_ = request.Reply(true, nil)
					}
				})
				for asked := range channels {
					work.Go(func() { serve(asked, stall) })
				}
			})
		}
	})
	return remote.Target{Reach: loom.Anywhere(), Node: "n1", Address: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Password: loom.NewSecret("pw")}
}

// TestHostileServerHoldsNoTask: whatever the server of a machine leaves out, abort, the
// limit of the task and the end of the process end the command within seconds, though
// keepalives are answered.
func TestHostileServerHoldsNoTask(t *testing.T) {
	t.Parallel()
	// Each tells when the command was asked for.
	servers := map[string]func(asked chan<- struct{}) func(ssh.NewChannel, func()){
		"exec never answered": func(asked chan<- struct{}) func(ssh.NewChannel, func()) {
			return func(new ssh.NewChannel, _ func()) {
				_, requests, err := new.Accept()
				if err != nil {
					return
				}
				for range requests {
					asked <- struct{}{}
				}
			}
		},
		"session never opened": func(asked chan<- struct{}) func(ssh.NewChannel, func()) {
			return func(ssh.NewChannel, func()) { asked <- struct{}{} }
		},
		"close never confirmed": func(asked chan<- struct{}) func(ssh.NewChannel, func()) {
			return func(new ssh.NewChannel, stall func()) {
				_, requests, err := new.Accept()
				if err != nil {
					return
				}
				for request := range requests {
					stall()
					_ = request.Reply(true, nil)
					asked <- struct{}{}
				}
			}
		},
		"output without end, close never confirmed": func(asked chan<- struct{}) func(ssh.NewChannel, func()) {
			return func(new ssh.NewChannel, stall func()) {
				channel, requests, err := new.Accept()
				if err != nil {
					return
				}
				for request := range requests {
					_ = request.Reply(true, nil)
					asked <- struct{}{}
					for text := []byte(strings.Repeat("y", 15000) + "\n"); err == nil; {
						_, err = channel.Write(text)
					}
					stall()
				}
			}
		},
		"nothing is read, the command says much": func(asked chan<- struct{}) func(ssh.NewChannel, func()) {
			return func(new ssh.NewChannel, stall func()) {
				channel, requests, err := new.Accept()
				if err != nil {
					return
				}
				for request := range requests {
					stall()
					_ = request.Reply(true, nil)
					_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
					asked <- struct{}{}
				}
			}
		},
	}
	enough := errors.New("enough")
	ends := map[string]func(asked <-chan struct{}) (context.Context, func()){
		"abort": func(asked <-chan struct{}) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			go func() { <-asked; cancel(enough) }()
			return ctx, func() { cancel(nil) }
		},
		"limit": func(asked <-chan struct{}) (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), 300*time.Millisecond, enough)
			return ctx, cancel
		},
	}
	for what, server := range servers {
		for how, begin := range ends {
			t.Run(what+", "+how, func(t *testing.T) {
				t.Parallel()
				asked := make(chan struct{}, 100)
				pool := remote.NewPool()
				defer pool.Close()
				conn, release, err := pool.Conn(t.Context(), hostile(t, server(asked)))
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				conn.SetGrace(200 * time.Millisecond)
				conn.SetKillAfter(200 * time.Millisecond)
				ctx, cancel := begin(asked)
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := conn.Exec(ctx, remote.Command{Text: "true", Stdin: strings.NewReader(strings.Repeat("x", 8<<20))})
					ended <- err
				}()
				select {
				case err := <-ended:
					// What has said how it ended is not stopped by what comes later.
					if !errors.Is(err, enough) && (err != nil || !strings.HasPrefix(what, "nothing is read")) {
						t.Errorf("got %v", err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("the command is held")
				}
			})
		}
		t.Run(what+", end", func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 100)
			pool := remote.NewPool()
			conn, release, err := pool.Conn(t.Context(), hostile(t, server(asked)))
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			ended := make(chan struct{})
			go func() { defer close(ended); _, _ = conn.Exec(context.Background(), remote.Command{Text: "true"}) }()
			<-asked
			_ = pool.Close()
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatal("the command is held")
			}
		})
	}
}

// TestAbortLeavesTheConnection: a machine that confirms the end of a session keeps its
// connection and what else runs on it.
func TestAbortLeavesTheConnection(t *testing.T) {
	t.Parallel()
	conn := dial(t, target(sshtest.Start(t, sshtest.Options{})))
	other := make(chan error, 1)
	stdin := &gate{open: make(chan struct{})}
	go func() {
		_, err := conn.Exec(context.Background(), remote.Command{Text: "read x", Stdin: stdin})
		other <- err
	}()
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err := conn.Exec(ctx, remote.Command{Text: "sleep 100"})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
	close(stdin.open)
	if err := <-other; err != nil {
		t.Errorf("the command beside: %v", err)
	}
}

// TestSaidOfMachinesIsShort: what a server says in a refusal is cut, on one line, and
// without control characters.
func TestSaidOfMachinesIsShort(t *testing.T) {
	t.Parallel()
	to := hostile(t, func(asked ssh.NewChannel, _ func()) {
		_ = asked.Reject(ssh.ResourceShortage, strings.Repeat("\x1b[31mEVIL\x07\n<script>é\x00\xff", 800))
	})
	_, err := dial(t, to).Exec(t.Context(), remote.Command{Text: "true"})
	if !errors.Is(err, remote.ErrLost) || !strings.Contains(err.Error(), "EVIL") {
		t.Fatalf("got %v", err)
	}
	result, _ := remote.Failure(err)
	for _, text := range []string{err.Error(), result.Message} {
		if len(text) > 600 || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
	for text, want := range map[string]string{"": "", "plain é": "plain é", "a\tb\r\nc\x00": "a b c", "\x1b[31mred\x07": "red", strings.Repeat("é", 300): strings.Repeat("é", 200) + "…"} {
		if got := loom.Short(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
