package remote

import (
	"context"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Conn is an authenticated connection to one machine. It may be used by
// several goroutines; at most MaxSessions commands run on it at once, further
// ones wait.
type Conn struct {
	target  Target
	hostKey ssh.PublicKey
	// certified says that an authority vouched for hostKey.
	certified bool
	// via is the connection to the jump host it goes by; usually nil.
	via   *Conn
	ssh   ssh.Conn
	slots chan struct{}
	// killAfter is KillAfter, shorter in tests.
	killAfter time.Duration
	// grace is closeGrace, shorter in tests.
	grace time.Duration

	// interval is KeepaliveInterval, shorter in tests.
	interval time.Duration

	mu sync.Mutex
	// users counts the commands on it, and the connections to other machines that go through
	// it; unused ends when the last one does.
	users  int
	unused chan struct{}

	done chan struct{}
	once sync.Once
}

func newConn(t Target, s *sshConn, check *hostKeyCheck, keepalive time.Duration) *Conn {
	if keepalive == 0 {
		keepalive = KeepaliveInterval
	}
	c := &Conn{target: t, hostKey: check.key(), certified: check.vouched(), via: s.via, ssh: s.client,
		slots: make(chan struct{}, MaxSessions), killAfter: KillAfter, grace: closeGrace, interval: keepalive, done: make(chan struct{})}
	go c.serve(s)
	return c
}

// serve refuses what the machine asks for until the connection ends.
func (c *Conn) serve(s *sshConn) {
	defer c.once.Do(func() { close(c.done) })
	for {
		select {
		case request, open := <-s.requests:
			if !open {
				return
			}
			if request.WantReply {
				_ = request.Reply(false, nil)
			}
		case channel, open := <-s.channels:
			if !open {
				return
			}
			_ = channel.Reject(ssh.Prohibited, "this client accepts no channels")
		}
	}
}

// User returns the name logged in with.
func (c *Conn) User() string { return c.target.user() }

// Target returns what the connection was made from.
func (c *Conn) Target() Target { return c.target }

// HostKeys returns the key the machine showed, by short type in base64. When none
// was recorded this is the key learned.
func (c *Conn) HostKeys() map[string]string {
	kind, encoded := EncodeHostKey(c.hostKey)
	return map[string]string{kind: encoded}
}

// Certified reports whether one of the target's HostCAs vouched for the host key.
func (c *Conn) Certified() bool { return c.certified }

// Close ends the connection and with it every command on it. It may be called
// more than once.
func (c *Conn) Close() error {
	err := c.ssh.Close()
	c.once.Do(func() { close(c.done) })
	return err
}

func (c *Conn) closed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Alive asks the machine for a sign of life and reports whether one came within
// the limit.
func (c *Conn) Alive(ctx context.Context, limit time.Duration) bool {
	if c.closed() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case err := <-c.ask():
		return err == nil
	case <-c.done:
	case <-ctx.Done():
	}
	return false
}

// ask sends a keepalive; the answer, a refusal included, is a sign of life.
func (c *Conn) ask() <-chan error {
	answer := make(chan error, 1)
	go func() {
		_, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil)
		answer <- err
	}()
	return answer
}

// use sends keepalives until release is called. While nobody uses the connection it asks
// nothing: whoever uses it next asks first.
func (c *Conn) use() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users++; c.users == 1 {
		c.unused = make(chan struct{})
		go c.keepalive(c.unused)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.users--; c.users == 0 {
			close(c.unused)
		}
	}
}

// keepalive closes the connection after KeepaliveMisses intervals without any
// answer; what runs on it ends with ErrLost then.
func (c *Conn) keepalive(unused <-chan struct{}) {
	ticker := time.NewTicker(c.interval)
	defer ticker.Stop()
	var answer <-chan error
	missed := 0
	for {
		select {
		case <-c.done:
			return
		case <-unused:
			return
		case err := <-answer:
			answer, missed = nil, 0
			if err != nil {
				_ = c.Close()
				return
			}
		case <-ticker.C:
			if answer == nil {
				answer = c.ask()
				continue
			}
			if missed++; missed >= KeepaliveMisses {
				_ = c.Close()
				return
			}
		}
	}
}
