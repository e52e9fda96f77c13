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
