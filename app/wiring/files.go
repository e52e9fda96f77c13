package wiring

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// WriteNew stores a private file whole or not at all; ErrExist when it is there.
func WriteNew(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}

// ReplaceFile stores a private file in place of what is there.
func ReplaceFile(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return os.Rename(tmp.Name(), path)
}

// LockFile waits for an exclusive lock and gives the function that lets go.
func LockFile(ctx context.Context, path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// InstanceLock is the file that a running `loom up` holds, with its pid inside.
const InstanceLock = "loom.lock"

// lockPatience is how long a lock may outlive the process that took it: a killed one
// lets go when the last of its threads is gone.
const lockPatience = 3 * time.Second

// ClaimInstance makes this process the one `loom up` of the data directory. It waits up
// to lockPatience for one that was killed.
func ClaimInstance(ctx context.Context, dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, InstanceLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	waiting, stop := context.WithTimeout(ctx, lockPatience)
	defer stop()
	if !inherit(waiting, f, processEnded) {
		defer f.Close()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		//lint:ignore ST1005 a name begins it
		return nil, fmt.Errorf("Loom runs already in %s (process %s); stop it first, or choose another LOOM_DATA_DIR and LOOM_LISTEN_ADDR", dir, readPid(f))
	}
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("note the process in %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// inherit takes the lock of a file that notes the process holding it. Where it is
// taken, it waits for it until ctx ends as long as ended says that process has.
func inherit(ctx context.Context, f *os.File, ended func(pid int) bool) bool {
	for {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		// Nothing is noted for a moment by one that has just taken it: it lives.
		if pid, err := strconv.Atoi(readPid(f)); err != nil || pid < 1 || !ended(pid) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// exiting is the flag of the kernel (PF_EXITING) on a process that is ending.
const exiting = 0x4

// processEnded reports whether a process is gone, a zombie or about to be one.
func processEnded(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	// The name in parentheses may hold anything; state is the first field behind it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return fields[0] == "Z" || fields[0] == "X" || err == nil && flags&exiting != 0
}

// EndInstance tells a running `loom up` of the data directory to end and waits
// until it has; ended is whether there was one.
func EndInstance(ctx context.Context, dir string) (ended bool, err error) {
	path := filepath.Join(dir, InstanceLock)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return false, nil // nobody holds it
	}
	pid, err := strconv.Atoi(readPid(f))
	if err != nil {
		//lint:ignore ST1005 a name begins it
		return false, fmt.Errorf("Loom runs in %s but its process is not known", dir)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, fmt.Errorf("end process %d: %w", pid, err)
	}
	unlock, err := LockFile(ctx, path)
	if err != nil {
		return false, fmt.Errorf("wait for process %d to end: %w", pid, err)
	}
	unlock()
	return true, nil
}

func readPid(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	return strings.TrimSpace(string(b[:n]))
}
