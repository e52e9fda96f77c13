package external

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"loom/provisioner/confine"
)

// process is a running plugin, the leader of a session and process group of its
// own.
type process struct {
	pid                   int
	stdin, stdout, stderr *os.File
	// exited is closed when the leader has ended. It stays a zombie, and its
	// number its own, until reap.
	exited chan struct{}
	reap   chan struct{}
	status chan syscall.WaitStatus
}

// errNotStarted marks a plugin that could not be started at all.
var errNotStarted = errors.New("the plugin cannot be started")

// start runs a plugin. An error of kind errNotStarted is the plugin's fault.
func start(s confine.Stage, dir string, environ []string) (*process, error) {
	var err error
	var files []*os.File
	done := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	pipe := func() (*os.File, *os.File) {
		if err != nil {
			return nil, nil
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	stageR, stageW := pipe()
	if err != nil {
		done()
		return nil, fmt.Errorf("make pipes: %w", err)
	}
	cmd, err := confine.Prepare(s, stageW)
	if err != nil {
		done()
		return nil, err
	}
	cmd.Dir, cmd.Env = dir, environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	p := &process{stdin: inW, stdout: outR, stderr: errR, exited: make(chan struct{}), reap: make(chan struct{}), status: make(chan syscall.WaitStatus, 1)}
	started := make(chan error, 1)
	go p.keep(cmd, started)
	if err := <-started; err != nil {
		done()
		return nil, fmt.Errorf("start the stage of a plugin: %w", err)
	}
	for _, f := range []*os.File{inR, outW, errW, stageW} {
		_ = f.Close()
	}
	// Ends when the stage has become the plugin, or died.
	trouble, _ := io.ReadAll(io.LimitReader(stageR, 4<<10))
	_ = stageR.Close()
	if len(trouble) > 0 {
		p.finish()
		return nil, fmt.Errorf("%w: %s: %s", errNotStarted, s.Program, trouble)
	}
	return p, nil
}

// keep starts and awaits the process. It holds its thread until then: the kernel
// tells a child of its parent's death when the thread that made it ends.
func (p *process) keep(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	err := cmd.Start()
	if err == nil {
		p.pid = cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	for {
		err := unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(p.exited)
	<-p.reap
	_ = cmd.Wait()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	p.status <- status
}

// signal reaches every process of the group. Only before finish.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.pid, s) }

// finish kills what is left of the group and gives how the leader ended.
func (p *process) finish() syscall.WaitStatus {
	p.signal(syscall.SIGKILL)
	<-p.exited
	close(p.reap)
	status := <-p.status
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close()
	}
	return status
}

// strays kills processes that left the group of a plugin, which the name of the
// call's scratch directory in their environment gives away.
func strays(scratch string) {
	for range 4 { // one that forks may have a child by now
		found := false
		for _, pid := range carriers(scratch) {
			// The handle stays with this process even if its number is given away.
			stray, err := os.FindProcess(pid)
			if err == nil && carries(pid, scratch) {
				found = stray.Kill() == nil || found
			}
		}
		if !found {
			return
		}
	}
}

// carriers lists the processes of a call, by the environment they inherited. One
// that has ended and was not yet awaited has none.
func carriers(scratch string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() && carries(pid, scratch) {
			found = append(found, pid)
		}
	}
	return found
}

// stayed counts the processes of a call that are still there after some time. What a
// signal to the group has ended, as it ended the leader, may take a moment to go.
func stayed(scratch string, limit time.Duration) int {
	for end := time.Now().Add(limit); ; {
		left := len(carriers(scratch))
		if left == 0 || !time.Now().Before(end) {
			return left
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func carries(pid int, scratch string) bool {
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && bytes.Contains(append(environ, 0), []byte("LOOM_SCRATCH="+scratch+"\x00"))
}
