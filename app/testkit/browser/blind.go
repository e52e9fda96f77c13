//go:build browser

package browser

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// blindEnv makes this program become the browser that it names, kept from watching the
// host's networks. Chromium drops what it is loading when an address comes or goes, as
// they do while other tests make local machines, and a page without its style or script
// is another page. It hears of them by netlink, and is content without.
const blindEnv = "LOOM_TEST_CHROMIUM"

// Here, and not in a TestMain: every package that uses a browser has this.
func init() {
	path := os.Getenv(blindEnv)
	if path == "" {
		return
	}
	runtime.LockOSThread() // what is forbidden is forbidden to this thread, and to what it becomes
	if err := forbidNetlink(); err != nil {
		fmt.Fprintln(os.Stderr, "the browser may see networks change:", err)
	}
	environ := slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, blindEnv+"=") })
	err := syscall.Exec(path, append([]string{path}, os.Args[1:]...), environ)
	fmt.Fprintln(os.Stderr, path, err)
	os.Exit(1)
}

// forbidNetlink makes socket(AF_NETLINK, …, NETLINK_ROUTE) fail for this thread and all
// that it starts.
func forbidNetlink() error {
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return fmt.Errorf("no filter for %s", runtime.GOARCH)
	}
	// Offsets in struct seccomp_data: the call's number, the architecture, and from 16 on
	// its arguments of 8 bytes, whose lower halves come first.
	const nr, archAt, domain, protocol = 0, 4, 16, 32
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	// is goes on where the value is k, else skips so many.
	is := func(k uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: skip}
	}
	give := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{
		load(archAt), is(arch, 7),
		load(nr), is(unix.SYS_SOCKET, 5),
		load(domain), is(unix.AF_NETLINK, 3),
		load(protocol), is(unix.NETLINK_ROUTE, 1),
		give(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)),
		give(unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	runtime.KeepAlive(filter)
	return nil
}
