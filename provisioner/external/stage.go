package external

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StageCommand is the first argument with which the program sets limits and user
// and then becomes the plugin; the program must hand the others to Main.
const StageCommand = "plugin-stage"

// stageExit is the exit status of a stage that did not become the plugin.
const stageExit = 126

// stage is what Main does before it becomes the plugin. It travels on the command
// line and holds nothing secret.
type stage struct {
	Parent    int      `json:"parent"`
	Program   string   `json:"program"`
	Args      []string `json:"args"`
	MemoryMB  int      `json:"memory_mb"`
	OpenFiles int      `json:"open_files"`
	User      *User    `json:"user,omitempty"`
}

// stagePipe is the file on which the stage says what went wrong; it closes when
// the plugin begins.
const stagePipe = 3

// Main sets the limits and the user that its argument describes and becomes the
// plugin. It returns the exit status when it cannot.
func Main(args []string) int {
	runtime.LockOSThread()
	// Also what this process was given by who started it, and passed on unknowing.
	if err := unix.CloseRange(stagePipe, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(stagePipe) // a kernel before 5.11
	}
	err := becomePlugin(args)
	fmt.Fprint(os.NewFile(stagePipe, "stage"), err)
	return stageExit
}

func becomePlugin(args []string) error {
	var s stage
	if len(args) != 1 {
		return fmt.Errorf("%s takes one argument", StageCommand)
	}
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	syscall.Umask(0o077)
	limits := []struct {
		which int
		value uint64
	}{
		{unix.RLIMIT_CORE, 0}, // a core would hold the secrets of the request
		{unix.RLIMIT_NOFILE, uint64(s.OpenFiles)},
	}
	for _, l := range limits {
		if err := lower(l.which, l.value); err != nil {
			return fmt.Errorf("set limit %d to %d: %w", l.which, l.value, err)
		}
	}
	if s.User != nil {
		if err := s.User.become(); err != nil {
			return fmt.Errorf("become the user %s: %w", s.User.Name, err)
		}
	}
	// After the change of user, which clears it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != s.Parent {
		return fmt.Errorf("the provisioner is gone")
	}
	if s.MemoryMB == 0 {
		return syscall.Exec(s.Program, s.Args, os.Environ())
	}
	return s.confined()
}

// confined becomes the program with the limit of address space. This process has
// more address space than a plugin may have, so that the next thing its runtime
// asks of the kernel after the limit is set would end it: nothing of Go may run
// between the two calls.
func (s stage) confined() error {
	program, err := syscall.BytePtrFromString(s.Program)
	if err != nil {
		return err
	}
	args, err := syscall.SlicePtrFromStrings(s.Args)
	if err != nil {
		return err
	}
	environ, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_AS, &now); err != nil {
		return err
	}
	value := min(uint64(s.MemoryMB)<<20, now.Max)
	limit := syscall.Rlimit{Cur: value, Max: value}
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1)
	_, _, limited := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_AS, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if limited == 0 {
		_, _, failed := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(program)), uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&environ[0])))
		return failed
	}
	return fmt.Errorf("set the limit of memory to %d MB: %w", s.MemoryMB, limited)
}

// lower sets both limits, but never above what the process may have.
func lower(which int, value uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(which, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return syscall.Setrlimit(which, &syscall.Rlimit{Cur: value, Max: value})
}

// become gives up all rights for those of the user, for good.
func (u *User) become() error {
	if os.Geteuid() == u.UID {
		return nil
	}
	if err := syscall.Setgroups(u.Groups); err != nil {
		return err
	}
	if err := syscall.Setgid(u.GID); err != nil {
		return err
	}
	if err := syscall.Setuid(u.UID); err != nil {
		return err
	}
	// Programs like sudo give no rights back.
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
