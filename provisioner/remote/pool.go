package remote

import (
	"context"
	"errors"
	"sync"
	"time"
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

	mu     sync.Mutex
	places map[string]*place
	closed bool
	// jumps marks the pool of connections to jump hosts, which a Dialer owns.
	jumps bool
}

// place is the slot of one node. turn is held while deciding and dialling, so
// that two tasks of a node never dial side by side.
type place struct {
	turn    chan struct{}
	waiting int
	held    *held
	timer   *time.Timer
}

// held is a connection and those who use it.
type held struct {
	conn     *Conn
	identity string
	users    int
	dropped  bool
}

// NewPool makes a pool with a Dialer of its own. Close it at the end.
func NewPool() *Pool {
	return &Pool{dialer: &Dialer{}, idle: IdleTimeout, alive: aliveWithin, places: map[string]*place{}}
}

// Dialer returns the dialer whose limits the pool keeps to.
func (p *Pool) Dialer() *Dialer { return p.dialer }

// Conn returns the node's kept connection, or dials. A kept one is used only if
// address, user and credentials are the same, the host key is among the
// recorded ones and the machine answers. release gives it back; it may be
// called more than once, and the connection must not be used afterwards.
func (p *Pool) Conn(ctx context.Context, t Target) (conn *Conn, release func(), err error) {
	slot, err := p.take(ctx, t.place())
	if err != nil {
		return nil, nil, err
	}
	defer p.leave(t.place(), slot)
	h := p.kept(slot, t)
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
		h = &held{conn: conn, identity: t.identity()}
	}
	return p.lend(slot, h, t)
}

// take waits for the turn at a place.
func (p *Pool) take(ctx context.Context, name string) (*place, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrPoolClosed
	}
	slot := p.places[name]
	if slot == nil {
		slot = &place{turn: make(chan struct{}, 1)}
		p.places[name] = slot
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

func (p *Pool) leave(name string, slot *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-slot.turn
	slot.waiting--
	p.forget(name, slot)
}

// forget drops a place that holds nothing; the lock is held.
func (p *Pool) forget(name string, slot *place) {
	if slot.waiting == 0 && slot.held == nil && p.places[name] == slot {
		delete(p.places, name)
	}
}

// kept returns the place's connection if it fits the target and takes it out of
// the idle clock; one that does not fit is dropped.
func (p *Pool) kept(slot *place, t Target) *held {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := slot.held
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
func (s *place) drop() {
	s.stopTimer()
	if s.held == nil {
		return
	}
	s.held.dropped = true
	if s.held.users == 0 {
		go s.held.conn.Close()
	}
	s.held = nil
}

func (s *place) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

func (p *Pool) lend(slot *place, h *held, t Target) (*Conn, func(), error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = h.conn.Close()
		return nil, nil, ErrPoolClosed
	}
	slot.held = h
	h.users++
	var once sync.Once
	return h.conn, func() { once.Do(func() { p.release(t.place(), slot, h) }) }, nil
}

func (p *Pool) release(name string, slot *place, h *held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.users--; h.users > 0 {
		return
	}
	switch {
	case h.dropped || p.closed:
		go h.conn.Close()
	case h.conn.closed():
		slot.drop()
		p.forget(name, slot)
	default:
		slot.stopTimer()
		slot.timer = time.AfterFunc(p.idle, func() { p.expire(name, slot, h) })
	}
}

func (p *Pool) expire(name string, slot *place, h *held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case slot.held != h || h.users > 0:
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
	if slot := p.places[t.place()]; slot != nil {
		slot.drop()
		p.forget(t.place(), slot)
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
	for name, slot := range p.places {
		if slot.held != nil {
			_ = slot.held.conn.Close()
		}
		slot.drop()
		delete(p.places, name)
	}
	return nil
}
