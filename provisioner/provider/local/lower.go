package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// lowerOf returns what lies below the files of the machines of a range: the base root of
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
	const refused = "The base root of the tenant is not copied"
	if err := l.reserve.Check(l.dataDir, refused, baseSize); err != nil {
		return err
	}
	temp := to + ".tmp"
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	ctx, stop := l.withinRoom(ctx, temp, refused, "")
	defer stop()
	if out, err := command(ctx, "cp", "--archive", "--reflink=auto", "--", from, temp).CombinedOutput(); errors.Is(context.Cause(ctx), loom.Exhausted) {
		return context.Cause(ctx)
	} else if err != nil {
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

// idleBase is how long nobody has used a base root that a sweep removes: longer than any
// task that is about to.
const idleBase = 24 * time.Hour

// used notes that a base root is needed.
func (l *Local) used(im image) {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(filepath.Dir(l.baseRoot(im)), "image"), now, now)
}

// sweepBases removes the base roots that no image type names, no machine has and nobody
// used for a day, and their copies. One that several installations or tests share is left
// alone.
func (l *Local) sweepBases(ctx context.Context, log func(string), images func(context.Context) ([]string, error)) error {
	if l.baseDir != filepath.Join(l.dataDir, "base") || images == nil {
		return nil
	}
	named, err := images(ctx)
	if err != nil {
		return err
	}
	states, _, err := l.readStates()
	if err != nil {
		return err
	}
	for _, s := range states {
		named = append(named, s.Image)
	}
	needed := map[string]bool{}
	for _, text := range append(named, DefaultImage) {
		if im, err := parseImage(text); err == nil {
			needed[im.hash()] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(l.baseDir, "*", "image"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		info, err := os.Stat(file)
		if err != nil || needed[name] || time.Since(info.ModTime()) < idleBase || strings.HasPrefix(name, ".") {
			continue
		}
		text, _ := os.ReadFile(file)
		gone := filepath.Join(l.baseDir, ".gone-"+name)
		if err := errors.Join(os.RemoveAll(gone), os.Rename(filepath.Dir(file), gone), os.RemoveAll(gone), os.RemoveAll(filepath.Join(l.baseDir, name+".lock"))); err != nil {
			return err
		}
		copies, _ := filepath.Glob(filepath.Join(l.dataDir, "roots", "*", name))
		for _, dir := range copies {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		log(fmt.Sprintf("The base root of %s is removed: no image type names it.", strings.TrimSpace(string(text))))
	}
	return nil
}

// Host says what machines of this host may have at most, and what the host lacks.
func (l *Local) Host() loom.LocalHost {
	host := loom.LocalHost{Max: l.ceilings.machine.String()}
	if l.Ready() != nil {
		return loom.LocalHost{}
	}
	if err := l.canMap(); err != nil {
		host.Lacks = append(host.Lacks, fmt.Sprintf("Base roots cannot be shown with the ids of a tenant (%v; Linux 5.19 and a local file system can): each tenant gets a copy of each.", err))
	}
	if !l.hasQuota() {
		host.Lacks = append(host.Lacks, "The file system has no project quotas (prjquota of ext4 and xfs): files of machines are counted now and then, and a machine above its limit is stopped.")
	}
	if missing := l.cgroups.missing(); len(missing) > 0 {
		host.Lacks = append(host.Lacks, fmt.Sprintf("There is no control group for %s: such limits of flavors do not hold.", strings.Join(missing, ", ")))
	}
	if err := l.canFilterCables(); err != nil {
		host.Lacks = append(host.Lacks, "The kernel does not filter what bridges take (nf_tables of the family bridge): a machine may send in the name of another machine of its tenant.")
	}
	if l.canCount() != nil {
		host.Lacks = append(host.Lacks, "The kernel does not count connections (nft_connlimit): a machine with internet may take more than its share of those that the host keeps track of.")
	}
	return host
}
