package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// denied are the system calls that no program of a machine makes, each with the reason.
// They fail with EPERM, or with ENOSYS where programs then do without.
var denied = []struct {
	call    uintptr
	missing bool // as if the kernel did not have it
	why     string
}{
	{unix.SYS_KEYCTL, false, "key rings belong to users of the host, and some know no namespaces"},
	{unix.SYS_ADD_KEY, false, "as keyctl"},
	{unix.SYS_REQUEST_KEY, false, "as keyctl, and it starts a program of the host"},
	{unix.SYS_BPF, false, "programs within the kernel"},
	{unix.SYS_PERF_EVENT_OPEN, false, "counters show what others do, and the code is often broken into"},
	{unix.SYS_USERFAULTFD, false, "holds the kernel up in the middle of a copy, which attacks need"},
	{unix.SYS_KEXEC_LOAD, false, "another kernel"},
	{unix.SYS_KEXEC_FILE_LOAD, false, "another kernel"},
	{unix.SYS_OPEN_BY_HANDLE_AT, false, "opens files by number, outside of the root too"},
	{unix.SYS_NAME_TO_HANDLE_AT, false, "its counterpart"},
	{unix.SYS_INIT_MODULE, false, "modules of the kernel"},
	{unix.SYS_FINIT_MODULE, false, "modules of the kernel"},
	{unix.SYS_DELETE_MODULE, false, "modules of the kernel"},
	{unix.SYS_IO_URING_SETUP, true, "a second way to most calls, past this list"},
	{unix.SYS_IO_URING_ENTER, true, "as io_uring_setup"},
	{unix.SYS_IO_URING_REGISTER, true, "as io_uring_setup"},
	{unix.SYS_IO_SETUP, true, "rings from a number that is the host's (aio-max-nr); databases do without"},
	{unix.SYS_SYSLOG, false, "the log of the host's kernel"},
	{unix.SYS_ACCT, false, "accounting of the host"},
	{unix.SYS_QUOTACTL, false, "quotas of the host's disk"},
	{unix.SYS_QUOTACTL_FD, false, "as quotactl"},
	{unix.SYS_SWAPON, false, "memory of the host"},
	{unix.SYS_SWAPOFF, false, "memory of the host"},
	{unix.SYS_SETTIMEOFDAY, false, "the clock is the host's"},
	{unix.SYS_CLOCK_SETTIME, false, "the clock is the host's"},
	{unix.SYS_ADJTIMEX, false, "the clock is the host's"},
	{unix.SYS_CLOCK_ADJTIME, false, "the clock is the host's"},
	{unix.SYS_MOUNT, false, "masks of /proc hold, whatever rights a bug gives"},
	{unix.SYS_UMOUNT2, false, "as mount"},
	{unix.SYS_PIVOT_ROOT, false, "as mount"},
	{unix.SYS_OPEN_TREE, false, "as mount"},
	{unix.SYS_OPEN_TREE_ATTR, false, "as mount"},
	{unix.SYS_MOVE_MOUNT, false, "as mount"},
	{unix.SYS_FSOPEN, false, "as mount"},
	{unix.SYS_FSCONFIG, false, "as mount"},
	{unix.SYS_FSMOUNT, false, "as mount"},
	{unix.SYS_FSPICK, false, "as mount"},
	{unix.SYS_MOUNT_SETATTR, false, "as mount"},
	{unix.SYS_SETNS, false, "other namespaces"},
	{unix.SYS_MOVE_PAGES, false, "memory of others, by node"},
	{unix.SYS_MIGRATE_PAGES, false, "as move_pages"},
	{unix.SYS_LOOKUP_DCOOKIE, true, "names files by number; kernels drop it"},
	{unix.SYS_VHANGUP, false, "terminals of the host"},
	{unix.SYS_CLONE3, true, "its flags cannot be looked at, and all programs know clone"},
}

// families are the kinds of sockets that a machine has. Others reach past its network
// namespace (vsock), load old code when they are asked for, or take memory that counts for
// nobody (rings of packet sockets).
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// kept are the rights that root of a machine has there. What is not among them is lost to
// all of its programs: CAP_SYS_ADMIN above all, without which nothing is mounted, and
// CAP_NET_ADMIN, whose tables (neighbors, policies) are memory that counts for nobody.
var kept = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETFCAP, // its files
	unix.CAP_KILL, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE, unix.CAP_SYS_CHROOT, // its processes
	unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, // its network
	unix.CAP_AUDIT_WRITE, // PAM wants it and gets no further
}

// seal gives up what no program of a machine needs, for this thread and all that it
// starts.
func seal(stageSettings, func(string, any)) error {
	filter, err := assemble()
	if err == nil {
		err = freeze()
	}
	if err != nil {
		return err
	}
	for right := uintptr(0); right < 64; right++ {
		keep := false
		for _, one := range kept {
			keep = keep || one == right
		}
		if keep {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		} else if err != nil {
			return fmt.Errorf("give up the right %d: %w", right, err)
		}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without no_new_privs, for sudo: this thread may still do so.
	if _, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// machineArch is how the kernel names the architecture of this program (linux/audit.h).
var machineArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in struct seccomp_data; the low half of the first argument.
const (
	dataCall  = 0
	dataArch  = 4
	dataFirst = 16
)

// assemble makes the filter of the tables above.
func assemble() ([]unix.SockFilter, error) {
	arch, known := machineArch[runtime.GOARCH]
	if !known {
		return nil, fmt.Errorf("system calls of %s are not known", runtime.GOARCH)
	}
	no, missing := bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	program := []bpf.Instruction{
		// Numbers mean other calls elsewhere: 32-bit programs, and x32, which is 64-bit
		// numbers with a bit set.
		bpf.LoadAbsolute{Off: dataArch, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1}, missing,
		bpf.LoadAbsolute{Off: dataCall, Size: 4}, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1}, missing,
	}
	for _, d := range denied {
		answer := no
		if d.missing {
			answer = missing
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(d.call), SkipTrue: 1}, answer)
	}
	// A user namespace gives back all rights within it, and with them most of the
	// kernel's code to try.
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 4},
			bpf.LoadAbsolute{Off: dataFirst, Size: 4}, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.CLONE_NEWUSER, SkipTrue: 1}, no, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	}
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(2*len(families) + 2)}, bpf.LoadAbsolute{Off: dataFirst, Size: 4})
		for _, family := range families {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: family, SkipTrue: 1}, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
		}
		program = append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)})
	}
	raw, err := bpf.Assemble(append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, one := range raw {
		filter[i] = unix.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	return filter, nil
}

// masked are files that tell of the host, or are handles to it.
var masked = []string{"proc/keys", "proc/key-users", "proc/kallsyms", "proc/kcore", "proc/cmdline", "proc/sysrq-trigger", "proc/timer_list", "proc/sched_debug"}

// mask puts an empty file that nobody may write over each of them.
func mask(root string) error {
	empty := filepath.Join(root, "dev", ".empty")
	if err := os.WriteFile(empty, nil, 0o444); err != nil {
		return err
	}
	defer os.Remove(empty)
	for _, name := range masked {
		at := filepath.Join(root, name)
		err := unix.Mount(empty, at, "", unix.MS_BIND, "")
		if errors.Is(err, unix.ENOENT) { // kernels differ
			continue
		}
		if err == nil {
			err = unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NOEXEC, "")
		}
		if err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	return nil
}

// freeze keeps root of the machine from changing its settings of IPv6, which is off: with
// it a machine fills the table of neighbors, which the kernel has once for all.
func freeze() error {
	const settings = "/proc/sys/net/ipv6"
	err := unix.Mount(settings, settings, "", unix.MS_BIND, "")
	if errors.Is(err, unix.ENOENT) { // a kernel without
		return nil
	}
	if err == nil {
		err = unix.Mount("", settings, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	if err != nil {
		return fmt.Errorf("freeze %s: %w", settings, err)
	}
	return nil
}

// The oom_score_adj of sshd and of all else on a machine: within its group the kernel ends
// others first, and when the memory of the host is short, programs of machines before the
// host's own. It is not negative, as root of the machine can make the first process, and
// what inherits from it, whatever it likes.
const spared, unspared = "0", "500"

// spare keeps the kernel from ending a machine's first process before others when their
// memory is short. It works once sshd listens: what sshd found at its start it gives to
// its sessions.
func (l *Local) spare(s *state) {
	if s.running() && !s.starting() {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.PID), []byte(spared), 0)
	}
}
