package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"loom/app/loom"
)

// TestStopAndAdopt: a stopped machine comes back as it was, made by a process
// that knows the data directory only.
func TestStopAndAdopt(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	spec.Provider.Fields["ssh_user"] = "ops"
	before := b.create(t, spec)
	if auth := spec.Results["ssh-auth"].(map[string]any); auth["user"] != "ops" {
		t.Errorf("ssh-auth is %v", auth)
	}
	out, err := b.runAs(t, "ops", before, `sudo -n sh -c 'id -u; echo kept > /root/file; echo ssh-ed25519 AAAA extra >> /home/ops/.ssh/authorized_keys; cat > /etc/init.d/probe; chmod 755 /etc/init.d/probe; ln -s ../init.d/probe /etc/rc2.d/S01probe' <<'END'
#!/bin/sh
echo "$0 $1" > /run/probe
END
nohup sh -c 'trap "sync; echo saved > /home/ops/saved; exit" TERM; : > /tmp/ready; while :; do sleep 0.05; done' > /dev/null 2>&1 &
until [ -e /tmp/ready ]; do sleep 0.01; done`)
	if err != nil || out != "0" {
		t.Fatalf("sudo of the user: %q, %v", out, err)
	}
	// What scripts of services call to have a daemon back after a boot.
	functions, err := os.ReadFile("../../automator/shell/lib/functions.sh")
	if err != nil {
		t.Fatal(err)
	}
	out, err = b.runAs(t, "ops", before, "sudo -n sh -s <<'SUDO'\ncd /root\n"+string(functions)+`
loom_enable_at_boot beacon sh -c 'echo "$0 $(pwd)"; exec sleep 1000' "it's up"
loom_enable_at_boot gone sleep 1001
loom_disable_at_boot gone
ls /etc/init.d/loom-*
SUDO`)
	if err != nil || out != "/etc/init.d/loom-beacon" {
		t.Fatalf("enable at boot: %q, %v", out, err)
	}
	stopper := openLocal(t, b.dataDir)
	if err := stopper.StopAll(b.ctx); err != nil {
		t.Fatal(err)
	}
	if m := b.machine(t, spec); m.Running || m.PID != 0 {
		t.Errorf("after StopAll: %+v", m)
	}
	b.assertNothingOutside(t)

	starter := openLocal(t, b.dataDir)
	if err := starter.Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	after := b.machine(t, spec)
	if !after.Running || after.Address != before.Address || after.PID == before.PID {
		t.Fatalf("before %+v, after %+v", before, after)
	}
	// The connection checks that the host key is the one on record since CREATE.
	poll(t, 10*time.Second, "enabled service after boot", func() error {
		if out, err := b.runAs(t, "ops", after, "cat /run/probe"); err != nil || out != "/etc/rc2.d/S01probe start" {
			return fmt.Errorf("%q, %v", out, err)
		}
		return nil
	})
	poll(t, 10*time.Second, "command enabled at boot", func() error {
		if out, err := b.runAs(t, "ops", after, "sudo cat /var/log/loom-beacon.log && pgrep -fc '^sleep 100'"); err != nil || out != "it's up /root\n1" {
			return fmt.Errorf("%q, %v", out, err)
		}
		return nil
	})
	if out, err := b.runAs(t, "ops", after, "sudo cat /root/file; grep -c '' .ssh/authorized_keys; cat saved; hostname"); err != nil || out != "kept\n2\nsaved\nshop7-1000.example.net" {
		t.Errorf("files after boot: %q, %v", out, err)
	}
	// Adopting what runs changes nothing.
	if err := starter.Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	if again := b.machine(t, spec); again.PID != after.PID {
		t.Errorf("a running machine was booted again: %+v, %+v", after, again)
	}
	// Someone removed the bridge: the machine is connected again and not disturbed.
	bridge, err := netlink.LinkByName(b.bridgeName(0))
	if err == nil {
		err = netlink.LinkDel(bridge)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	// Someone removed the cable: only a boot helps.
	if err := banner(after.Address); err != nil || b.machine(t, spec).PID != after.PID {
		t.Errorf("after the bridge was removed: %v, %+v", err, b.machine(t, spec))
	}
	if err := errors.Join(b.unplug(after.Address), starter.Adopt(b.ctx)); err != nil {
		t.Fatal(err)
	}
	if err := banner(after.Address); err != nil {
		t.Errorf("after the cable was removed: %v", err)
	}
	b.delete(t, spec)
}

// TestOutlivesItsMaker kills the process that made a machine, with its group.
func TestOutlivesItsMaker(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	cmd := exec.Command(os.Args[0], "-test.run=^TestMaker$", "-test.count=1")
	cmd.Env = append(os.Environ(), "LOOM_TEST_MAKER="+b.dataDir, "LOOM_TEST_MAKER_KEY="+b.public)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var m MachineInfo
	poll(t, 30*time.Second, "machine of the other process", func() error {
		machines, err := b.Machines()
		if err == nil && len(machines) == 1 && machines[0].Running {
			if s, err := b.readState(machines[0].ID); err == nil && s.Booted {
				m = machines[0]
				return nil
			}
		}
		return fmt.Errorf("%+v, %v", machines, err)
	})
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	b.must(t, m, "true")
	if err := b.Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	if again := b.create(t, spec); again.PID != m.PID || again.ID != m.ID {
		t.Errorf("not adopted: %+v, then %+v", m, again)
	}
	b.delete(t, spec)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", m.PID)); !os.IsNotExist(err) {
		t.Errorf("process %d is left: %v", m.PID, err)
	}
}

// TestMaker is the process that TestOutlivesItsMaker kills.
func TestMaker(t *testing.T) {
	dir := os.Getenv("LOOM_TEST_MAKER")
	if dir == "" {
		t.Skip("only run by TestOutlivesItsMaker")
	}
	b := openLocal(t, dir)
	b.public = os.Getenv("LOOM_TEST_MAKER_KEY")
	b.create(t, b.spec("acme", 0))
	<-b.ctx.Done() // to be killed
}

// TestCreateIsOnce: however often and by whomever CREATE is repeated, there is
// one machine per key, and nothing is left after DELETE.
func TestCreateIsOnce(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	other := openLocal(t, b.dataDir)
	spec := b.spec("acme", 0)
	var wg sync.WaitGroup
	for _, l := range []*Local{b.Local, other.Local, b.Local, other.Local} {
		wg.Go(func() {
			if result, err := l.Create(b.ctx, spec, &sink{t: t}); err != nil || result.Status != 0 {
				t.Errorf("create: %+v, %v", result, err)
			}
		})
	}
	wg.Wait()
	machines, err := b.Machines()
	if err != nil || len(machines) != 1 {
		t.Fatalf("machines: %+v, %v", machines, err)
	}
	// The answer was lost: DELETE has no id, only the key.
	b.delete(t, spec)
	b.delete(t, spec)
	for _, dir := range []string{"machines", "addresses", "locks"} {
		entries, err := os.ReadDir(filepath.Join(b.dataDir, dir))
		if err != nil || len(entries) != 0 {
			t.Errorf("left in %s: %v, %v", dir, entries, err)
		}
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", machines[0].PID)); !os.IsNotExist(err) {
		t.Errorf("process %d is left: %v", machines[0].PID, err)
	}
	if links, err := b.links(); err != nil || len(links) != 1 {
		t.Errorf("besides the tenant's bridge are left: %v, %v", links, err)
	}
	for _, id := range b.cgroups.leftovers() {
		t.Errorf("control groups of %s are left", id)
	}
	for _, tree := range b.cgroups.trees {
		if left, _ := filepath.Glob(filepath.Join(tree.path, b.cgroups.name, "t[0-9]*")); len(left) > 0 {
			t.Errorf("control groups of tenants are left: %v", left)
		}
	}
}

// TestCrashes puts the disk into the state that a crash at each point leaves.
func TestCrashes(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)

	// Before the machine's id was stored: nothing was made.
	spec := b.spec("acme", 0)
	lost := errors.New("database gone")
	if _, err := b.Create(b.ctx, spec, &sink{t: t, onFact: func(map[string]any) error { return lost }}); !errors.Is(err, lost) {
		t.Errorf("create without a durable fact: %v", err)
	}
	if machines, err := b.Machines(); err != nil || len(machines) != 0 {
		t.Errorf("machines: %+v, %v", machines, err)
	}

	// The first process died by itself: CONFIRM boots it.
	m := b.create(t, spec)
	if err := syscall.Kill(m.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	poll(t, 5*time.Second, "end of the machine", func() error {
		if b.machine(t, spec).Running {
			return errors.New("runs")
		}
		return nil
	})
	result, err := b.Confirm(b.ctx, spec, &sink{t: t})
	if err != nil || result.Status != 0 {
		t.Fatalf("confirm: %+v, %v", result, err)
	}
	if again := b.machine(t, spec); again.Address != m.Address || !again.Running {
		t.Errorf("before %+v, after %+v", m, again)
	}

	// In the middle of DELETE, of CREATE, and with the state lost.
	s, err := b.readState(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.Deleting = true
	if err := b.writeState(s); err != nil {
		t.Fatal(err)
	}
	half := b.machineDir("mhalf")
	if err := errors.Join(os.MkdirAll(filepath.Join(half, "upper"), 0o700), os.WriteFile(b.addressFile("10.128.0.9"), []byte("mhalf"), 0o600)); err != nil {
		t.Fatal(err)
	}
	stray := b.spec("acme", 1)
	strayMachine := b.create(t, stray)
	if err := os.Remove(b.stateFile(strayMachine.ID)); err != nil {
		t.Fatal(err)
	}
	fresh := openLocal(t, b.dataDir)
	if err := fresh.Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"machines", "addresses", "locks"} {
		if entries, err := os.ReadDir(filepath.Join(b.dataDir, dir)); err != nil || len(entries) != 0 {
			t.Errorf("left in %s: %v, %v", dir, entries, err)
		}
	}
	if start, state, err := processStat(strayMachine.PID); err == nil && state != 'Z' {
		t.Errorf("the machine without a state runs on: %d %c", start, state)
	}
	if links, err := b.links(); err != nil || len(links) != 1 {
		t.Errorf("besides the tenant's bridge are left: %v, %v", links, err)
	}
}

// TestConfirm takes the whole way of a task, shared steps included.
func TestConfirm(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	m := b.create(t, spec)
	log := &sink{t: t}
	result, err := b.Confirm(b.ctx, spec, log)
	if err != nil || result.Status != 0 {
		t.Fatalf("confirm: %+v, %v, log %q", result, err, log.lines)
	}
	if result.Addresses[loom.AccessV4] != m.Address || result.Addresses[loom.BindV4] != m.Address {
		t.Errorf("addresses: %v", result.Addresses)
	}
	s, err := b.readState(m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if keys, ok := result.Result["ssh_host_keys"].(map[string]string); !ok || keys["ed25519"] != s.HostKey {
		t.Errorf("host keys: %v", result.Result)
	}
	// Orphans are collected by the first process.
	b.must(t, m, "for i in 1 2 3; do sh -c 'sleep 0.05 & sleep 0.01' ; done")
	poll(t, 5*time.Second, "orphans are collected", func() error {
		out, err := b.run(t, m, "ps -eo stat=,comm= | grep -E '^Z|sleep$' || true")
		if err != nil || out != "" {
			return fmt.Errorf("%q, %v", out, err)
		}
		return nil
	})

	away := b.spec("acme", 0)
	away.Results = map[string]any{"providerid": m.ID, "local_host": "elsewhere"}
	for name, action := range map[string]func(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error){
		"create": b.Create, "confirm": b.Confirm, "delete": b.Delete} {
		if result, err := action(b.ctx, away, log); err != nil || result.Status != 1 || !strings.Contains(result.Message, "host elsewhere") {
			t.Errorf("%s on the wrong host: %+v, %v", name, result, err)
		}
	}
	b.delete(t, spec)
	if result, err := b.Confirm(b.ctx, spec, log); err != nil || result.Status != 1 || !strings.Contains(result.Message, m.ID) {
		t.Errorf("confirm of a deleted machine: %+v, %v", result, err)
	}
}

// TestPurge removes running machines and everything else, from another process.
func TestPurge(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	for n := range 3 {
		b.create(t, b.spec("acme", n))
	}
	machines, err := b.Machines()
	if err != nil || len(machines) != 3 {
		t.Fatalf("machines: %+v, %v", machines, err)
	}
	if err := openLocal(t, b.dataDir).Purge(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.assertNothingOutside(t)
	for _, m := range machines {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", m.PID)); !os.IsNotExist(err) {
			t.Errorf("process %d is left: %v", m.PID, err)
		}
	}
	// Never started, never there: nothing to do, nothing made.
	missing := filepath.Join(t.TempDir(), "missing")
	l := openLocal(t, missing)
	if err := errors.Join(l.StopAll(b.ctx), l.Purge(b.ctx), l.Adopt(b.ctx)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("a data directory was made for nothing: %v", err)
	}
}
