package local

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// Ids of machines: root of a machine is a user of the host who owns nothing there.
// Base roots belong to baseID and the ids above it, on disk; machines of a tenant have
// a range of the same size elsewhere, and those made before there were such ranges
// have that of the base roots.
const (
	baseID  = 100000
	idCount = 65536
)

// Blocks of ids: one of an installation holds a range for each place of a tenant. They
// begin above the ids that useradd hands out as subordinate ones (SUB_UID_MAX) and end
// where those of systemd's containers do.
const (
	blockIDs   = maxTenants * idCount
	firstBlock = 144
	lastBlock  = 447
)

// ownID is the first of the ids that stand for single machines: no user of Debian has
// them. Two machines of a tenant differ in the offset of their address.
const ownID = 63488

// hostIDs is where the installations of a host reserve their blocks.
type hostIDs struct {
	dir   string   // a file for each block, holding the data directory of its installation
	files []string // subuid(5) and passwd(5) of the host
}

var hostReservations = hostIDs{dir: "/var/lib/loom/ids", files: []string{"/etc/subuid", "/etc/subgid", "/etc/passwd", "/etc/group"}}

// reserve returns the first id of the installation's block, its own if it has one. The
// hash decides where the search begins.
func (h hostIDs) reserve(ctx context.Context, dataDir, hash string) (int, error) {
	held, err := lockFile(ctx, filepath.Join(h.dir, ".lock"))
	if err != nil {
		return 0, &loom.Error{Kind: loom.Unavailable, Message: fmt.Sprintf("Local machines need ids of this host, which Loom reserves in %s, and that cannot be written: %v.", h.dir, err), Err: err}
	}
	defer held.Close()
	holders, err := h.holders()
	if err != nil {
		return 0, err
	}
	for block, holder := range holders {
		if holder == dataDir {
			return block * blockIDs, nil
		}
	}
	used, err := h.used()
	if err != nil {
		return 0, err
	}
	start, err := strconv.ParseUint(hash, 16, 32)
	if err != nil {
		return 0, err
	}
	// One whose data directory is gone may be of a disk that is not mounted just now, so
	// it is taken only when there is no other.
	for _, orphans := range []bool{false, true} {
		for i := range lastBlock - firstBlock + 1 {
			block := firstBlock + (int(start%(lastBlock-firstBlock+1))+i)%(lastBlock-firstBlock+1)
			if holder, taken := holders[block]; taken && (!orphans || exists(holder)) {
				continue
			}
			if used.overlap(block*blockIDs, blockIDs) {
				continue
			}
			if err := os.WriteFile(filepath.Join(h.dir, strconv.Itoa(block)), []byte(dataDir+"\n"), 0o600); err != nil {
				return 0, fmt.Errorf("reserve ids: %w", err)
			}
			return block * blockIDs, nil
		}
	}
	return 0, loom.NewError(loom.Unavailable, "This host has no free block of %d user ids between %d and %d for local machines: remove files of installations that are gone from %s, or ranges from /etc/subuid.",
		blockIDs, firstBlock*blockIDs, (lastBlock+1)*blockIDs-1, h.dir)
}

// release returns the block of an installation back.
func (h hostIDs) release(ctx context.Context, dataDir string) error {
	if !exists(h.dir) {
		return nil
	}
	held, err := lockFile(ctx, filepath.Join(h.dir, ".lock"))
	if err != nil {
		return err
	}
	defer held.Close()
	holders, err := h.holders()
	if err != nil {
		return err
	}
	for block, holder := range holders {
		if holder == dataDir {
			return os.Remove(filepath.Join(h.dir, strconv.Itoa(block)))
		}
	}
	return nil
}

// holders are the data directories that have blocks.
func (h hostIDs) holders() (map[int]string, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, err
	}
	holders := map[int]string{}
	for _, e := range entries {
		block, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(h.dir, e.Name()))
		if err != nil {
			return nil, err
		}
		holders[block] = strings.TrimSpace(string(data))
	}
	return holders, nil
}

// idRanges are pairs of a first id and a count.
type idRanges [][2]int

func (r idRanges) overlap(first, count int) bool {
	for _, one := range r {
		if first < one[0]+one[1] && one[0] < first+count {
			return true
		}
	}
	return false
}

// used are the ids that the host has given to others, and those it does not have.
func (h hostIDs) used() (idRanges, error) {
	var used idRanges
	for _, path := range h.files {
		text, err := os.ReadFile(path)
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(strings.TrimSpace(line), ":")
			if len(fields) < 3 {
				continue
			}
			if strings.HasPrefix(filepath.Base(path), "sub") {
				first, err1 := strconv.Atoi(fields[1])
				count, err2 := strconv.Atoi(fields[2])
				if err1 == nil && err2 == nil {
					used = append(used, [2]int{first, count})
				}
			} else if id, err := strconv.Atoi(fields[2]); err == nil {
				used = append(used, [2]int{id, 1})
			}
		}
	}
	// A host that is a container itself has some ids only.
	for _, path := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		free, err := readMap(path)
		if err != nil {
			return nil, err
		}
		used = append(used, free.gaps()...)
	}
	return used, nil
}

// readMap reads user_namespaces(7): the ids that there are.
func readMap(path string) (idRanges, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var ranges idRanges
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var inside, outside, count int
		if n, _ := fmt.Sscan(lines.Text(), &inside, &outside, &count); n == 3 {
			ranges = append(ranges, [2]int{inside, count})
		}
	}
	return ranges, nil
}

// gaps are the ids between ranges that rise.
func (r idRanges) gaps() (gaps idRanges) {
	end := 0
	for _, one := range r {
		gaps = append(gaps, [2]int{end, one[0] - end})
		end = one[0] + one[1]
	}
	return append(gaps, [2]int{end, max(0, 1<<32-end)})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// firstID is the first id of the tenant at a place.
func (in instance) firstID(place int) int { return in.IDs + place*idCount }

// first is the first id of the machine's range.
func (s *state) first() int {
	if s.FirstID == 0 { // made before there were ranges
		return baseID
	}
	return s.FirstID
}

// owner is the id of the host that owns the machine's namespaces: what the kernel
// counts by user is counted for the machine. Root of the host owns those of machines
// that were made before.
func (s *state) owner() int {
	if s.FirstID == 0 {
		return 0
	}
	ip := parseIP(s.Address)
	return s.FirstID + ownID + int(ip[2]&(1<<(32-tenantBits-8)-1))<<8 + int(ip[3])
}

// onThread runs f on a thread of its own that ends with f, so that f may change what
// belongs to the thread.
func onThread[T any](f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		value, err := f()
		done <- answer{value, err}
	}()
	a := <-done
	return a.value, a.err
}

// become makes this thread act as a user of the host with the rights of root, with a
// session key ring of its own. Processes that it starts in a user namespace keep none of
// these rights outside of it.
func become(id int) error {
	if id != 0 {
		const noFixup, noFixupLocked = 1 << 2, 1 << 3 // linux/securebits.h
		if _, _, errno := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, noFixup|noFixupLocked, 0); errno != 0 {
			return fmt.Errorf("keep rights: %w", errno)
		}
		// Not syscall.Setresuid, which is for all threads.
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(id), ^uintptr(0)); errno != 0 {
			return fmt.Errorf("act as user %d: %w", id, errno)
		}
	}
	// Without a name it is a new one. Kernels without keys differ, and so do container
	// engines that Loom may run in.
	if _, _, errno := syscall.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0); errno != 0 && errno != unix.ENOSYS && errno != unix.EPERM {
		return fmt.Errorf("make a key ring: %w", errno)
	}
	return nil
}

// idmaps are user namespaces, kept as files, that show base roots with the ids of a
// tenant, by its first id.
type idmaps struct {
	mu   sync.Mutex
	maps map[int]*os.File
}

// get returns the namespace that shows baseID and those above it as first and above. It
// stays open until close.
func (m *idmaps) get(executable string, first int) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.maps[first]; f != nil {
		return f, nil
	}
	mapping := []syscall.SysProcIDMap{{ContainerID: baseID, HostID: first, Size: idCount}}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	// A process is needed to make a namespace; it has nothing to do and is ended.
	process, err := os.StartProcess(executable, []string{"loom", StageCommand}, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{null, null, null},
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: mapping, GidMappings: mapping}})
	if err != nil {
		return nil, fmt.Errorf("make a map of ids: %w", err)
	}
	// Also of one that has ended: it is collected below.
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", process.Pid))
	_ = process.Kill()
	_, _ = process.Wait()
	if err != nil {
		return nil, fmt.Errorf("open a map of ids: %w", err)
	}
	if m.maps == nil {
		m.maps = map[int]*os.File{}
	}
	m.maps[first] = f
	return f, nil
}

func (m *idmaps) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.maps {
		f.Close()
	}
	m.maps = nil
}

// mapped returns a directory tree as the machines of a range see it: a mount, attached in
// the private mount namespace of this thread only, which the caller must be on and which
// ends with it.
func mapped(dir string, ids *os.File) (fd int, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return -1, fmt.Errorf("leave the host's mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return -1, fmt.Errorf("make mounts private: %w", err)
	}
	fd, err = unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("copy the mount of %s: %w", dir, err)
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY, Userns_fd: uint64(ids.Fd())})
	if err != nil {
		err = fmt.Errorf("show %s with other ids: %w", dir, err)
	} else if err = unix.MoveMount(fd, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		err = fmt.Errorf("attach %s: %w", dir, err)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
