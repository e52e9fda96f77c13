package remote

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
)

// DefaultTail is how much of each stream an Outcome keeps, in bytes.
const DefaultTail = 16 << 10

// After a command's exit its streams are read on until they end, or, since a
// daemon it started may hold them open forever, until they were quiet for a
// while.
const (
	drainQuiet = time.Second
	drainLimit = 10 * time.Second
)

// closeGrace is how long a machine has to confirm the end of a session. One that does
// not loses the whole connection, else it would hold the task for good.
const closeGrace = 5 * time.Second

// Command is a shell text to run on a machine.
type Command struct {
	// Text is run by sh, as one script.
	Text string
	// Root runs it as root, through sudo for other users.
	Root bool
	// Dir is the current directory, the user's home when empty.
	Dir string
	// Env is added to the environment. Values are visible to root of the machine
	// in the process list while the command starts: no secrets here.
	Env map[string]string
	// Stdin is sent to the command; nil means an empty one.
	Stdin io.Reader
	// Line takes every line of output as it comes, from one goroutine at a time;
	// stream is "stdout" or "stderr". May be nil.
	Line func(stream, text string)
	// Pty asks for a terminal; only the change of sudo's settings needs one.
	Pty bool
	// Tail is the number of bytes of each stream that the Outcome keeps,
	// DefaultTail when 0.
	Tail int
}

// Outcome is how a command ended.
type Outcome struct {
	// Code is the exit status; -1 when the command ended otherwise.
	Code int
	// Signal that ended it, such as "KILL"; usually empty.
	Signal string
	// Stdout and Stderr are the ends of the two streams.
	Stdout, Stderr string
}

// OK reports whether the command exited with 0.
func (o Outcome) OK() bool { return o.Code == 0 && o.Signal == "" }

// Exec runs a command and returns when it has ended. The error is nil when the
// command exited with a status, whatever the status; else it is of kind
// ErrSignal, ErrLost or ErrSudo, or the cause of ctx. When ctx ends, the
// command's process group gets TERM and, KillAfter later, KILL.
func (c *Conn) Exec(ctx context.Context, cmd Command) (Outcome, error) {
	none := Outcome{Code: -1}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-c.done:
		return none, fail(ErrLost, nil, "SSH connection to %s lost", c.target.Address)
	}
	run := &run{conn: c, cmd: cmd, mark: nonce(), group: make(chan int, 1), gone: make(chan struct{}), release: c.use()}
	defer run.giveBack()
	if err := context.Cause(ctx); err != nil {
		close(run.gone)
		return none, err
	}
	return run.do(ctx)
}

// run is one command on its way.
type run struct {
	conn *Conn
	cmd  Command
	// mark begins the line on stderr by which the command tells its process
	// group, which cancelling needs.
	mark  string
	group chan int
	// gone is closed when the server has closed the session, which it counts
	// until then.
	gone chan struct{}
	// release ends the use of the connection.
	release func()
	// last marks the command that stops another; it is not stopped in turn.
	last bool

	mu     sync.Mutex
	active time.Time
}

// giveBack frees the slot of the session once the server counts it no more.
func (r *run) giveBack() {
	free := func() {
		r.release()
		<-r.conn.slots
	}
	select {
	case <-r.gone:
		free()
	default:
		go func() {
			select {
			case <-r.gone:
			case <-r.conn.done:
			case <-time.After(ConnectTimeout):
			}
			free()
		}()
	}
}

type ending struct {
	code   int
	signal string
	known  bool
}

func (r *run) do(ctx context.Context) (Outcome, error) {
	none := Outcome{Code: -1}
	channel, requests, err := r.open(ctx)
	if err != nil {
		close(r.gone)
		return none, err
	}
	ended := make(chan ending, 1)
	go func() {
		ended <- await(requests)
		ssh.DiscardRequests(requests)
		close(r.gone)
	}()
	if err := r.begin(ctx, channel); err != nil {
		return none, err
	}
	size := r.cmd.Tail
	if size == 0 {
		size = DefaultTail
	}
	var lines sync.Mutex
	outTail, errTail := &tail{limit: size}, &tail{limit: size}
	out := &lineWriter{emit: func(s string) { r.line(&lines, "stdout", s) }, tail: outTail}
	errs := &lineWriter{emit: func(s string) { r.line(&lines, "stderr", s) }, tail: errTail}
	marked := errs
	if r.cmd.Pty { // a terminal has one stream
		marked = out
	}
	marked.mark, marked.group = r.mark, r.group
	drained := make(chan struct{})
	var streams sync.WaitGroup
	streams.Go(func() { r.pump(out, channel) })
	streams.Go(func() { r.pump(errs, channel.Stderr()) })
	go func() { streams.Wait(); close(drained) }()
	go func() {
		if r.cmd.Stdin != nil {
			_, _ = io.Copy(channel, r.cmd.Stdin)
		}
		_ = channel.CloseWrite()
	}()

	var end ending
	var cause error
	select {
	case end = <-ended:
	case <-ctx.Done():
		cause = context.Cause(ctx)
		end = r.stop(ended)
	}
	if cause == nil {
		r.drain(ctx, drained, end.known)
	} else {
		r.drain(context.WithoutCancel(ctx), drained, end.known)
	}
	r.shut(channel, drained)
	<-drained // the end of the session, or of the connection, ended both readers
	outcome := Outcome{Code: -1, Signal: end.signal, Stdout: outTail.String(), Stderr: errTail.String()}
	if end.known && end.signal == "" {
		outcome.Code = end.code
	}
	switch {
	case cause != nil:
		return outcome, cause
	case !end.known:
		return outcome, fail(ErrLost, nil, "SSH connection to %s lost while a command ran", r.conn.target.Address)
	case end.signal != "":
		return outcome, fail(ErrSignal, nil, "command ended by signal %s", end.signal)
	case outcome.Code == 1 && r.sudo() && !marked.marked && strings.Contains(outcome.Stdout+outcome.Stderr, "sudo"):
		return outcome, fail(ErrSudo, nil, "user %s needs passwordless sudo on %s", r.conn.User(), r.conn.target.Address)
	}
	return outcome, nil
}

// begin starts the command. When ctx ends, the machine has closeGrace to answer: a
// command that has begun is stopped like any other. One that stops another has no more
// time at all.
func (r *run) begin(ctx context.Context, channel ssh.Channel) error {
	if r.last {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		ctx = gone
	}
	started := make(chan error, 1)
	go func() { started <- r.start(channel) }()
	var err error
	select {
	case err = <-started:
	case <-ctx.Done():
		limit := time.NewTimer(r.conn.grace)
		defer limit.Stop()
		select {
		case err = <-started:
		case <-limit.C:
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		r.shut(channel, nil)
	}
	return err
}

// shut closes the session, and the connection when the machine does not confirm that in
// time. It waits for that unless done is closed. Sending waits for a machine that does
// not read, too.
func (r *run) shut(channel ssh.Channel, done <-chan struct{}) {
	go channel.Close()
	limit := time.NewTimer(r.conn.grace)
	defer limit.Stop()
	select {
	case <-done:
	case <-r.gone:
	case <-r.conn.done:
	case <-limit.C:
		_ = r.conn.Close()
	}
}

func (r *run) sudo() bool { return r.cmd.Root && r.conn.User() != "root" }

func (r *run) pump(w io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			r.mu.Lock()
			r.active = time.Now()
			r.mu.Unlock()
			_, _ = w.Write(buffer[:n])
		}
		if err != nil {
			if closer, ok := w.(io.Closer); ok {
				_ = closer.Close()
			}
			return
		}
	}
}

func (r *run) line(mu *sync.Mutex, stream, text string) {
	if r.cmd.Line == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	r.cmd.Line(stream, text)
}

// drain waits for the streams' end, or for quiet when the command has exited
// and something else holds them open, until ctx ends.
func (r *run) drain(ctx context.Context, drained <-chan struct{}, exited bool) {
	if !exited {
		return
	}
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	begin := time.Now()
	for {
		r.mu.Lock()
		quietSince := begin
		if r.active.After(begin) {
			quietSince = r.active
		}
		r.mu.Unlock()
		left := drainQuiet - time.Since(quietSince)
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-drained:
			timer.Stop()
			return
		case <-limit.C:
			timer.Stop()
			return
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// stop ends a cancelled command: TERM to its process group, KILL to what is left
// of the group a while later. It returns what the server then says, if anything.
func (r *run) stop(ended <-chan ending) ending {
	if r.last {
		return ending{}
	}
	var group int
	select {
	case group = <-r.group:
	case end := <-ended:
		return end
	case <-r.conn.done:
		return ending{}
	case <-time.After(time.Second):
		// The command has not even begun; closing the channel is all there is.
		return ending{}
	}
	limit := r.conn.killAfter
	ctx, cancel := context.WithTimeout(context.Background(), limit+r.conn.grace)
	defer cancel()
	tries := int(limit / (100 * time.Millisecond))
	text := fmt.Sprintf(`kill -s TERM -- -%[1]d || kill -s TERM %[1]d
i=0
while [ $i -lt %[2]d ] && kill -s 0 -- -%[1]d; do sleep 0.1; i=$((i+1)); done
kill -s KILL -- -%[1]d || kill -s KILL %[1]d
:`, group, tries)
	// In a session of its own, outside the limit of sessions.
	kill := &run{conn: r.conn, mark: nonce(), group: make(chan int, 1), gone: make(chan struct{}), last: true, cmd: Command{Root: r.cmd.Root, Text: text}}
	_, _ = kill.do(ctx)
	select {
	case end := <-ended:
		return end
	case <-r.conn.done:
	case <-time.After(time.Second):
	}
	return ending{}
}

// Run is Exec for Loom's own commands: any exit status but 0 is an error of
// kind ErrFailed that holds what, the status and the last line of stderr.
func (c *Conn) Run(ctx context.Context, what string, cmd Command) (Outcome, error) {
	outcome, err := c.Exec(ctx, cmd)
	if err != nil || outcome.Code == 0 {
		return outcome, err
	}
	text := what + " exited with " + strconv.Itoa(outcome.Code)
	if last := LastLine(outcome.Stderr); last != "" {
		text += ": " + loom.Short(last)
	}
	return outcome, &Error{Kind: ErrFailed, Text: text}
}
