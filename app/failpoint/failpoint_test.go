package failpoint

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// actOut makes the test program hit a point twice and say that it is still there.
const actOut = "LOOM_TEST_FAULT_ACT"

func TestMain(m *testing.M) {
	if os.Getenv(actOut) != "" {
		if err := Arm(os.Getenv(Variable)); err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(3)
		}
		At("here")
		os.Stdout.WriteString("once ")
		At("here")
		os.Stdout.WriteString("twice")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(faults string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), actOut+"=1", Variable+"="+faults)
	return cmd
}

func TestKill(t *testing.T) {
	t.Parallel()
	cmd := child("here:2:kill")
	out, err := cmd.Output()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL || string(out) != "once " {
		t.Fatalf("%v, %q, %v", cmd.ProcessState, out, err)
	}
	if stderr := string(err.(*exec.ExitError).Stderr); stderr != "fault: here hit 2: kill\n" {
		t.Errorf("it said %q", stderr)
	}
	out, err = child("there:1:kill,here:3:kill").Output()
	if err != nil || string(out) != "once twice" {
		t.Fatalf("other points: %q, %v", out, err)
	}
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	cmd := child("here:1:freeze")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it does not stand still: %v, %v", status, err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "once twice" {
		t.Fatalf("%q, %v", out.String(), err)
	}
}

func TestCutFindsThePathOfPostgres(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]bool{".s.PGSQL.5432": true, "other": false} {
		path := filepath.Join(t.TempDir(), name)
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		client, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		// Not cut(): other tests of this program may have connections of their own.
		raw, err := client.(*net.UnixConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var found bool
		if err := raw.Control(func(fd uintptr) {
			peer, err := syscall.Getpeername(int(fd))
			found = err == nil && isPostgres(peer)
		}); err != nil || found != broken {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
	}
	if !isPostgres(&syscall.SockaddrInet4{Port: 5432}) || isPostgres(&syscall.SockaddrInet6{Port: 80}) {
		t.Error("ports are judged wrongly")
	}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	p, err := parse("a:2:cut, *:4:freeze,a:3:kill")
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	var done []Action
	p.say, p.act = &said, func(a Action) { done = append(done, a) }
	for _, point := range []string{"a", "b", "a", "b", "a", "a"} {
		p.hit(point)
	}
	if !slices.Equal(done, []Action{Cut, Freeze, Kill}) {
		t.Errorf("%v", done)
	}
	if want := "fault: a hit 2: cut\nfault: b hit 4: freeze\nfault: a hit 3: kill\n"; said.String() != want {
		t.Errorf("it said %q", said.String())
	}
}

func TestBadOrders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a": "point:hit:action", "a:b": "point:hit:action", ":1:kill": "point:hit:action", "a:0:kill": "from 1", "a:x:kill": "from 1", "a:1:stop": "kill, freeze or cut", "a:1:kill,": "point:hit:action",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), Variable) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "  "} {
		if p, err := parse(text); p != nil || err != nil {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for function, want := range map[string]string{
		"loom/app/execution.(*Operations).Reconcile.func1": "execution.Reconcile",
		"loom/app/execution.(*Operations).StartTasks":      "execution.StartTasks",
		"loom/app/processes.Deal":                          "processes.Deal",
		"loom/app/clusters.(*Clusters).Create.func2.1":     "clusters.Create",
		"loom/app/account.change[...]":                     "account.change",
	} {
		if got := short(function); got != want {
			t.Errorf("%s: %s, want %s", function, got, want)
		}
	}
}

// owner is asked from where a transaction is, two calls deep.
func commitLike() string { return func() string { return owner() }() }

func TestOwnerIsFoundBehindTheStore(t *testing.T) {
	t.Parallel()
	// All of this file is in the package that is left out, so the first frame
	// outside is the testing package's.
	if got := commitLike(); got != "testing.tRunner" {
		t.Errorf("%s", got)
	}
}

func BenchmarkUnarmed(b *testing.B) {
	for b.Loop() {
		Before()
	}
}
