package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestKilledInTheMiddle kills the process that makes a machine at ten points of
// the way, a few milliseconds apart. Whatever it left, the next process finishes
// the create, and after the delete nothing is there.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	home, err := b.ensureTenant(b.ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestMaker$", "-test.count=1")
		cmd.Env = append(os.Environ(), "LOOM_TEST_MAKER="+b.dataDir, "LOOM_TEST_MAKER_KEY="+b.public)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		spec := b.spec("acme", 0)
		poll(t, 30*time.Second, "begin of the create", func() error {
			_, err := os.Stat(b.machineDir(machineID(spec.IdempotencyKey)))
			return err
		})
		time.Sleep(time.Duration(i) * 3 * time.Millisecond) // not to wait: to hit another point
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()

		next := openLocal(t, b.dataDir)
		if err := next.Adopt(b.ctx); err != nil {
			t.Fatalf("adopt after kill %d: %v", i, err)
		}
		m := b.create(t, spec)
		b.must(t, m, "true")
		machines, err := next.Machines()
		if err != nil || len(machines) != 1 {
			t.Fatalf("kill %d: machines %+v, %v", i, machines, err)
		}
		b.delete(t, spec)
		var errs []error
		for _, dir := range []string{"machines", "addresses"} {
			if entries, err := os.ReadDir(filepath.Join(b.dataDir, dir)); err != nil || len(entries) != 0 {
				errs = append(errs, fmt.Errorf("in %s: %v, %v", dir, entries, err))
			}
		}
		if links, err := b.links(); err != nil || len(links) != 1 || links[0].Attrs().Name != home.bridge {
			errs = append(errs, fmt.Errorf("interfaces: %v, %v", links, err))
		}
		if groups := b.cgroups.leftovers(); len(groups) != 0 {
			errs = append(errs, fmt.Errorf("control groups: %v", groups))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("left after kill %d and delete: %v", i, err)
		}
	}
}

// TestFirstProcessOfADeadMaker creates a machine again while what a dead process had
// begun of it is still there: a first process that was never handed its settings and is
// slow to end. It must not be taken for the machine.
func TestFirstProcessOfADeadMaker(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	m := b.create(t, spec)
	s, err := b.readState(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.halt(s, deadAfterDelete); err != nil {
		t.Fatal(err)
	}
	settings, maker, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	first := &exec.Cmd{Path: os.Args[0], Args: []string{"loom", StageCommand}, ExtraFiles: []*os.File{null, settings, null},
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	settings.Close()
	null.Close()
	s.PID = first.Process.Pid
	if s.StartTime, _, err = processStat(s.PID); err != nil {
		t.Fatal(err)
	}
	if err := b.writeState(s); err != nil {
		t.Fatal(err)
	}
	// The end of the pipe is what tells it that its maker is gone.
	time.AfterFunc(200*time.Millisecond, func() { maker.Close() })
	again := b.create(t, spec)
	if err := first.Wait(); err == nil {
		t.Error("the first process ended as if it were a machine")
	}
	if out := b.must(t, again, "hostname"); out != spec.Hostname {
		t.Errorf("the machine is called %q", out)
	}
	b.delete(t, spec)
}
