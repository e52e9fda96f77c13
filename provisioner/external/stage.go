package external

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"

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
		set   bool
	}{
		{unix.RLIMIT_CORE, 0, true}, // a core would hold the secrets of the request
		{unix.RLIMIT_NOFILE, uint64(s.OpenFiles), s.OpenFiles > 0},
		{unix.RLIMIT_AS, uint64(s.MemoryMB) << 20, s.MemoryMB > 0},
	}
	for _, l := range limits {
		if !l.set {
			continue
		}
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
	return syscall.Exec(s.Program, s.Args, os.Environ())
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
