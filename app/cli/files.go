package cli

import (
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

// writeNew stores a private file whole or not at all; ErrExist when it is there.
func writeNew(path string, text []byte) error {
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

// replaceFile stores a private file in place of what is there.
func replaceFile(path string, text []byte) error {
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

// lockFile waits for an exclusive lock and gives the function that lets go.
func lockFile(ctx context.Context, path string) (func(), error) {
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

// instanceLock is the file that a running `loom up` holds, with its pid inside.
const instanceLock = "loom.lock"

// claimInstance makes this process the one `loom up` of the data directory.
func claimInstance(dir string) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, instanceLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
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

// endInstance tells a running `loom up` of the data directory to end and waits
// until it has.
func endInstance(ctx context.Context, dir string) error {
	path := filepath.Join(dir, instanceLock)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return nil // nobody holds it
	}
	pid, err := strconv.Atoi(readPid(f))
	if err != nil {
		//lint:ignore ST1005 a name begins it
		return fmt.Errorf("Loom runs in %s but its process is not known", dir)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	unlock, err := lockFile(ctx, path)
	if err != nil {
		return fmt.Errorf("wait for process %d to end: %w", pid, err)
	}
	unlock()
	return nil
}

func readPid(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	return strings.TrimSpace(string(b[:n]))
}
