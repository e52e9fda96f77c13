package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/loom"
	"loom/provisioner/remote/sshtest"
)

// deepTree makes nested directories with long names below one, and files in each
// hundredth.
func deepTree(dir string, levels int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	name := strings.Repeat("d", 250)
	for i := 0; err == nil && i < levels; i++ {
		below := -1
		if err = unix.Mkdirat(fd, name, 0o755); err == nil {
			below, err = unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		unix.Close(fd)
		fd = below
		for n := 0; err == nil && i%100 == 0 && n < 20; n++ {
			var file int
			if file, err = unix.Openat(fd, fmt.Sprint("f", n), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err == nil {
				unix.Close(file)
			}
		}
	}
	unix.Close(fd)
	return err
}

// probeFiles is what a machine does to the files of the host.
func probeFiles(what string) int {
	switch what {
	case "nest": // directories deeper than a removal has open
		if err := deepTree("/root/deep", 6000); err != nil {
			fmt.Println(err)
			return 1
		}
	default:
		return probeHeld(what)
	}
	return 0
}

// descriptors counts those of this process that lead below a directory.
func descriptors(dir string) (n int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err != nil && !isGone(err) || strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

// TestDeepTreesAreRemoved: DELETE of a machine with directories nested deeper than any
// path is long removes them, with few descriptors.
func TestDeepTreesAreRemoved(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	m := b.create(t, spec)
	b.bring(t, m)
	b.must(t, m, "/root/probe probe nest")
	var most atomic.Int64
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
				most.Store(max(most.Load(), int64(descriptors(b.machinesDir()))))
			}
		}
	}()
	b.delete(t, spec)
	close(over)
	<-watched
	if n := most.Load(); n > 5*removalDepth { // tests beside this one remove, too
		t.Errorf("%d descriptors at a time", n)
	}
	for _, dir := range []string{"machines", "addresses", "locks"} {
		if entries, err := os.ReadDir(filepath.Join(b.dataDir, dir)); err != nil || len(entries) != 0 {
			t.Errorf("left in %s: %v, %v", dir, entries, err)
		}
	}
}

// TestRemoveTree: trees of all kinds go, and nothing that links lead to.
func TestRemoveTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	top := filepath.Join(dir, "top")
	if err := deepTree(filepath.Join(top, "a"), 3000); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := deepTree(filepath.Join(top, "b", fmt.Sprint(i)), 3*removalDepth); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "file"), nil, 0o600), os.Symlink(outside, filepath.Join(top, "link")),
		os.Mkdir(filepath.Join(top, ".deep-1"), 0o000), os.WriteFile(filepath.Join(top, ".deep-2"), nil, 0o600), os.WriteFile(filepath.Join(top, "keep"), nil, 0o600),
		syscall.Mkfifo(filepath.Join(top, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 1200 {
		if err := os.WriteFile(filepath.Join(top, fmt.Sprint("many", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := emptyTree(ended, top, "keep"); !errors.Is(err, enough) {
		t.Errorf("after the end: %v", err)
	}
	if err := emptyTree(t.Context(), top, "keep"); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(top); err != nil || len(entries) != 1 || entries[0].Name() != "keep" {
		t.Errorf("besides what is kept: %v, %v", entries, err)
	}
	if err := errors.Join(removeTree(t.Context(), top), removeTree(t.Context(), top)); err != nil || exists(top) {
		t.Errorf("the directory itself: %v", err)
	}
	if !exists(filepath.Join(outside, "file")) {
		t.Error("what a link led to is gone")
	}
}

// inTheWay makes something below a directory that cannot be removed, until the function that
// it gives is called.
func inTheWay(t *testing.T, dir string) (path string, free func()) {
	t.Helper()
	path = filepath.Join(dir, strings.Repeat("x", 250))
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=64k"); err != nil {
		sshtest.SkipHere(t, "not tried: %v", err)
	}
	free = func() { _ = unix.Unmount(path, unix.MNT_DETACH) }
	t.Cleanup(free)
	return path, free
}

// TestRemovalIsTruthful: DELETE of a machine whose files stay fails with a short
// sentence, again and again; the machine is still known, and what can be removed is gone.
// What is in the way once gone, the next try ends it, also that of the watch.
func TestRemovalIsTruthful(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"delete", "watch", "adopt"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			b := setUpLocal(t)
			spec := b.spec("acme", 0)
			m := b.create(t, spec)
			b.must(t, m, "mkdir -p /root/a/b && touch /root/a/b/file")
			upper := filepath.Join(b.machineDir(m.ID), "upper")
			path, free := inTheWay(t, upper)
			if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				result, err := b.Delete(b.ctx, spec, &sink{t: t})
				if err != nil || result.Status == 0 || !strings.Contains(result.Message, "is not removed yet: ") || len(result.Message) > 500 || len(result.Stderr) > 500 {
					t.Fatalf("files stay: %+v, %v", result, err)
				}
			}
			if found := b.machine(t, spec); found.Running || found.ID != m.ID {
				t.Errorf("the machine on record: %+v", found)
			}
			if exists(filepath.Join(upper, "root")) || !exists(b.addressFile(m.Address)) {
				t.Error("what could be removed is there, or its address is not")
			}
			if result, err := b.Confirm(b.ctx, spec, &sink{t: t}); err != nil || result.Status == 0 {
				t.Errorf("a machine that is being removed is confirmed: %+v, %v", result, err)
			}
			var told []error
			b.finishRemovals(b.ctx, func(err error) { told = append(told, err) })
			if len(told) != 1 || !strings.Contains(told[0].Error(), m.ID) || len(loom.Short(told[0].Error())) > 500 {
				t.Errorf("told: %v", told)
			}
			free()
			switch by {
			case "delete":
				b.delete(t, spec)
			case "watch":
				b.finishRemovals(b.ctx, func(err error) { t.Error(err) })
			case "adopt":
				if err := openLocal(t, b.dataDir).Adopt(b.ctx); err != nil {
					t.Error(err)
				}
			}
			for _, dir := range []string{"machines", "addresses", "locks"} {
				if entries, err := os.ReadDir(filepath.Join(b.dataDir, dir)); err != nil || len(entries) != 0 {
					t.Errorf("left in %s: %v, %v", dir, entries, err)
				}
			}
		})
	}
}

// TestRemovalLeavesForeignAddresses: a removal that comes late does not take the address,
// and the cable, of another machine.
func TestRemovalLeavesForeignAddresses(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec, other := b.spec("acme", 0), b.spec("acme", 1)
	m, next := b.create(t, spec), b.create(t, other)
	s := mustState(t, b, m)
	if err := errors.Join(b.halt(s, deadAfterDelete), os.Remove(b.addressFile(s.Address))); err != nil {
		t.Fatal(err)
	}
	s.Address, s.Deleting, s.PID = next.Address, true, 0
	if err := b.writeState(s); err != nil {
		t.Fatal(err)
	}
	b.delete(t, spec)
	if !exists(b.addressFile(next.Address)) {
		t.Error("the address of another machine is free")
	}
	b.must(t, next, "true")
}

// TestLeftoversOfEarlierReleases: half removed directories go at a start, deep ones too,
// and directories of trials that are old.
func TestLeftoversOfEarlierReleases(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	spec := b.spec("acme", 0)
	m := b.create(t, spec)
	if err := deepTree(filepath.Join(b.machinesDir(), ".gone-m0123456789a", "upper"), 1500); err != nil {
		t.Fatal(err)
	}
	if err := deepTree(filepath.Join(b.machinesDir(), ".gone-"+m.ID, "upper"), 10); err != nil {
		t.Fatal(err)
	}
	old, recent := filepath.Join(b.dataDir, ".trial-1"), filepath.Join(b.dataDir, ".trial-2")
	before := time.Now().Add(-2 * trialAge)
	if err := errors.Join(os.WriteFile(b.addressFile("10.128.0.9"), []byte("m0123456789a"), 0o600), os.MkdirAll(filepath.Join(old, "upper"), 0o700),
		os.Mkdir(recent, 0o700), os.Chtimes(old, before, before)); err != nil {
		t.Fatal(err)
	}
	if err := openLocal(t, b.dataDir).Adopt(b.ctx); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(b.machinesDir()); err != nil || len(entries) != 1 || entries[0].Name() != m.ID {
		t.Errorf("in machines: %v, %v", entries, err)
	}
	if exists(b.addressFile("10.128.0.9")) || exists(old) || !exists(recent) {
		t.Error("an address or an old trial is left, or a recent one is not")
	}
	b.must(t, m, "true")
	b.delete(t, spec)
}
