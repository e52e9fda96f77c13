package wiring

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// held opens a lock file twice: first holds the lock, second wants it.
func held(t *testing.T, pid string) (first, second *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), InstanceLock)
	if err := os.WriteFile(path, []byte(pid), 0o600); err != nil {
		t.Fatal(err)
	}
	var files [2]*os.File
	for i := range files {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files[i] = f
	}
	if err := syscall.Flock(int(files[0].Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	return files[0], files[1]
}

func TestLockOfAKilledProcessIsInherited(t *testing.T) {
	t.Parallel()
	first, second := held(t, "123")
	asked := 0
	got := inherit(t.Context(), second, func(pid int) bool {
		if asked++; pid != 123 {
			t.Errorf("asked for process %d", pid)
		}
		if asked == 2 { // it lets go while somebody waits
			if err := syscall.Flock(int(first.Fd()), syscall.LOCK_UN); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if !got || asked != 2 {
		t.Errorf("inherited: %v, after %d looks", got, asked)
	}
}

func TestLockOfALivingProcessIsNot(t *testing.T) {
	t.Parallel()
	for _, pid := range []string{strconv.Itoa(os.Getpid()), "", "x", "0", "-1"} {
		_, second := held(t, pid)
		if inherit(t.Context(), second, processEnded) {
			t.Errorf("process %q lost its lock", pid)
		}
	}
	_, second := held(t, "123")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if inherit(ctx, second, func(int) bool { return true }) {
		t.Error("the wait went on after its end")
	}
}

func TestProcessEnded(t *testing.T) {
	t.Parallel()
	if processEnded(os.Getpid()) {
		t.Error("this process has not ended")
	}
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	for { // until it is a zombie, which stays one
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	if !processEnded(pid) {
		t.Error("a zombie has ended")
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !processEnded(pid) {
		t.Error("who is gone has ended")
	}
}
