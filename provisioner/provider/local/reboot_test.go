package local

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"loom/app/loom"
)

// TestReboot: a machine whose first process is gone is listed as stopped and comes back with
// its files; one that runs is booted again; where there is none, none is made.
func TestReboot(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	state := func(want loom.MachineState) {
		t.Helper()
		poll(t, 30*time.Second, "list", func() error {
			list, err := b.List(b.ctx, nil)
			if err != nil || len(list) != 1 || list[0].State != want || list[0].Image != DefaultImage || len(list[0].Addresses) != 1 {
				return fmt.Errorf("%+v, %v", list, err)
			}
			return nil
		})
	}
	reboot := func() MachineInfo {
		t.Helper()
		if r, err := b.Reboot(b.ctx, spec, &sink{t: t}); err != nil || r.Status != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		return b.machine(t, spec)
	}
	if r, err := b.Reboot(b.ctx, spec, &sink{t: t}); err != nil || r.Status != 1 || !strings.Contains(r.Message, "replace the node") {
		t.Errorf("before there is a machine: %+v, %v", r, err)
	}
	if all, err := b.Machines(); err != nil || len(all) != 0 {
		t.Errorf("REBOOT made %+v, %v", all, err)
	}
	before := b.create(t, spec)
	state(loom.StateRunning)
	b.must(t, before, "echo kept >/root/file")
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	state(loom.StateStopped)
	started := reboot()
	state(loom.StateRunning)
	if out := b.must(t, started, "cat /root/file"); out != "kept" || started.PID == before.PID || started.Address != before.Address {
		t.Errorf("after the start: %q, before %+v, after %+v", out, before, started)
	}
	// One that hangs is ended like any other.
	if err := syscall.Kill(started.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	reset := reboot()
	if out := b.must(t, reset, "cat /root/file"); out != "kept" || reset.PID == started.PID {
		t.Errorf("after the reset: %q, before %+v, after %+v", out, started, reset)
	}
	spec.Results["local_host"] = "elsewhere"
	if r, err := b.Reboot(b.ctx, spec, &sink{t: t}); err != nil || r.Status != 1 || !strings.Contains(r.Message, "elsewhere") {
		t.Errorf("of another host: %+v, %v", r, err)
	}
	delete(spec.Results, "local_host")
	// What stopped it for good still holds.
	s, err := b.readState(reset.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.stopFor(b.ctx, s, "Its disk is full.", func(string) {}); err != nil {
		t.Fatal(err)
	}
	state(loom.StateStopped)
	if r, err := b.Reboot(b.ctx, spec, &sink{t: t}); err != nil || r.Status != 1 || !strings.Contains(r.Message, "Its disk is full. Delete it, or replace its node.") {
		t.Errorf("of a machine that was stopped for a reason: %+v, %v", r, err)
	}
}
