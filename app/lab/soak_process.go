package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"loom/app/failpoint"
)

// soakSlot is a place for a process of one kind: when it dies, the next one
// starts, as a service manager would do.
type soakSlot struct {
	lane *soakLane
	kind string
	dir  string

	mu    sync.Mutex
	pid   int
	lines []string // the last ones it and those before it said
}

// keptLines is how much of what processes say is kept for a failure.
const keptLines = 60

// run keeps the slot filled until ctx ends. It returns an error when a process
// ends that nobody killed.
func (p *soakSlot) run(ctx context.Context) error {
	for once := true; ctx.Err() == nil; once = false {
		faults := ""
		switch {
		case p.lane.soak.fault != "":
			if once {
				faults = p.lane.soak.fault
			}
		case !p.lane.soak.enough() && !p.lane.calm.Load():
			faults = p.lane.draw.next(p.kind)
		}
		if err := p.one(ctx, faults); err != nil {
			return err
		}
	}
	return nil
}

// one runs one process to its end.
func (p *soakSlot) one(ctx context.Context, faults string) error {
	cmd, output, err := p.lane.command(p.dir, faults, p.kind)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.lane.books.Welcome(cmd.Process.Pid)
	p.mu.Lock()
	p.pid = cmd.Process.Pid
	p.mu.Unlock()
	defer context.AfterFunc(ctx, func() { cmd.Process.Kill() })() //nolint:errcheck // it may have ended
	var thawing sync.WaitGroup
	over := make(chan struct{})
	last := ""
	p.read(output, func(text string) {
		what, struck := strings.CutPrefix(text, "fault: ")
		if !struck {
			return
		}
		last = what
		p.lane.note(p.kind, what)
		if strings.HasSuffix(what, ": "+string(failpoint.Freeze)) {
			thawing.Go(func() { p.thaw(ctx, cmd.Process, over) })
		}
	})
	err = cmd.Wait()
	close(over)
	thawing.Wait()
	p.lane.books.Abandon(cmd.Process.Pid)
	// One that just begins ends when its database is away, and is started again.
	away := p.lane.wasAway() || strings.HasSuffix(last, ": "+string(failpoint.Cut)) || strings.HasSuffix(last, ": "+string(failpoint.Freeze))
	if ctx.Err() != nil || killed(err) || away {
		return nil
	}
	return fmt.Errorf("loom %s ended by itself (%w), last faults %s:\n%s", p.kind, err, faults, p.tail())
}

// thaw lets a frozen process go on when its lease is over and others have its
// work. Some time later what it does counts again: it started again by then.
func (p *soakSlot) thaw(ctx context.Context, process *os.Process, over <-chan struct{}) {
	p.lane.books.Abandon(process.Pid)
	select {
	case <-time.After(2 * p.lane.soak.leased()):
	case <-ctx.Done():
	}
	process.Signal(syscall.SIGCONT) //nolint:errcheck // it may have been killed
	select {
	case <-time.After(2 * p.lane.soak.leased()):
		p.lane.books.Welcome(process.Pid)
	case <-over:
	}
}

// killed reports whether a process ended by kill -9.
func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// read takes what a process says until it ends.
func (p *soakSlot) read(output io.Reader, each func(text string)) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		if len(p.lines) > keptLines {
			p.lines = p.lines[len(p.lines)-keptLines:]
		}
		p.mu.Unlock()
		each(lines.Text())
	}
}

func (p *soakSlot) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// command is this program as another process of the lane, with both its outputs.
func (l *soakLane) command(dir, faults string, args ...string) (*exec.Cmd, io.Reader, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(append([]string{}, l.environ...), "LOOM_DATA_DIR="+dir, failpoint.Variable+"="+faults)
	// Ctrl-C is for this process, which then ends the others.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	output, err := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout
	return cmd, output, err
}
