package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
)

// TestNobodyWaitsForOtherMachines: a start does not wait for machines, a tenant whose
// machines do not come up keeps no other tenant waiting, and a task waits for its own
// machine only.
func TestNobodyWaitsForOtherMachines(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	var slow []*loom.TaskSpec
	ids := map[string]*loom.TaskSpec{}
	for n := range 5 {
		spec := b.spec("acme", n)
		slow = append(slow, spec)
		ids[b.create(t, spec).ID] = spec
	}
	quick := b.spec("umbrella", 0)
	b.create(t, quick)
	if err := b.StopAll(b.ctx); err != nil {
		t.Fatal(err)
	}
	// What another process does with these machines takes long.
	locks := map[string]func(){}
	for id := range ids {
		unlock, err := b.lockMachine(b.ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		locks[id] = sync.OnceFunc(unlock)
		defer locks[id]()
	}
	fresh := openLocal(t, b.dataDir)
	wait, err := fresh.AdoptBeside(b.ctx, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.Adopted(b.ctx, quick); err != nil || !b.machine(t, quick).Running {
		t.Errorf("the machine of another tenant: %v, %+v", err, b.machine(t, quick))
	}
	later := ""
	poll(t, 10*time.Second, "two machines of a tenant in turn", func() error {
		fresh.adoptions.mu.Lock()
		defer fresh.adoptions.mu.Unlock()
		begun := 0
		for id, a := range fresh.adoptions.open {
			if a.begun {
				begun++
			} else if ids[id] != slow[0] {
				later = id
			}
		}
		if begun != cap(fresh.boots)/2 {
			return fmt.Errorf("%d have begun", begun)
		}
		return nil
	})
	short, cancel := context.WithTimeout(b.ctx, 10*time.Millisecond)
	defer cancel()
	if err := fresh.Adopted(short, slow[0]); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a task of a machine that is not up yet: %v", err)
	}
	locks[later]()
	if err := fresh.Adopted(b.ctx, ids[later]); err != nil || !b.machine(t, ids[later]).Running {
		t.Errorf("a task waits for other machines: %v, %+v", err, b.machine(t, ids[later]))
	}
	for _, unlock := range locks {
		unlock()
	}
	wait()
	for id, spec := range ids {
		// The one of the task that did not wait is up by its next task.
		if err := fresh.Adopted(b.ctx, spec); err != nil || !b.machine(t, spec).Running && spec != slow[0] {
			t.Errorf("machine %s: %v", id, err)
		}
	}
	if err := fresh.Adopted(b.ctx, b.spec("acme", 99)); err != nil {
		t.Errorf("a machine that there is not: %v", err)
	}
}

// TestBrokenFilesHoldUpNothing: what the owner of a machine puts in the place of files
// that its first process reads and writes does not keep it from ending soon.
func TestBrokenFilesHoldUpNothing(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		command string
		up      bool
	}{
		"a pipe for the users":       {"rm /etc/passwd; mkfifo /etc/passwd", true},
		"endless users":              {"truncate -s 1000G /etc/passwd", true},
		"a pipe for the keys":        {"rm /root/.ssh/authorized_keys; mkfifo /root/.ssh/authorized_keys", false},
		"a link to a pipe for keys":  {"mkfifo /root/p; ln -sf /root/p /root/.ssh/authorized_keys", false},
		"endless keys":               {"truncate -s 1000G /root/.ssh/authorized_keys", false},
		"a pipe for the boot's log":  {"mkfifo /var/log/loom-boot.log; ln -s ../init.d/x /etc/rc2.d/S01x", false},
		"a pipe for the host's name": {"rm /etc/hosts /etc/resolv.conf; mkfifo /etc/hosts /etc/resolv.conf", true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := setUpLocal(t)
			spec := b.spec("acme", 0)
			m := b.create(t, spec)
			b.must(t, m, c.command)
			if err := b.StopAll(b.ctx); err != nil {
				t.Fatal(err)
			}
			err := openLocal(t, b.dataDir).Adopt(b.ctx)
			if up := b.machine(t, spec).Running; up != c.up || up != (err == nil) {
				t.Errorf("up: %v, %v", up, err)
			}
			if err != nil && (strings.Contains(err.Error(), "did not come up within") || len(err.Error()) > 600) {
				t.Error(err)
			}
			b.delete(t, spec)
		})
	}
}
