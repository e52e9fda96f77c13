package remote

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"
)

// openRetries bounds the tries to open a session; with growing pauses they last
// about two seconds.
const openRetries = 9

// open asks for a session. A server may count a session for a moment after it
// has closed it and then refuse one too many; nothing has been started, so
// asking again is safe.
func (r *run) open(ctx context.Context) (ssh.Channel, <-chan *ssh.Request, error) {
	for try := 0; ; try++ {
		channel, requests, err := openChannel(ctx, r.conn.ssh, "session", nil)
		if err == nil {
			return channel, requests, nil
		}
		var refused *ssh.OpenChannelError
		switch {
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case !errors.As(err, &refused):
			return nil, nil, fail(ErrLost, err, "SSH connection to %s lost", r.conn.target.Address)
		case try == openRetries:
			return nil, nil, fail(ErrLost, err, "SSH session on %s refused", r.conn.target.Address)
		}
		if !pauseFor(ctx, 4*time.Millisecond<<try) {
			return nil, nil, context.Cause(ctx)
		}
	}
}

func (r *run) start(channel ssh.Channel) error {
	if r.cmd.Pty {
		request := struct {
			Term                         string
			Columns, Rows, Width, Height uint32
			Modes                        string
		}{Term: "dumb", Columns: 200, Rows: 50, Modes: "\x00"}
		if ok, err := channel.SendRequest("pty-req", true, ssh.Marshal(&request)); err != nil || !ok {
			return fail(ErrLost, err, "%s refused a terminal", r.conn.target.Address)
		}
	}
	command := struct{ Text string }{wrap(r.cmd, r.sudo(), r.mark)}
	if ok, err := channel.SendRequest("exec", true, ssh.Marshal(&command)); err != nil || !ok {
		return fail(ErrLost, err, "%s refused to run a command", r.conn.target.Address)
	}
	return nil
}

// await reads the requests of a channel up to the one that tells how the
// command ended. The library's own Wait would also wait for the streams to end.
func await(requests <-chan *ssh.Request) ending {
	for request := range requests {
		switch request.Type {
		case "exit-status":
			var status struct{ Code uint32 }
			if ssh.Unmarshal(request.Payload, &status) == nil {
				return ending{code: int(status.Code), known: true}
			}
		case "exit-signal":
			return ending{signal: signalName(request.Payload), known: true}
		default:
			if request.WantReply {
				_ = request.Reply(false, nil)
			}
		}
	}
	return ending{}
}

// signalName reads the first string of an exit-signal request.
func signalName(payload []byte) string {
	var first struct {
		Name string
		Rest []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(payload, &first); err != nil || first.Name == "" {
		return "unknown"
	}
	return first.Name
}
