package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/remote/sshtest"
)

func target(s *sshtest.Server) remote.Target {
	return remote.Target{Reach: loom.Anywhere(), Node: "node-1", Address: s.Address, Port: s.Port, User: s.User,
		Keys: []loom.Secret{loom.NewSecret(s.Key.PEM)}, HostKeys: s.HostKeys}
}

func dial(tb testing.TB, t remote.Target) *remote.Conn {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := remote.Dial(ctx, t)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// until polls a condition; nothing here waits by sleeping for a fixed time.
func until(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			tb.Fatalf("%s did not come true", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	conn := dial(t, target(s))
	cases := []struct {
		name string
		cmd  remote.Command
		want remote.Outcome
	}{
		{"streams", remote.Command{Text: "echo out; echo err >&2"}, remote.Outcome{Stdout: "out\n", Stderr: "err\n"}},
		{"status", remote.Command{Text: "exit 7"}, remote.Outcome{Code: 7}},
		{"status of the last command", remote.Command{Text: "false"}, remote.Outcome{Code: 1}},
		{"environment", remote.Command{Text: `printf '%s|' "$A" "$LANG"`, Env: map[string]string{"A": `it's "$HOME" \`}}, remote.Outcome{Stdout: `it's "$HOME" \|C.UTF-8|`}},
		{"directory", remote.Command{Text: "pwd", Dir: "/usr"}, remote.Outcome{Stdout: "/usr\n"}},
		{"missing directory", remote.Command{Text: "pwd", Dir: "/does/not/exist"}, remote.Outcome{Code: 126}},
		{"input", remote.Command{Text: "cat", Stdin: strings.NewReader("a\nb")}, remote.Outcome{Stdout: "a\nb"}},
		{"no input", remote.Command{Text: "cat; echo end"}, remote.Outcome{Stdout: "end\n"}},
		{"as root", remote.Command{Text: "id -u", Root: true}, remote.Outcome{Stdout: "0\n"}},
		{"quotes and lines", remote.Command{Text: "x='a b'\necho \"$x\" 'it'\\''s'"}, remote.Outcome{Stdout: "a b it's\n"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.cmd.Root && s.User != "root" {
				t.Skip("needs root")
			}
			got, err := conn.Exec(context.Background(), c.cmd)
			if c.name == "missing directory" {
				got.Stderr = ""
			}
			if err != nil || got != c.want {
				t.Fatalf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestExecLines(t *testing.T) {
	t.Parallel()
	conn := dial(t, target(sshtest.Start(t, sshtest.Options{})))
	lines := make(chan string, 10)
	stdin := &gate{open: make(chan struct{})}
	go func() {
		if got := <-lines; got != "stdout:first" {
			t.Errorf("first line is %q", got)
		}
		close(stdin.open) // only now may the command go on: lines come as they are written
	}()
	_, err := conn.Exec(context.Background(), remote.Command{
		Text: "echo first; read x; printf 'a\\377b\\0c\\r\\n'; printf unfinished >&2", Stdin: stdin,
		Line: func(stream, text string) { lines <- stream + ":" + text }})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{<-lines: true, <-lines: true}
	if !got["stdout:a\uFFFDbc"] || !got["stderr:unfinished"] {
		t.Fatalf("got %v", got)
	}
}

// gate is an input that ends once it is opened.
type gate struct{ open chan struct{} }

// Read waits for the gate.
func (g *gate) Read(p []byte) (int, error) {
	<-g.open
	return copy(p, "x\n"), fmt.Errorf("end")
}

func TestExecTail(t *testing.T) {
	t.Parallel()
	conn := dial(t, target(sshtest.Start(t, sshtest.Options{})))
	count := 0
	got, err := conn.Exec(context.Background(), remote.Command{Text: "seq 1 100000", Tail: 1000, Line: func(string, string) { count++ }})
	if err != nil || count != 100000 {
		t.Fatalf("%d lines, %v", count, err)
	}
	if len(got.Stdout) > 1020 || !strings.HasPrefix(got.Stdout, "[snipped]") || !strings.HasSuffix(got.Stdout, "\n100000\n") {
		t.Fatalf("tail of %d bytes: %q", len(got.Stdout), got.Stdout)
	}
}

func TestExecSignal(t *testing.T) {
	t.Parallel()
	conn := dial(t, target(sshtest.Start(t, sshtest.Options{})))
	got, err := conn.Exec(context.Background(), remote.Command{Text: "kill -KILL $$"})
	if !errors.Is(err, remote.ErrSignal) || got.Signal != "KILL" || got.Code != -1 || got.OK() {
		t.Fatalf("got %+v, %v", got, err)
	}
	if result, err := remote.Failure(err); err != nil || result.Status != 1 || !strings.Contains(result.Message, "signal KILL") {
		t.Fatalf("result %+v, %v", result, err)
	}
}

func TestExecDaemonDoesNotHoldTheCommand(t *testing.T) {
	t.Parallel()
	conn := dial(t, target(sshtest.Start(t, sshtest.Options{})))
	got, err := conn.Exec(context.Background(), remote.Command{Text: "sleep 600 & echo $!"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Run(context.Background(), "kill", remote.Command{Text: "kill " + got.Stdout}); err != nil {
		t.Fatalf("the daemon is gone: %v", err)
	}
}

func TestExecConnectionLost(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	conn := dial(t, target(s))
	_, err := conn.Exec(context.Background(), remote.Command{Text: "echo go; sleep 60", Line: func(string, string) { s.Cut() }})
	if !errors.Is(err, remote.ErrLost) {
		t.Fatalf("got %v", err)
	}
	if _, err := conn.Exec(context.Background(), remote.Command{Text: ":"}); !errors.Is(err, remote.ErrLost) {
		t.Fatalf("on a dead connection: %v", err)
	}
}

func TestExecCancelStopsTheGroup(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	for _, user := range []string{"root", sshtest.SudoUser} {
		for name, text := range map[string]string{
			"gentle":   "trap 'echo got TERM; exit 3' TERM; echo $$; sleep 1000 & echo $!; wait",
			"stubborn": "trap '' TERM; sh -c 'echo $$; while :; do sleep 1; done' & sleep 0.01; echo $$; while :; do sleep 1; done",
		} {
			t.Run(user+" "+name, func(t *testing.T) {
				t.Parallel()
				to := target(s)
				to.User = user
				conn := dial(t, to)
				conn.SetKillAfter(700 * time.Millisecond)
				cause := errors.New("enough")
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				var mu sync.Mutex
				var lines []string
				out, err := conn.Exec(ctx, remote.Command{Root: true, Text: text, Line: func(_, s string) {
					mu.Lock()
					defer mu.Unlock()
					if lines = append(lines, s); len(lines) == 2 {
						cancel(cause)
					}
				}})
				if !errors.Is(err, cause) {
					t.Fatalf("got %v", err)
				}
				if name == "gentle" && !strings.Contains(out.Stdout, "got TERM") {
					t.Errorf("no TERM arrived: %+v", out)
				}
				for _, pid := range lines[:2] {
					until(t, "end of process "+pid, func() bool {
						out, err := conn.Exec(context.Background(), remote.Command{Text: "cat /proc/" + pid + "/stat"})
						return err == nil && (out.Code != 0 || strings.Contains(out.Stdout, ") Z "))
					})
				}
			})
		}
	}
}

func TestExecSudo(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{Isolated: true})
	to := target(s)
	to.User = sshtest.SudoUser
	conn := dial(t, to)
	got, err := conn.Exec(context.Background(), remote.Command{Root: true, Text: `echo "$(id -un) $A" | tr a-z A-Z > /root/out; cat /root/out; exit 5`, Env: map[string]string{"A": "b'c"}})
	if err != nil || got.Stdout != "ROOT B'C\n" || got.Code != 5 {
		t.Fatalf("got %+v, %v", got, err)
	}
	got, err = conn.Exec(context.Background(), remote.Command{Root: true, Text: "kill -KILL $$"})
	if !errors.Is(err, remote.ErrSignal) {
		t.Fatalf("a signal under sudo: %+v, %v", got, err)
	}
	to.User = sshtest.PlainUser
	_, err = dial(t, to).Exec(context.Background(), remote.Command{Root: true, Text: "id"})
	if !errors.Is(err, remote.ErrSudo) || !strings.Contains(err.Error(), "user nosudo needs passwordless sudo") {
		t.Fatalf("got %v", err)
	}
}

func TestExecMoreThanEightAtOnce(t *testing.T) {
	t.Parallel()
	conn := dial(t, target(sshtest.Start(t, sshtest.Options{})))
	var group sync.WaitGroup
	for range 40 {
		group.Go(func() {
			if _, err := conn.Run(context.Background(), "true", remote.Command{Text: "sleep 0.02"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
