package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lowerOf gives what lies below the files of the machines of a range: the base root of
// an image with their ids. Where this host cannot show it so, each range has a copy.
func (l *Local) lowerOf(ctx context.Context, im image, first int) (lowerRoot, error) {
	base := lowerRoot{path: l.baseRoot(im)}
	if first == baseID {
		return base, nil
	}
	if l.canMap() == nil {
		ids, err := l.ids.get(l.executable, first)
		base.ids = ids
		return base, err
	}
	base.path = filepath.Join(l.dataDir, "roots", fmt.Sprint(first), im.hash())
	return base, l.copyRoot(ctx, l.baseRoot(im), base.path, first)
}

// copyRoot makes a copy of a base root for the machines of a range, once.
func (l *Local) copyRoot(ctx context.Context, from, to string, first int) error {
	l.copies.Lock()
	defer l.copies.Unlock()
	if exists(to) {
		return nil
	}
	held, err := lockFile(ctx, to+".lock")
	if err != nil {
		return err
	}
	defer held.Close()
	if exists(to) {
		return nil // another process made it
	}
	if err := l.reserve.Check(l.dataDir, "The base root of the tenant is not copied", baseSize); err != nil {
		return err
	}
	temp := to + ".tmp"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if out, err := exec.CommandContext(ctx, "cp", "--archive", "--reflink=auto", "--", from, temp).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the base root %s: %w: %s", from, err, out)
	}
	if err := shiftOwners(temp, baseID, first); err != nil {
		return fmt.Errorf("copy the base root %s: %w", from, err)
	}
	if err := syncDir(temp); err != nil {
		return err
	}
	return os.Rename(temp, to)
}

// canMap tries once whether this host shows base roots with other ids, and says why not.
func (l *Local) canMap() error {
	l.mappingOnce.Do(func() {
		_, l.mapping = onThread(func() (struct{}, error) { return struct{}{}, l.tryMapping() })
	})
	return l.mapping
}

// tryMapping mounts an overlay over a file tree with other ids, as each machine has one.
// It spoils its thread.
func (l *Local) tryMapping() error {
	if err := os.MkdirAll(l.baseDir, 0o700); err != nil {
		return err
	}
	lower, err := os.MkdirTemp(l.baseDir, ".trial-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(lower)
	if err := os.MkdirAll(l.machinesDir(), 0o700); err != nil {
		return err
	}
	own, err := os.MkdirTemp(l.dataDir, ".trial-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(own)
	upper, work := filepath.Join(own, "upper"), filepath.Join(own, "work")
	for _, dir := range []string{upper, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	const first = firstBlock * blockIDs
	ids, err := l.ids.get(l.executable, first)
	if err != nil {
		return err
	}
	if err := os.Chown(lower, baseID, baseID); err != nil {
		return err
	}
	fd, err := l.overlay(lowerRoot{lower, ids}, upper, work)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstatat(fd, "", &st, unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	return nil
}
