package remote

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
)

// Dialer opens connections and keeps to MaxHandshakes unauthenticated ones per
// host. The zero value is ready to use; share one per process.
type Dialer struct {
	// Dialed is told what came of each Dial that tried to connect, one of Outcomes,
	// for metrics; nil tells nobody. It is set before the first Dial.
	Dialed func(outcome string)
	// keepalive is KeepaliveInterval when 0; shorter in tests.
	keepalive time.Duration

	mu    sync.Mutex
	hosts map[string]*hostGate
	// jumps are the connections to jump hosts; nil until there is one.
	jumps *Pool
}

// hostGate counts the handshakes of one host; it goes when nobody uses it.
type hostGate struct {
	slots chan struct{}
	users int
}

// enter waits for a handshake slot of the host; leave gives it back.
func (d *Dialer) enter(ctx context.Context, host string) (leave func(), err error) {
	d.mu.Lock()
	if d.hosts == nil {
		d.hosts = map[string]*hostGate{}
	}
	gate := d.hosts[host]
	if gate == nil {
		gate = &hostGate{slots: make(chan struct{}, MaxHandshakes)}
		d.hosts[host] = gate
	}
	gate.users++
	d.mu.Unlock()
	forget := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if gate.users--; gate.users == 0 {
			delete(d.hosts, host)
		}
	}
	select {
	case gate.slots <- struct{}{}:
		return func() { <-gate.slots; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}

// Dial connects, verifies the host key and logs in. A connection that the
// server resets before authentication is tried again, since servers do that
// when many connect at once. Errors are of kind ErrUnreachable, ErrAuth,
// ErrHostKeyChanged, ErrHostCert, ErrJump, ErrRefused or ErrCredentials, or the cause of ctx,
// which also ends the dialling at once. Trouble with a jump host has the kind it
// has there and names it.
func (d *Dialer) Dial(ctx context.Context, t Target) (conn *Conn, err error) {
	methods, err := t.methods()
	if err != nil {
		return nil, err
	}
	names, err := algorithms(t)
	if err != nil {
		return nil, err
	}
	if d.Dialed != nil {
		defer func() { d.Dialed(outcome(err)) }()
	}
	for try := 1; ; try++ {
		check := &hostKeyCheck{target: t}
		config := &ssh.ClientConfig{User: t.user(), Auth: methods, HostKeyAlgorithms: names, HostKeyCallback: check.callback}
		if t.Legacy {
			allowLegacy(config)
		}
		done, err := d.handshake(ctx, t, config)
		if err == nil {
			return newConn(t, done, check, d.keepalive), nil
		}
		var way *wayError // tried often enough already
		onWay := errors.As(err, &way)
		err = dialError(ctx, t, check, err)
		if onWay || try > resetRetries || !isReset(err) {
			return nil, err
		}
		pause := time.Duration(try*try) * 25 * time.Millisecond
		if !pauseFor(ctx, pause+rand.N(pause)) {
			return nil, context.Cause(ctx)
		}
	}
}

// Dial is Dialer.Dial without limits shared with other calls.
func Dial(ctx context.Context, t Target) (*Conn, error) { return new(Dialer).Dial(ctx, t) }

// Outcomes are what can come of dialling, in the words of metrics.
var Outcomes = []string{"ok", "unreachable", "refused", "host_key", "other"}

func outcome(err error) string {
	switch {
	case err == nil:
		return Outcomes[0]
	case errors.Is(err, ErrUnreachable):
		return Outcomes[1]
	case errors.Is(err, ErrAuth):
		return Outcomes[2]
	case errors.Is(err, ErrHostKeyChanged):
		return Outcomes[3]
	}
	return Outcomes[4]
}

// sshConn is a connection whose handshake is done.
type sshConn struct {
	client   ssh.Conn
	channels <-chan ssh.NewChannel
	requests <-chan *ssh.Request
	via      *Conn
}

// handshake opens one TCP connection and runs the handshake on it under a
// deadline of its own: the library alone would wait forever for a silent peer.
func (d *Dialer) handshake(ctx context.Context, t Target, config *ssh.ClientConfig) (*sshConn, error) {
	leave, err := d.enter(ctx, t.HostPort()+t.way())
	if err != nil {
		return nil, err
	}
	defer leave()
	socket, via, err := d.connect(ctx, t)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	_ = socket.SetDeadline(time.Now().Add(HandshakeTimeout))
	client, channels, requests, err := ssh.NewClientConn(socket, t.HostPort(), config)
	if err == nil && !stop() {
		_ = client.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		_ = socket.Close()
		return nil, err
	}
	_ = socket.SetDeadline(time.Time{})
	return &sshConn{client, channels, requests, via}, nil
}

// dialError returns the trouble of a handshake its kind.
func dialError(ctx context.Context, t Target, check *hostKeyCheck, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var way *wayError
	if errors.As(err, &way) {
		return way.trouble
	}
	var refused *loom.RefusedAddress
	if errors.As(err, &refused) {
		return fail(ErrRefused, nil, "no SSH connection to %s: %s", t.HostPort(), refused.Tell(ctx, t.Address))
	}
	var negotiation *ssh.AlgorithmNegotiationError
	if errors.As(err, &negotiation) {
		// A server that offers none of the recorded types has got other keys.
		// An old machine's RSA key is the same one, but signs in a way that is not allowed.
		old := t.HostKeys["rsa"] != "" && slices.Contains(negotiation.RequestedAlgorithms, ssh.KeyAlgoRSA)
		if len(t.HostKeys) > 0 && !old && strings.Contains(negotiation.What, "host key") {
			return hostKeyChanged(t.Address)
		}
		return fail(ErrUnreachable, err, "%s and Loom share no SSH algorithm; for an old machine set the provider field legacy_ssh_algorithms", t.HostPort())
	}
	if refusal := check.refused(); refusal != nil {
		return refusal
	}
	if check.key() != nil && (strings.Contains(err.Error(), "unable to authenticate") || strings.Contains(err.Error(), "authentication failures")) {
		return fail(ErrAuth, nil, "SSH authentication failed for %s@%s", t.user(), t.Address)
	}
	return fail(ErrUnreachable, err, "no SSH connection to %s%s", t.HostPort(), t.way())
}

func isReset(err error) bool {
	return errors.Is(err, ErrUnreachable) && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF))
}

// pauseFor waits; false means that ctx ended first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// allowLegacy adds what servers of a decade ago need.
func allowLegacy(config *ssh.ClientConfig) {
	safe, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	config.KeyExchanges = append(safe.KeyExchanges, old.KeyExchanges...)
	config.Ciphers = append(safe.Ciphers, old.Ciphers...)
	config.MACs = append(safe.MACs, old.MACs...)
}

// WaitBanner connects until a server greets with an SSH banner, and returns an
// error of kind ErrUnreachable when the limit passes first, ErrRefused at once, or that
// of a jump host that will never let it through. Local machines answer within milliseconds,
// others boot for minutes, so it asks often at first and every 2 s later.
func (d *Dialer) WaitBanner(ctx context.Context, t Target, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	for {
		err := d.banner(waiting, t)
		if err == nil {
			return nil
		}
		var way *wayError
		if errors.As(err, &way) && !errors.Is(err, ErrUnreachable) {
			return way.trouble
		}
		var refused *loom.RefusedAddress
		if errors.As(err, &refused) {
			return fail(ErrRefused, nil, "no SSH connection to %s: %s", t.HostPort(), refused.Tell(ctx, t.Address))
		}
		pause := min(max(15*time.Millisecond, time.Since(begin)/10), 2*time.Second)
		if !pauseFor(waiting, pause) {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return fail(ErrUnreachable, err, "no SSH server answered at %s%s within %d s", t.HostPort(), t.way(), int(limit.Seconds()))
		}
	}
}

func (d *Dialer) banner(ctx context.Context, t Target) error {
	leave, err := d.enter(ctx, t.HostPort()+t.way())
	if err != nil {
		return err
	}
	defer leave()
	socket, _, err := d.connect(ctx, t)
	if err != nil {
		return err
	}
	defer socket.Close()
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	_ = socket.SetDeadline(time.Now().Add(ConnectTimeout))
	greeting := make([]byte, 4)
	if _, err := io.ReadFull(socket, greeting); err != nil {
		return err
	}
	if string(greeting) != "SSH-" {
		return errors.New("what answers is no SSH server")
	}
	return nil
}
