package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// memoryMap is struct prctl_mm_map.
type memoryMap struct {
	StartCode, EndCode, StartData, EndData, StartBrk, Brk, StartStack, ArgStart, ArgEnd, EnvStart, EnvEnd uint64
	Auxv                                                                                                  uint64
	AuxvSize                                                                                              uint32
	Exe                                                                                                   int32
}

// probeHostile does what root of a machine does to whoever looks at it.
func probeHostile(what string) int {
	switch what {
	case "endless": // a command line of a GiB, which takes no memory
		const length = 1 << 30
		at, err := unix.MmapPtr(-1, 0, nil, length, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		start := uint64(uintptr(at))
		m := memoryMap{0x400000, 0x500000, 0x600000, 0x700000, 0x800000, 0x800000, 0x900000, start, start + length, start + length, start + length, 0, 0, -1}
		if err == nil {
			err = unix.Prctl(unix.PR_SET_MM, unix.PR_SET_MM_MAP, uintptr(unsafe.Pointer(&m)), unsafe.Sizeof(m), 0)
		}
		if err = os.WriteFile("/root/ready", fmt.Append(nil, err), 0o600); err != nil {
			return 1
		}
		select {}
	case "messages": // as much as fits waits in netlink sockets that nobody reads
		var err error
		for range 500 {
			var fd int
			if fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE); err != nil {
				break
			}
			fillNetlink(fd)
		}
		fmt.Println(err)
		os.Stdout.Close()
		select {}
	case "corked": // datagrams that are never sent
		var err error
		for range maxSockets + 100 {
			var fd int
			if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0); err != nil {
				break
			}
			_ = unix.Sendto(fd, make([]byte, 60_000), unix.MSG_MORE, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
		}
		fmt.Println(err)
		os.Stdout.Close()
		select {}
	default:
		return 2
	}
}

// fillNetlink asks for what does not exist until no answer, which repeats the question, fits.
func fillNetlink(fd int) {
	const length = 16 << 10
	request := make([]byte, length)
	header := (*unix.NlMsghdr)(unsafe.Pointer(&request[0]))
	*header = unix.NlMsghdr{Len: length, Type: 9999, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK}
	for range 64 {
		_ = unix.Sendto(fd, request, unix.MSG_DONTWAIT, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
}

// TestEndlessCommandLine: how long the command line of a machine's first process is costs
// Loom nothing.
func TestEndlessCommandLine(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	m := b.create(t, spec)
	b.bring(t, m)
	b.must(t, m, "rm /usr/sbin/sshd; printf '#!/bin/sh\nexec /root/probe probe endless\n' > /usr/sbin/sshd; chmod 755 /usr/sbin/sshd")
	if err := b.StopAll(b.ctx); err != nil {
		t.Fatal(err)
	}
	s, err := openLocal(t, b.dataDir).bootIfDown(b.ctx, m.ID, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	poll(t, 30*time.Second, "the command line", func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/root/ready", s.PID))
		if err == nil && string(text) != "<nil>" && string(text) != "" {
			t.Skipf("the kernel sets no command lines: %s", text)
		}
		return err
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if s.starting() {
		t.Error("a process of its owner is taken for one that makes the machine")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took >= 1<<30 {
		t.Errorf("a look at the machine took %d MiB", took>>20)
	}
	b.delete(t, spec)
}

// TestReportsAreBounded: services of a machine that get hold of its report fill no log.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{"lines": "warn " + strings.Repeat("x", 1000) + "\n", "one line": "warn"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var writer sync.WaitGroup
		writer.Go(func() {
			for {
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		})
		said := 0
		if err = awaitReady(t.Context(), "m1", r, func(line string) { said += len(line) }); err == nil || said > maxReport {
			t.Errorf("endless %s: %v, %d bytes in the log", what, err, said)
		}
		r.Close()
		writer.Wait()
		w.Close()
	}
}

// TestRebootsTakeTurns: machines of a tenant that do not come up leave places for the
// machines of others.
func TestRebootsTakeTurns(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	own, other := b.spec("acme", 0), b.spec("umbrella", 0)
	m, late := b.create(t, own), b.create(t, other)
	if err := b.StopAll(b.ctx); err != nil {
		t.Fatal(err)
	}
	fresh := openLocal(t, b.dataDir)
	for range cap(fresh.boots) / 2 { // as many do not come up
		fresh.reboots.of("acme", cap(fresh.boots)/2) <- struct{}{}
		fresh.boots <- struct{}{}
	}
	waiting, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := fresh.bootIfDown(waiting, m.ID, func(string) {})
		ended <- err
	}()
	if _, err := fresh.bootIfDown(b.ctx, late.ID, func(string) {}); err != nil {
		t.Errorf("a machine of another tenant: %v", err)
	}
	first := b.spec("acme", 1)
	if result, err := fresh.Create(b.ctx, first, &sink{t: t}); err != nil || result.Status != 0 {
		t.Errorf("a new machine of the tenant: %+v, %v", result, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || b.machine(t, own).Running {
		t.Errorf("one more of the tenant boots: %v", err)
	}
	for _, spec := range []*loom.TaskSpec{own, other, first} {
		b.delete(t, spec)
	}
}

// TestNamesCount: hard links are names to look at, however few files they are.
func TestNamesCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const names = 12_000
	for i := range names {
		if err := os.Link(dir+"/f", fmt.Sprintf("%s/l%d", dir, i)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	u := use{}
	count(root, &u, minDisk, deepest, map[uint64]bool{})
	if most := filesOf(minDisk); u.files <= most || u.files > most+1 {
		t.Errorf("%d names are looked at of %d, and %d are too many", u.files, names, most)
	}
}

// TestUncountedSockets: what counts for no control group, but takes memory of the host,
// stops a machine.
func TestUncountedSockets(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	other := b.create(t, b.spec("umbrella", 0))
	for n, what := range []string{"messages", "corked"} {
		spec := b.spec("acme", n)
		spec.Flavor = "mem=128m"
		m := b.create(t, spec)
		b.bring(t, m)
		var said []string
		look := func() {
			if err := b.keepToSockets(b.ctx, func(line string) { said = append(said, line) }); err != nil {
				t.Error(err)
			}
		}
		if look(); len(said) > 0 {
			t.Errorf("machines that did nothing: %q", said)
		}
		b.must(t, m, "ulimit -n 10000; setsid /root/probe probe "+what+" > /root/out 2>&1 < /dev/null & until grep -qs . /root/out; do sleep 0.01; done")
		// Whoever boots the machine holds its lock, and its owner may make that last.
		unlock, err := b.lockMachine(b.ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		var looking sync.WaitGroup
		looking.Go(look)
		poll(t, time.Minute, "the end of the machine", func() error {
			if b.machine(t, spec).Running {
				return errors.New("it runs")
			}
			return nil
		})
		unlock()
		looking.Wait()
		if s := mustState(t, b, m); len(said) != 1 || !strings.Contains(said[0], m.ID) || s.running() || !strings.Contains(s.Stopped, "sockets") {
			t.Errorf("%s: %q, stopped: %q", what, said, s.Stopped)
		}
		b.delete(t, spec)
	}
	b.must(t, other, "true")
}
