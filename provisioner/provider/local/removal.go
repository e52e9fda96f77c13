package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

const (
	// removalDepth is how many nested directories a removal has open at most. What lies
	// deeper is moved up first, so a machine cannot use up descriptors with deep trees.
	removalDepth = 32
	// removeAgain is how often removals that did not come to their end are tried again.
	removeAgain = 5 * time.Minute
	// trialAge is how old a directory of tryMapping is when nobody needs it.
	trialAge = time.Hour
)

// removeTree removes a directory with all that is in it; none is fine. Its files are
// those of a machine that is down: no link is followed, and no path is longer than a name.
func removeTree(ctx context.Context, path string) error {
	if err := emptyTree(ctx, path, ""); err != nil {
		return err
	}
	if err := unix.Rmdir(path); err != nil && !isGone(err) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// emptyTree removes what is in a directory, except the file with the name keep. What
// cannot be removed is counted and the rest goes.
func emptyTree(ctx context.Context, path, keep string) error {
	top, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	r := &removal{ctx: ctx, top: os.NewFile(uintptr(top), path), keep: keep}
	defer r.top.Close()
	for r.empty(r.top, 0) {
		r.left, r.first = 0, nil
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.left > 0:
		return fmt.Errorf("%d files below %s cannot be removed, the first of them: %w", r.left, path, r.first)
	}
	return nil
}

// removal is one removal on its way.
type removal struct {
	ctx   context.Context
	top   *os.File
	keep  string // in top
	moved int
	left  int // what could not be removed
	first error
}

// empty goes through a directory once and reports whether it removed something: what
// was moved there, and what a file system leaves out as files go, is for another time.
func (r *removal) empty(dir *os.File, depth int) (removed bool) {
	if _, err := dir.Seek(0, 0); err != nil {
		r.note(dir.Name(), err)
		return false
	}
	for {
		names, err := dir.Readdirnames(500)
		for _, name := range names {
			if r.ctx.Err() != nil {
				return false
			}
			if (depth > 0 || name != r.keep) && r.one(dir, name, depth) {
				removed = true
			}
		}
		if err != nil { // io.EOF, or nothing more can be read
			return removed
		}
	}
}

// one removes what has a name in a directory, or moves it up.
func (r *removal) one(dir *os.File, name string, depth int) bool {
	at := int(dir.Fd())
	err := unix.Unlinkat(at, name, 0)
	if errors.Is(err, unix.EISDIR) { // so says Linux of directories
		err = unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
	}
	switch {
	case err == nil:
		return true
	case isGone(err):
		return false
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		r.note(name, err)
		return false
	case depth >= removalDepth:
		return r.moveUp(at, name)
	}
	below, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		r.note(name, err)
		return false
	}
	f := os.NewFile(uintptr(below), name)
	defer f.Close()
	removed, left := false, r.left
	for r.empty(f, depth+1) {
		removed = true
		if unix.Unlinkat(at, name, unix.AT_REMOVEDIR) == nil {
			return true
		}
		if r.left > left {
			return removed // and the whole is gone through again
		}
	}
	if r.left == left && r.ctx.Err() == nil {
		r.note(name, unix.Unlinkat(at, name, unix.AT_REMOVEDIR))
	}
	return removed
}

func (r *removal) moveUp(at int, name string) bool {
	for {
		r.moved++
		err := unix.Renameat2(at, name, int(r.top.Fd()), fmt.Sprintf(".deep-%d", r.moved), unix.RENAME_NOREPLACE)
		switch {
		case err == nil:
			return true
		case !errors.Is(err, unix.EEXIST):
			r.note(name, err)
			return false
		}
	}
}

func (r *removal) note(name string, err error) {
	if err == nil {
		return
	}
	r.left++
	if r.first == nil {
		r.first = fmt.Errorf("%.100q: %w", name, err)
	}
}

// removeFiles removes a machine's directory, its record last: until all else is gone the
// machine is one whose removal has begun.
func (l *Local) removeFiles(ctx context.Context, id string) error {
	dir := l.machineDir(id)
	if err := l.removeHalf(ctx, id); err != nil {
		return err
	}
	if err := emptyTree(ctx, dir, filepath.Base(l.stateFile(id))); err != nil {
		return err
	}
	return removeTree(ctx, dir)
}

// removeHalf removes what an earlier release left of the directory of a machine.
func (l *Local) removeHalf(ctx context.Context, id string) error {
	return removeTree(ctx, filepath.Join(l.machinesDir(), ".gone-"+id))
}

// tidy tries again, now and then until ctx ends, to remove what is to go, and says in log
// what cannot be removed.
func (l *Local) tidy(ctx context.Context, log func(string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(removeAgain):
		}
		l.finishRemovals(ctx, func(err error) {
			if ctx.Err() == nil {
				log(loom.Short(message(err)))
			}
		})
	}
}

// finishRemovals removes machines whose removal has begun, and what belongs to none.
func (l *Local) finishRemovals(ctx context.Context, tell func(error)) {
	states, leftovers, err := l.readStates()
	if err != nil {
		tell(err)
		return
	}
	for _, s := range states {
		if s.Deleting && ctx.Err() == nil {
			if err := l.finishRemoval(ctx, s.ID); err != nil {
				tell(fmt.Errorf("machine %s (%s) is not removed yet: %w", s.ID, s.Hostname, err))
			}
		}
	}
	l.sweep(ctx, states, leftovers, tell)
	l.sweepTrials(tell)
}

// finishRemoval goes on with the removal of a machine, unless somebody does.
func (l *Local) finishRemoval(ctx context.Context, id string) error {
	unlock, err := l.lockMachine(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := l.readState(id)
	if isGone(err) || err == nil && !s.Deleting {
		return nil
	}
	if err != nil {
		return err
	}
	return l.remove(ctx, s)
}

// sweepTrials removes directories that processes left which were killed in tryMapping.
func (l *Local) sweepTrials(tell func(error)) {
	for _, dir := range []string{l.baseDir, l.dataDir} {
		trials, _ := filepath.Glob(filepath.Join(dir, ".trial-*"))
		for _, trial := range trials {
			if info, err := os.Lstat(trial); err == nil && time.Since(info.ModTime()) > trialAge {
				if err := os.RemoveAll(trial); err != nil {
					tell(err)
				}
			}
		}
	}
}
