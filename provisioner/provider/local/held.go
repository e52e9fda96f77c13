package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// heldMost is how many open and mapped files of a machine are looked at: some seconds' work.
const heldMost = 1_000_000

// held adds up the files without a name that the processes of a machine have open or
// mapped. It goes by what the kernel says of each, never by names, which are the
// machine's: files of memory (memfd, /dev/shm) are in other file systems, and count as
// memory.
type held struct {
	files  map[uint64]int64 // bytes by inode: open and mapped ones have other devices
	looked int
}

func heldBytes(pids []int) (bytes int64, whole bool) {
	h := held{files: map[uint64]int64{}}
	for _, pid := range pids {
		h.process(pid)
	}
	for _, size := range h.files {
		bytes += size
	}
	return bytes, h.looked <= heldMost
}

// process looks at each table of files, which a thread may have for itself, and at the
// memory, which all threads share and the first may have left.
func (h *held) process(pid int) {
	last, mapped := 0, false
	for _, thread := range tasks(pid) {
		if last == 0 || !sameFiles(last, thread) {
			h.dir(fmt.Sprintf("/proc/%d/fd", thread))
			last = thread
		}
		mapped = mapped || h.dir(fmt.Sprintf("/proc/%d/map_files", thread))
	}
}

// dir looks at links to files, and reports whether there are any.
func (h *held) dir(path string) (any bool) {
	d, err := os.Open(path)
	if err != nil {
		return false
	}
	defer d.Close()
	for h.looked <= heldMost {
		names, err := d.Readdirnames(500)
		h.looked += len(names)
		any = any || len(names) > 0
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(int(d.Fd()), name, &st, 0) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 || st.Blocks == 0 {
				continue
			}
			var fs unix.Statfs_t
			if unix.Statfs(filepath.Join(path, name), &fs) == nil && inMemory(int64(fs.Type)) {
				continue
			}
			h.files[st.Ino] = max(h.files[st.Ino], st.Blocks*512)
		}
		if err != nil {
			break
		}
	}
	return any
}

// inMemory reports whether a file system keeps its files in memory.
func inMemory(kind int64) bool {
	return kind == unix.TMPFS_MAGIC || kind == unix.HUGETLBFS_MAGIC || kind == unix.RAMFS_MAGIC || kind == unix.SECRETMEM_MAGIC
}

// tasks are the threads of a process.
func tasks(pid int) (threads []int) {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range entries {
		if thread, err := strconv.Atoi(e.Name()); err == nil {
			threads = append(threads, thread)
		}
	}
	return threads
}

// sameFiles reports whether two threads are known to have one table of open files.
func sameFiles(a, b int) bool {
	const kcmpFiles = 2 // linux/kcmp.h
	same, _, errno := syscall.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	return errno == 0 && same == 0
}

// travels reports whether processes have files on their way through a socket, where
// nothing counts them.
func travels(pids []int) bool {
	for _, pid := range pids {
		last := 0
		for _, thread := range tasks(pid) {
			if last != 0 && sameFiles(last, thread) {
				continue
			}
			last = thread
			infos, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", thread))
			for _, info := range infos {
				text, _ := readStart(info, 4<<10)
				if _, after, ok := strings.Cut(string(text), "scm_fds:"); ok {
					if n, _, _ := strings.Cut(strings.TrimSpace(after), "\n"); n != "0" {
						return true
					}
				}
			}
		}
	}
	return false
}
