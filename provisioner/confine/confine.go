// Package confine runs what others wrote, or what reads what others sent, as a user
// without rights and within limits of memory, processes, open files and time.
//
// The program re-executes itself to set limits and user before it becomes the other
// program, or calls a function of its own. So every program that confines (tests too)
// must call Main when its first argument is Command, before doing anything else.
//
// The package must not decide what runs.
package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Command is the first argument with which the program sets limits and user; the
// program must hand the others to Main.
const Command = "confined"

// Exit is the exit status of a confined program that could not begin.
const Exit = 126

// Usual are limits for programs that set none.
const (
	// DataMB is how much a process may write to, in MB.
	DataMB = 2048
	// Processes is how many processes and threads the user may have in all.
	Processes = 4096
)

// Stage is what Main does before the other program begins. It travels on the command
// line and holds nothing secret.
type Stage struct {
	// Parent is the process whose end is the end of this one.
	Parent int `json:"parent"`
	// Program and Args are what it becomes; or Do names a function of this program.
	Program string   `json:"program,omitempty"`
	Args    []string `json:"args,omitempty"`
	Do      string   `json:"do,omitempty"`
	// Limits; 0 is none. MemoryMB is address space, for programs only; DataMB what is
	// written to; FileBytes the largest file.
	MemoryMB  int   `json:"memory_mb,omitempty"`
	DataMB    int   `json:"data_mb,omitempty"`
	OpenFiles int   `json:"open_files,omitempty"`
	Processes int   `json:"processes,omitempty"`
	Seconds   int   `json:"seconds,omitempty"`
	FileBytes int64 `json:"file_bytes,omitempty"`
	// User, if set, is who it runs as.
	User *User `json:"user,omitempty"`
}

// StagePipe is the number of the file on which Main says what went wrong; it closes
// when the other program begins, or when the function has ended.
const StagePipe = 3

// Main sets the limits and the user that its argument describes and becomes the
// program, or calls the function. It returns the exit status of the function, or
// Exit when nothing could begin.
func Main(args []string, functions map[string]func() error) int {
	runtime.LockOSThread()
	// Also what this process was given by who started it, and passed on unknowing.
	if err := unix.CloseRange(StagePipe, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(StagePipe) // a kernel before 5.11
	}
	status, err := Exit, error(nil)
	s, err := parse(args)
	if err == nil {
		if err = s.enter(); err == nil {
			if s.Do == "" {
				err = s.become()
			} else if function := functions[s.Do]; function == nil {
				err = fmt.Errorf("there is no function %q", s.Do)
			} else if err = function(); err == nil {
				return 0
			} else {
				status = 1
			}
		}
	}
	fmt.Fprint(os.NewFile(StagePipe, "stage"), err)
	return status
}

func parse(args []string) (s Stage, err error) {
	if len(args) != 1 {
		return s, fmt.Errorf("%s takes one argument", Command)
	}
	return s, json.Unmarshal([]byte(args[0]), &s)
}

// enter sets limits and user.
func (s Stage) enter() error {
	syscall.Umask(0o077)
	limits := []struct {
		which int
		value int64
	}{
		{unix.RLIMIT_NOFILE, int64(s.OpenFiles)}, {unix.RLIMIT_NPROC, int64(s.Processes)}, {unix.RLIMIT_DATA, int64(s.DataMB) << 20},
		{unix.RLIMIT_CPU, int64(s.Seconds)}, {unix.RLIMIT_FSIZE, s.FileBytes},
	}
	if err := lower(unix.RLIMIT_CORE, 0); err != nil { // a core would hold the secrets of a request
		return err
	}
	for _, l := range limits {
		if l.value <= 0 {
			continue
		}
		if err := lower(l.which, uint64(l.value)); err != nil {
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
	if s.Do == "" {
		return nil
	}
	// Others who run as this user must not get at what this process has open.
	if s.DataMB > 0 {
		debug.SetMemoryLimit(int64(s.DataMB) << 20 / 2)
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

func (s Stage) become() error {
	if s.MemoryMB == 0 {
		return syscall.Exec(s.Program, s.Args, os.Environ())
	}
	return s.confined()
}

// Prepare returns the command that runs a stage, with an empty environment, in a session
// of its own; Parent is set. Tell is where it says what went wrong before the other
// program begins. It is an error in a program that was itself to be confined and did not
// call Main: it would start itself without end.
func Prepare(s Stage, tell *os.File) (*exec.Cmd, error) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		return nil, errors.New("this program has to call confine.Main first")
	}
	s.Parent = os.Getpid()
	spec, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", Command, string(spec))
	cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr = []string{}, []*os.File{tell}, &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

// Start starts a command that begins with Command. The kernel tells a process that its
// parent has ended when the thread that made it ends, so a thread is kept for it.
func Start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: it ends with the process below
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for {
			err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return <-started
}

// confined becomes the program with the limit of address space. This process has
// more address space than a plugin may have, so that the next thing its runtime
// asks of the kernel after the limit is set would end it: nothing of Go may run
// between the two calls.
func (s Stage) confined() error {
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

// User is a system user without rights.
type User struct {
	Name     string
	UID, GID int
	Groups   []int
}

// LookupUser returns the system user of a name. The error says what is wrong: there is
// no such user, it is root, or this process may not switch users.
func LookupUser(name string) (*User, error) {
	account, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("the user “%s” for plugins is not known on this host; make it with: useradd --system --no-create-home --shell /usr/sbin/nologin %s", name, name)
	}
	u := &User{Name: name}
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("the user “%s” has no numeric id: %w", name, err)
	}
	u.UID, u.GID = uid, gid
	if uid == 0 || gid == 0 {
		return nil, fmt.Errorf("plugins cannot run as “%s”: it is root, or in root's group; name a user without rights of its own", name)
	}
	if os.Geteuid() != 0 && os.Geteuid() != uid {
		return nil, fmt.Errorf("plugins cannot run as “%s”: only a provisioner that runs as root may switch users", name)
	}
	groups, err := account.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("list the groups of “%s”: %w", name, err)
	}
	for _, text := range groups {
		if id, err := strconv.Atoi(text); err == nil && id != 0 {
			u.Groups = append(u.Groups, id)
		}
	}
	return u, nil
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
