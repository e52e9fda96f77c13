// Package places bounds how much of something costly a process does at once, and keeps
// one tenant from holding up the others: searches for a layout, archives that are looked
// through, memory of what is read and answered.
//
// It must not know what is done.
package places

import (
	"context"
	"slices"
	"sync"

	"loom/app/loom"
)

// Places bounds how many costly things are done at once, and how many of them for one tenant.
type Places struct {
	all, each int64
	mu        sync.Mutex
	taken     int64
	held      map[loom.TenantID]int64
	waiting   []*waiter // the longest first
}

type waiter struct {
	tenant loom.TenantID
	places int64
	turn   chan struct{} // closed once it has them
}

// New returns that many places, two or more; a tenant holds all but one at most.
func New(all int) *Places { return newPlaces(int64(all), int64(all)-1) }

// NewFor returns that many places, and says how many of them a tenant holds at most.
func NewFor(all, each int) *Places { return newPlaces(int64(all), int64(each)) }

func newPlaces(all, each int64) *Places {
	return &Places{all: all, each: each, held: map[loom.TenantID]int64{}}
}

// Take waits for a place until ctx ends. It reports whether there is one, which Give
// gives back.
func (p *Places) Take(ctx context.Context, tenant loom.TenantID) bool { return p.take(ctx, tenant, 1) }

// Try takes a place that is free for a tenant now, and reports whether there is one.
func (p *Places) Try(tenant loom.TenantID) bool {
	now, stop := context.WithCancel(context.Background())
	stop()
	return p.take(now, tenant, 1)
}

// Give gives a place back.
func (p *Places) Give(tenant loom.TenantID) { p.give(tenant, 1) }

// take is Take for several places at once, at most as many as a tenant holds.
func (p *Places) take(ctx context.Context, tenant loom.TenantID, places int64) bool {
	w := &waiter{tenant: tenant, places: places, turn: make(chan struct{})}
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

func (p *Places) give(tenant loom.TenantID, places int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= places
	if p.held[tenant] -= places; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	p.seat()
}

// seat gives places to those that wait longest and may have them. Who needs more than are
// left keeps those behind waiting: few small ones after the other would keep him out.
func (p *Places) seat() {
	full := false
	p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool {
		if full || p.held[w.tenant]+w.places > p.each {
			return false
		}
		if full = p.taken+w.places > p.all; full {
			return false
		}
		p.taken += w.places
		p.held[w.tenant] += w.places
		close(w.turn)
		return true
	})
}
