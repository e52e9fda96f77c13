// Package places bounds how many of something costly a process does at once, and keeps
// one tenant from holding up the others: searches for a layout, archives that are looked
// through.
//
// It must not know what is done.
package places

import (
	"context"
	"slices"
	"sync"

	"loom/app/loom"
)

// Places are so many, of which a tenant holds all but one at most.
type Places struct {
	all     int
	mu      sync.Mutex
	taken   int
	held    map[loom.TenantID]int
	waiting []*waiter // the longest first
}

type waiter struct {
	tenant loom.TenantID
	turn   chan struct{} // closed once it has a place
}

// New returns places, two or more.
func New(all int) *Places {
	return &Places{all: all, held: map[loom.TenantID]int{}}
}

// Take waits for a place until ctx ends. It reports whether there is one, which Give
// gives back.
func (p *Places) Take(ctx context.Context, tenant loom.TenantID) bool {
	w := &waiter{tenant: tenant, turn: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.seat()
	p.mu.Unlock()
	select {
	case <-w.turn:
		return true
	default:
	}
	select {
	case <-w.turn:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.waiting, w)
	if at < 0 {
		return true // it came at the same moment
	}
	p.waiting = slices.Delete(p.waiting, at, at+1)
	return false
}

// Give gives a place back.
func (p *Places) Give(tenant loom.TenantID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	p.seat()
}

// seat gives places to those that wait longest and may have one.
func (p *Places) seat() {
	p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool {
		if p.taken >= p.all || p.held[w.tenant] >= p.all-1 {
			return false
		}
		p.taken++
		p.held[w.tenant]++
		close(w.turn)
		return true
	})
}
