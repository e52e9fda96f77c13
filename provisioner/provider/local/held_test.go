package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/diskspace"
	"loom/provisioner/remote/sshtest"
)

// heldMB is the size of the file that probeHeld holds.
const heldMB = 64

// nameless makes a file that has no name and gives its descriptor.
func nameless(path string) (fd int, err error) {
	if fd, err = unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600); err == nil {
		err = errors.Join(unix.Unlink(path), fill(fd))
	}
	return fd, err
}

func fill(fd int) error {
	text := make([]byte, 1<<20)
	for range heldMB {
		if _, err := unix.Write(fd, text); err != nil {
			return err
		}
	}
	return nil
}

// inLeftTable makes a file without a name in a table of files of one thread.
func inLeftTable(hold func(fd int) error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_FILES)
		if err == nil {
			var fd int
			if fd, err = nameless("/root/thread"); err == nil {
				err = hold(fd)
			}
		}
		done <- err
		select {}
	}()
	return <-done
}

// mapOnly keeps a file by its mapping.
func mapOnly(fd int) error {
	_, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	return errors.Join(err, unix.Close(fd))
}

// probeHeld holds a file on a machine, says "held", and goes on holding it.
func probeHeld(what string) int {
	fd, err := -1, error(nil)
	switch what {
	case "name": // as files of memory are called
		if err = os.Mkdir("/memfd:", 0o755); err == nil {
			_, err = nameless("/memfd:/big")
		}
	case "dev", "run": // as the directories of memory are called
		dir := "/root/" + what
		if err = errors.Join(os.MkdirAll(dir, 0o755), unix.Chroot("/root")); err == nil {
			_, err = nameless("/" + what + "/big")
		}
	case "long": // a path that the kernel does not tell
		if err = os.Chdir("/root"); err == nil {
			name := strings.Repeat("l", 250)
			for i := 0; err == nil && i < 20; i++ {
				err = errors.Join(os.Mkdir(name, 0o755), os.Chdir(name))
			}
			if err == nil {
				_, err = nameless("big")
			}
		}
	case "thread":
		err = inLeftTable(func(int) error { return nil })
	case "mapped":
		if fd, err = nameless("/root/mapped"); err == nil {
			err = mapOnly(fd)
		}
	case "leader": // mapped, and the first thread has left
		if fd, err = nameless("/root/mapped"); err == nil {
			err = mapOnly(fd)
		}
		if err == nil && unix.Gettid() == unix.Getpid() {
			fmt.Println("held")
			os.Stdout.Close()
			go func() { select {} }()
			_, _, _ = syscall.Syscall(unix.SYS_EXIT, 0, 0, 0)
		}
		err = errors.Join(err, errors.New("not the first thread"))
	case "memory":
		if fd, err = unix.MemfdCreate("x", 0); err == nil {
			err = fill(fd)
		}
		if err == nil {
			_, err = nameless("/dev/shm/x")
		}
	case "socket":
		var pair [2]int
		if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
			if fd, err = nameless("/root/sent"); err == nil {
				err = errors.Join(unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0), unix.Close(fd))
			}
		}
	default:
		return probeHostile(what)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	os.Stdout.Close()
	select {}
}

// hold runs a probe on a machine until it holds its file.
func (b *bundle) hold(t *testing.T, m MachineInfo, what string) {
	t.Helper()
	out := b.must(t, m, "setsid /root/probe probe "+what+" > /root/out-"+what+" 2>&1 < /dev/null & until grep -qs . /root/out-"+what+"; do sleep 0.01; done; cat /root/out-"+what)
	if out != "held" {
		t.Fatalf("%s: %s", what, out)
	}
}

// TestHiddenFilesCount: a deleted file counts wherever a machine holds it and whatever it
// was called; files of memory do not.
func TestHiddenFilesCount(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	if b.hasQuota() {
		sshtest.SkipHere(t, "the kernel counts here")
	}
	for n, what := range []string{"name", "dev", "run", "long", "thread", "mapped", "leader", "memory"} {
		t.Run(what, func(t *testing.T) {
			spec := b.spec("acme", n)
			spec.Flavor = "disk=72m"
			m := b.create(t, spec)
			b.bring(t, m)
			pids := b.cgroups.pids(mustState(t, b, m).group())
			before, _ := heldBytes(pids)
			b.hold(t, m, what)
			after, whole := heldBytes(b.cgroups.pids(mustState(t, b, m).group()))
			switch grown := after - before; {
			case !whole:
				t.Error("not all was looked at")
			case what == "memory" && grown != 0:
				t.Errorf("files of memory count: %d bytes", grown)
			case what != "memory" && (grown < heldMB<<20 || grown > (heldMB+1)<<20):
				t.Errorf("%d bytes are held", grown)
			}
			if err := b.keepToDisk(b.ctx, func(string) {}); err != nil {
				t.Fatal(err)
			}
			if runs := b.machine(t, spec).Running; runs != (what == "memory") {
				t.Errorf("the machine runs: %v", runs)
			}
			b.delete(t, spec)
		})
	}
}

// setUpDisk is setUpLocal on a file system of its own, of a size in MB.
func setUpDisk(t *testing.T, size int64) *bundle {
	t.Helper()
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	mkfs, err := findTool("mkfs.ext4")
	if err != nil {
		sshtest.SkipHere(t, "not tried: %v", err)
	}
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size<<20), os.Mkdir(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", "-m", "0", image).CombinedOutput(); err != nil {
		sshtest.SkipHere(t, "not tried: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		sshtest.SkipHere(t, "not tried: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	return setUpLocal(t, func(o *Options) { o.DataDir = filepath.Join(at, "data") })
}

// TestLastResort: when half of the reserve is gone, the machine that took it is stopped if
// what was counted explains it; one that only has most is not stopped for what another
// one hides, and the operator is told who may hide it.
func TestLastResort(t *testing.T) {
	t.Parallel()
	for _, hides := range []bool{false, true} {
		t.Run(fmt.Sprint("hides ", hides), func(t *testing.T) {
			t.Parallel()
			b := setUpDisk(t, 500)
			victim, hog := b.spec("umbrella", 0), b.spec("acme", 0)
			large, m := b.create(t, victim), b.create(t, hog)
			b.bring(t, m)
			b.must(t, large, "dd if=/dev/urandom of=/root/x bs=1M count=90 2> /dev/null; sync")
			var lines []string
			look := func() string {
				t.Helper()
				lines = nil
				if err := b.keepToDisk(b.ctx, func(line string) { lines = append(lines, line) }); err != nil {
					t.Fatal(err)
				}
				return strings.Join(lines, "\n")
			}
			if out := look(); out != "" {
				t.Errorf("when there is enough: %s", out)
			}
			// As the disk becomes full, the victim writes a little, too.
			b.must(t, large, "dd if=/dev/urandom of=/root/y bs=1M count=8 2> /dev/null; sync")
			if hides {
				b.hold(t, m, "socket")
			} else {
				b.must(t, m, "dd if=/dev/urandom of=/root/x bs=1M count=64 2> /dev/null")
			}
			b.must(t, m, "sync")
			now, err := b.reserve.Look(b.dataDir)
			if err != nil {
				t.Fatal(err)
			}
			b.reserve = diskspace.Reserve{Bytes: 2*now.Bytes + 8<<20}
			out := look()
			if hides {
				if strings.Contains(out, ") is stopped") || !strings.Contains(out, "so no machine is stopped") || !strings.Contains(out, "through sockets, where their size is not seen: "+m.ID+" (") || strings.Contains(out, large.ID) {
					t.Errorf("what is not counted: %q", out)
				}
				if again := look(); again != "" {
					t.Errorf("told again at once: %q", again)
				}
				b.looked.told = time.Now().Add(-2 * tellAgain)
				if again := look(); again == "" {
					t.Error("not told again")
				}
			} else if !strings.Contains(out, "Machine "+m.ID) || !strings.Contains(out, "took most of what is gone") {
				t.Errorf("what is counted: %q", out)
			}
			if !b.machine(t, victim).Running || b.machine(t, hog).Running != hides {
				t.Errorf("victim %+v, hog %+v", b.machine(t, victim), b.machine(t, hog))
			}
		})
	}
}
