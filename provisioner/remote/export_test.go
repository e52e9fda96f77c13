package remote

import "time"

// SetKillAfter shortens the time between TERM and KILL for a test.
func (c *Conn) SetKillAfter(d time.Duration) { c.killAfter = d }

// SetGrace shortens how long a machine has to confirm the end of a session.
func (c *Conn) SetGrace(d time.Duration) { c.grace = d }

// SetIdle shortens the idle time of a pool for a test.
func (p *Pool) SetIdle(d time.Duration) { p.idle = d }

// SetMost sets how many connections a pool keeps that nobody uses.
func (p *Pool) SetMost(n int) { p.most = n }

// SetAlive shortens how long a kept connection may take to answer.
func (p *Pool) SetAlive(d time.Duration) { p.alive = d }

// SetKeepalive shortens the time between two keepalives for a test.
func (d *Dialer) SetKeepalive(interval time.Duration) { d.keepalive = interval }

// Done is closed when the connection is gone.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Len is the number of connections kept or in use.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, slot := range p.slots {
		if slot.pooled != nil {
			n++
		}
	}
	return n
}
