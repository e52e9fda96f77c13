package remote

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"loom/app/loom"
)

// aliveWithin is how long a kept connection has to give a sign of life before
// it is used again.
const aliveWithin = 5 * time.Second

// ErrPoolClosed is returned after Pool.Close.
var ErrPoolClosed = errors.New("connection pool is closed")

// Pool keeps one connection per node for the node's next tasks. A task on a
// kept connection takes a few milliseconds, on a new one about a hundred.
type Pool struct {
	dialer *Dialer
	// idle is IdleTimeout, shorter in tests.
	idle time.Duration
	// alive is aliveWithin, shorter in tests.
	alive time.Duration
	// most is MaxKept, or less.
	most int

	mu     sync.Mutex
	slots  map[string]*nodeSlot
	closed bool
	// jumps marks the pool of connections to jump hosts, which a Dialer owns.
	jumps bool
}

// nodeSlot is the slot of one node. turn is held while deciding and dialling, so
// that two tasks of a node never dial side by side.
type nodeSlot struct {
	turn    chan struct{}
	waiting int
	pooled  *pooledConn
	timer   *time.Timer
}

// pooledConn is a connection and those who use it.
type pooledConn struct {
	conn     *Conn
	identity string
	users    int
	dropped  bool
}

// NewPool makes a pool with a Dialer of its own. Close it at the end.
func NewPool() *Pool { return newPool(&Dialer{}) }

func newPool(d *Dialer) *Pool {
	return &Pool{dialer: d, idle: IdleTimeout, alive: aliveWithin, most: maxKept(), slots: map[string]*nodeSlot{}}
}

// maxKept is MaxKept, or half of the files that the process may open.
func maxKept() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return MaxKept
	}
	return int(min(MaxKept, files.Cur/2))
}

// Dialer returns the dialer whose limits the pool keeps to.
func (p *Pool) Dialer() *Dialer { return p.dialer }

// Conn returns the node's kept connection, or dials. A kept one is used only if
// address, user and credentials are the same, the host key is among the
// recorded ones and the machine answers. release gives it back; it may be
// called more than once, and the connection must not be used afterwards.
func (p *Pool) Conn(ctx context.Context, t Target) (conn *Conn, release func(), err error) {
	slot, err := p.take(ctx, t.slotKey())
	if err != nil {
		return nil, nil, err
	}
	defer p.leave(t.slotKey(), slot)
	h := p.reusable(slot, t)
	if h != nil && !h.conn.Alive(ctx, p.alive) {
		p.mu.Lock()
		slot.drop()
		p.mu.Unlock()
		go h.conn.Close()
		h = nil
	}
	if h == nil {
		conn, err := p.dialer.Dial(ctx, t)
		if err != nil {
			return nil, nil, err
		}
		h = &pooledConn{conn: conn, identity: t.identity()}
	}
	return p.lend(slot, h, t)
}

// Alive asks the machine of a node for a sign of life on the connection that is kept for it,
// which lives on then; kept is false where there is none. A connection without one within the
// limit is dropped.
func (p *Pool) Alive(ctx context.Context, node loom.NodeID, limit time.Duration) (alive, kept bool) {
	name := Target{Node: node}.slotKey()
	p.mu.Lock()
	slot := p.slots[name]
	if slot == nil || slot.pooled == nil || slot.pooled.conn.closed() {
		p.mu.Unlock()
		return false, false
	}
	h := slot.pooled
	slot.stopTimer()
	h.users++
	p.mu.Unlock()
	alive = h.conn.Alive(ctx, limit)
	p.mu.Lock()
	if !alive && ctx.Err() == nil && slot.pooled == h {
		slot.drop()
	}
	p.mu.Unlock()
	p.release(name, slot, h)
	return alive, true
}

// take waits for the turn at a slot.
func (p *Pool) take(ctx context.Context, name string) (*nodeSlot, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrPoolClosed
	}
	slot := p.slots[name]
	if slot == nil {
		slot = &nodeSlot{turn: make(chan struct{}, 1)}
		p.slots[name] = slot
	}
	slot.waiting++
	p.mu.Unlock()
	select {
	case slot.turn <- struct{}{}:
		return slot, nil
	case <-ctx.Done():
		p.mu.Lock()
		slot.waiting--
		p.forget(name, slot)
		p.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

func (p *Pool) leave(name string, slot *nodeSlot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-slot.turn
	slot.waiting--
	p.forget(name, slot)
}

// forget drops a slot without a connection; the lock is held.
func (p *Pool) forget(name string, slot *nodeSlot) {
	if slot.waiting == 0 && slot.pooled == nil && p.slots[name] == slot {
		delete(p.slots, name)
	}
}

// reusable returns the connection of the slot if it fits the target and takes it out of
// the idle clock; one that does not fit is dropped.
func (p *Pool) reusable(slot *nodeSlot, t Target) *pooledConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := slot.pooled
	if h == nil {
		return nil
	}
	slot.stopTimer()
	if !h.conn.closed() && h.identity == t.identity() && (len(t.HostKeys) == 0 || h.conn.certified || matches(t.HostKeys, h.conn.hostKey)) {
		return h
	}
	slot.drop()
	return nil
}

// drop forgets the connection. It is closed at once if nobody uses it, else by
// the last one to release it.
func (s *nodeSlot) drop() {
	s.stopTimer()
	if s.pooled == nil {
		return
	}
	s.pooled.dropped = true
	if s.pooled.users == 0 {
		go s.pooled.conn.Close()
	}
	s.pooled = nil
}

func (s *nodeSlot) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

func (p *Pool) lend(slot *nodeSlot, h *pooledConn, t Target) (*Conn, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = h.conn.Close()
		return nil, nil, ErrPoolClosed
	}
	slot.pooled = h
	h.users++
	var once sync.Once
	return h.conn, func() { once.Do(func() { p.release(t.slotKey(), slot, h) }) }, nil
}

func (p *Pool) release(name string, slot *nodeSlot, h *pooledConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.users--; h.users > 0 {
		return
	}
	switch {
	case h.dropped || p.closed:
		go h.conn.Close()
	case h.conn.closed(), len(p.slots) > p.most:
		slot.drop()
		p.forget(name, slot)
	default:
		slot.stopTimer()
		slot.timer = time.AfterFunc(p.idle, func() { p.expire(name, slot, h) })
	}
}

func (p *Pool) expire(name string, slot *nodeSlot, h *pooledConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case slot.pooled != h || h.users > 0:
	case slot.waiting > 0: // somebody is about to take it, or gave up waiting
		slot.timer = time.AfterFunc(p.idle, func() { p.expire(name, slot, h) })
	default:
		slot.drop()
		p.forget(name, slot)
	}
}

// Forget closes the kept connection of a node that is gone.
func (p *Pool) Forget(t Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slot := p.slots[t.slotKey()]; slot != nil {
		slot.drop()
		p.forget(t.slotKey(), slot)
	}
}

// Close closes every connection and refuses further ones.
func (p *Pool) Close() error {
	if !p.jumps {
		defer p.dialer.closeJumps()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for name, slot := range p.slots {
		if slot.pooled != nil {
			_ = slot.pooled.conn.Close()
		}
		slot.drop()
		delete(p.slots, name)
	}
	return nil
}
