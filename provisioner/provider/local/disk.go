package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"loom/app/diskspace"
	"loom/app/loom"
)

// Files of a machine. Where the file system has project quotas, the kernel keeps each
// machine to its limit; elsewhere, and for tenants everywhere, Watch looks and stops the
// machine that has too much.
const (
	// watchEvery is how often free space is asked for, which is one system call.
	watchEvery = time.Second
	// walkEvery is how often files are counted when nothing seems to change.
	walkEvery = time.Minute
	// sweepEvery is how often base roots are looked through.
	sweepEvery = 6 * time.Hour
	// walkAfter is how much free space falls before files are counted at once.
	walkAfter = 256 << 20
	// restAfter is how many times as long as the last count took no other one begins, while
	// there is room: counting takes a tenth of a processor at most.
	restAfter = 10
	// deepest is how far directories may be nested for their files to be counted.
	deepest = 256
	// bytesPerFile is the share of a machine's disk that gives it a right to one more
	// file, as in ext4: a file system may also run out of them.
	bytesPerFile = 16 << 10
)

// filesOf is how many files a limit of bytes allows.
func filesOf(disk int64) int64 { return max(disk/bytesPerFile, 10_000) }

// use is what a machine has on disk.
type use struct {
	bytes, files int64
	tooDeep      bool
	tooMany      bool // open files
}

// looked is what was found when there was enough free space the last time.
type looked struct {
	free int64
	uses map[string]int64 // by id
	told time.Time        // of what was not explained since
}

// Watch keeps machines to their limits of disk and sockets until ctx ends, says in log whom it
// stopped, and now and then removes base roots that no image type names; only one process
// of an installation does it at a time.
func (l *Local) Watch(ctx context.Context, log func(string), images func(context.Context) ([]string, error)) {
	if l.Ready() != nil {
		return
	}
	var lock *os.File
	defer func() {
		if lock != nil {
			lock.Close()
		}
	}()
	var tidying sync.WaitGroup
	defer tidying.Wait()
	var walked, swept time.Time
	var free int64
	var took time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		if lock == nil {
			if lock = tryLock(filepath.Join(l.dataDir, "watch.lock")); lock == nil {
				continue
			}
			tidying.Go(func() { l.tidy(ctx, log) })
		}
		if time.Since(swept) > sweepEvery {
			swept = time.Now()
			if err := l.sweepBases(ctx, log, images); err != nil && ctx.Err() == nil {
				log("Base roots that nobody needs are not removed: " + message(err))
			}
		}
		if err := l.keepToSockets(ctx, log); err != nil && ctx.Err() == nil {
			log("The sockets of machines are not watched: " + message(err))
		}
		now, err := l.reserve.Look(l.dataDir)
		if err != nil {
			continue
		}
		fell, scarce := free-now.Bytes, now.Bytes < now.Kept
		switch {
		case time.Since(walked) >= walkEvery:
		case scarce && fell >= walkAfter/16:
		case fell < walkAfter, time.Since(walked) < restAfter*took:
			continue
		}
		began := time.Now()
		if err := l.keepToDisk(ctx, log); err != nil && ctx.Err() == nil {
			log("The disk of machines is not watched: " + message(err))
		}
		walked, free, took = time.Now(), now.Bytes, time.Since(began)
	}
}

// tryLock takes a lock or gives nil.
func tryLock(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil
	}
	return f
}

// keepToDisk looks once what all machines have on disk and stops those that have too
// much.
func (l *Local) keepToDisk(ctx context.Context, log func(string)) error {
	states, _, err := l.readStates()
	if err != nil {
		return err
	}
	uses := make([]use, len(states))
	onDisk := make(map[string]int64, len(states))
	tenants := l.builtFor()
	stopped := false
	stop := func(i int, reason string) error {
		stopped = true
		return l.stopFor(ctx, states[i], reason, log)
	}
	var errs []error
	for i, s := range states {
		if s.Deleting || ctx.Err() != nil {
			continue
		}
		limit := l.ceilings.fill(s.Limits).Disk
		uses[i] = l.diskOf(s, limit)
		onDisk[s.ID] = uses[i].bytes
		tenants[s.Tenant] += uses[i].bytes
		if s.Stopped != "" || limit == 0 {
			continue
		}
		switch {
		case uses[i].tooDeep:
			errs = append(errs, stop(i, fmt.Sprintf("its directories are nested more than %d deep, so its files cannot be counted.", deepest)))
		case uses[i].tooMany:
			errs = append(errs, stop(i, fmt.Sprintf("its processes have more than %d files open or mapped, so they cannot be counted.", heldMost)))
		case uses[i].bytes > limit:
			errs = append(errs, stop(i, fmt.Sprintf("its files take %s and it may have %s.", diskspace.Size(uses[i].bytes), diskspace.Size(limit))))
		case uses[i].files > filesOf(limit):
			errs = append(errs, stop(i, fmt.Sprintf("it has more than %d files, the most for its %s of disk.", filesOf(limit), diskspace.Size(limit))))
		}
	}
	l.loads.onDisk(onDisk)
	largest := func(of func(i int) bool) int {
		found := -1
		for i, s := range states {
			if s.running() && of(i) && (found < 0 || uses[i].bytes > uses[found].bytes) {
				found = i
			}
		}
		return found
	}
	for tenant, bytes := range tenants {
		if most := l.ceilings.tenant.Disk; most > 0 && bytes > most && !stopped {
			if i := largest(func(i int) bool { return states[i].Tenant == tenant }); i >= 0 {
				errs = append(errs, stop(i, fmt.Sprintf("the machines and base roots of its tenant take %s and may have %s together, and this one takes most: %s.",
					diskspace.Size(bytes), diskspace.Size(most), diskspace.Size(uses[i].bytes))))
			}
		}
	}
	if now, err := l.reserve.Look(l.dataDir); err == nil && !stopped {
		errs = append(errs, l.lastResort(now, states, uses, stop, log))
	}
	return errors.Join(errs...)
}

// tellAgain is how often it is told that nothing explains why the disk is full.
const tellAgain = time.Hour

// lastResort stops the machine that took most since there was enough free space, when
// half of the reserve is gone. What counting does not find, such as deleted files on their
// way through a socket, may be anybody's: when what was counted does not explain nearly
// all that is gone, no machine is stopped, and the operator is told.
func (l *Local) lastResort(now diskspace.Free, states []*state, uses []use, stop func(int, string) error, log func(string)) error {
	look := func() {
		l.looked = looked{free: now.Bytes, uses: map[string]int64{}, told: l.looked.told}
		for i, s := range states {
			l.looked.uses[s.ID] = uses[i].bytes
		}
	}
	switch {
	case now.Bytes >= now.Kept:
		look()
		l.looked.told = time.Time{}
		return nil
	case l.looked.uses == nil:
		look()
	}
	if now.Bytes >= now.Kept/2 {
		return nil
	}
	most, grown, explained := -1, int64(minDisk), int64(0)
	for i, s := range states {
		more := uses[i].bytes - l.looked.uses[s.ID]
		if more <= 0 || !s.running() {
			continue
		}
		if explained += more; more > grown {
			most, grown = i, more
		}
	}
	fell := l.looked.free - now.Bytes
	if most >= 0 && fell > minDisk && explained >= fell/8*7 {
		look()
		return stop(most, fmt.Sprintf("the disk of this host has only %s left, and this machine took most of what is gone: %s.", diskspace.Size(now.Bytes), diskspace.Size(grown)))
	}
	if time.Since(l.looked.told) < tellAgain {
		return nil
	}
	l.looked.told = time.Now()
	text := fmt.Sprintf("The disk of this host has only %s left. Of %s that are gone since there was enough, files of machines explain %s, so no machine is stopped: look what else fills the disk, or add some.",
		diskspace.Size(now.Bytes), diskspace.Size(max(fell, 0)), diskspace.Size(explained))
	var suspects []string
	for _, s := range states {
		if s.running() && len(suspects) < 5 && travels(l.cgroups.pids(s.group())) {
			suspects = append(suspects, fmt.Sprintf("%s (%s)", s.ID, s.Hostname))
		}
	}
	if len(suspects) > 0 {
		text += " These machines have open files on their way through sockets, where their size is not seen: " + strings.Join(suspects, ", ") + "."
	}
	log(text)
	return nil
}

// stopFor stops a machine for good, with the reason in log and on record.
func (l *Local) stopFor(ctx context.Context, s *state, reason string, log func(string)) error {
	log(fmt.Sprintf("Machine %s (%s) is stopped: %s", s.ID, s.Hostname, reason))
	// First of all: while it boots, its lock is held until it is up or gone.
	if err := l.halt(s, deadAfterDelete); err != nil {
		return err
	}
	unlock, err := l.lockMachine(ctx, s.ID)
	if err != nil {
		return err
	}
	defer unlock()
	s, err = l.readState(s.ID)
	if isGone(err) || err == nil && s.Deleting {
		return nil
	}
	if err != nil {
		return err
	}
	s.Stopped = reason
	if err := l.writeState(s); err != nil {
		return err
	}
	return l.halt(s, deadAfterDelete)
}

// stoppedError is why a machine is not booted.
func (s *state) stoppedError() error {
	return loom.NewError(loom.Exhausted, "Machine %s was stopped: %s Delete it, or replace its node.", s.ID, s.Stopped)
}

// diskOf tells what a machine has on disk, no further than is needed to see that it is
// more than the limit.
func (l *Local) diskOf(s *state, limit int64) use {
	if u, ok := l.quotaOf(s); ok {
		return u
	}
	if limit == 0 {
		limit = 1 << 62
	}
	u := use{}
	bytes, whole := heldBytes(l.cgroups.pids(s.group()))
	u.bytes, u.tooMany = bytes, !whole
	for _, dir := range []string{"upper", "work"} { // open files that were replaced are in neither
		root, err := unix.Open(filepath.Join(l.machineDir(s.ID), dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == nil {
			count(root, &u, limit, deepest, map[uint64]bool{})
		}
	}
	return u
}

// quotaOf returns what a machine has on disk by its quota, false where it has none.
func (l *Local) quotaOf(s *state) (use, bool) {
	if !l.hasQuota() || s.FirstID == 0 {
		return use{}, false
	}
	u, err := quotaUse(l.machineDir(s.ID), s.owner())
	return u, err == nil
}

// count adds up what lies in a directory, which it closes. The files are those of a
// machine, which changes them as it likes: nothing but directories is opened, and no link
// is followed.
func count(dir int, u *use, limit int64, levels int, seen map[uint64]bool) {
	f := os.NewFile(uintptr(dir), "files of a machine")
	defer f.Close()
	if levels == 0 {
		u.tooDeep = true
		return
	}
	for {
		names, err := f.Readdirnames(500)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			if u.bytes > limit || u.files > filesOf(limit) || u.tooDeep {
				return
			}
			u.files++ // every name, as each takes time to look at
			directory := st.Mode&unix.S_IFMT == unix.S_IFDIR
			if !directory && st.Nlink > 1 {
				if seen[st.Ino] {
					continue
				}
				seen[st.Ino] = true
			}
			u.bytes += st.Blocks * 512
			if !directory {
				continue
			}
			if below, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
				count(below, u, limit, levels-1, seen)
			}
		}
		if err != nil { // io.EOF, or the directory is gone
			return
		}
	}
}

// pids are the processes of a group.
func (c *cgroups) pids(group string) (pids []int) {
	for _, t := range c.trees {
		if t.shared() {
			continue
		}
		procs, err := os.ReadFile(filepath.Join(c.dir(t, group), "cgroup.procs"))
		if err != nil {
			continue
		}
		for _, text := range strings.Fields(string(procs)) {
			if pid, err := strconv.Atoi(text); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return pids
	}
	return nil
}

// Project quotas: linux/quota.h and linux/fs.h.
const (
	quotaGet     = 0x800007<<8 | 2 // 2: of projects
	quotaSet     = 0x800008<<8 | 2
	quotaInfo    = 0x800005<<8 | 2
	quotaLimits  = 1 | 4 // of bytes and of files
	quotaBlock   = 1024
	getAttr      = 0x801c581f // FS_IOC_FSGETXATTR
	setAttr      = 0x401c5820
	inheritsFlag = 0x200
)

// quotaBlk is struct if_dqblk.
type quotaBlk struct {
	BytesHard, BytesSoft, Bytes uint64 // the limits in blocks
	FilesHard, FilesSoft, Files uint64
	BytesTime, FilesTime        uint64
	Valid                       uint32
	_                           uint32
}

// fileAttr is struct fsxattr.
type fileAttr struct {
	Flags, ExtSize, Extents, Project, CowExtSize uint32
	_                                            [8]byte
}

func quotactl(dir string, command, project int, data unsafe.Pointer) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, uintptr(fd), uintptr(command), uintptr(project), uintptr(data), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// hasQuota reports whether the file system of the data directory keeps projects to
// limits; once it exists.
func (l *Local) hasQuota() bool {
	l.quotaOnce.Do(func() {
		var info [24]byte // struct if_dqinfo
		l.quota = quotactl(l.machinesDir(), quotaInfo, 0, unsafe.Pointer(&info)) == nil
	})
	return l.quota
}

// limitDisk returns a machine's directories to a project of its own, before anything is in
// them. A machine without a limit by the kernel is watched.
func (l *Local) limitDisk(s *state) error {
	limit := l.ceilings.fill(s.Limits).Disk
	if s.FirstID == 0 || limit == 0 || !l.hasQuota() {
		return nil
	}
	q := quotaBlk{BytesHard: uint64(limit / quotaBlock), FilesHard: uint64(filesOf(limit)), Valid: quotaLimits}
	if err := quotactl(l.machineDir(s.ID), quotaSet, s.owner(), unsafe.Pointer(&q)); err != nil {
		return fmt.Errorf("limit the disk of machine %s: %w", s.ID, err)
	}
	for _, name := range []string{"upper", "work"} {
		fd, err := unix.Open(filepath.Join(l.machineDir(s.ID), name), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		var attr fileAttr
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), getAttr, uintptr(unsafe.Pointer(&attr)))
		if errno == 0 {
			attr.Flags, attr.Project = attr.Flags|inheritsFlag, uint32(s.owner())
			_, _, errno = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), setAttr, uintptr(unsafe.Pointer(&attr)))
		}
		unix.Close(fd)
		if errno != 0 {
			return fmt.Errorf("limit the disk of machine %s: %w", s.ID, errno)
		}
	}
	return nil
}

// freeDisk forgets the limit of a machine whose files are gone.
func (l *Local) freeDisk(s *state) {
	if s.FirstID != 0 && l.hasQuota() {
		_ = quotactl(l.machinesDir(), quotaSet, s.owner(), unsafe.Pointer(&quotaBlk{Valid: quotaLimits}))
	}
}

func quotaUse(dir string, project int) (use, error) {
	var q quotaBlk
	err := quotactl(dir, quotaGet, project, unsafe.Pointer(&q))
	return use{bytes: int64(q.Bytes), files: int64(q.Files)}, err
}
