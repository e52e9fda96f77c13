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

// Places bounds how many costly things are done at once, and how many of them for one tenant
// and for one of its users.
type Places struct {
	all, each, one int64
	mu             sync.Mutex
	taken          int64
	held           map[loom.TenantID]int64
	users          map[loom.Account]int64
	waiting        []*waiter // the longest first
}

type waiter struct {
	who    loom.Account
	places int64
	turn   chan struct{} // closed once it has them
}

// New returns that many places, two or more; a tenant holds all but one at most.
func New(all int) *Places { return newPlaces(int64(all), int64(all)-1, int64(all)-1) }

// NewFor returns that many places, and says how many of them a tenant holds at most.
func NewFor(all, each int) *Places { return newPlaces(int64(all), int64(each), int64(each)) }

// newPlaces returns all places; a tenant holds each of them at most, a user one.
func newPlaces(all, each, one int64) *Places {
	return &Places{all: all, each: each, one: one, held: map[loom.TenantID]int64{}, users: map[loom.Account]int64{}}
}

// Take waits for a place until ctx ends. It reports whether there is one, which Give
// gives back.
func (p *Places) Take(ctx context.Context, tenant loom.TenantID) bool {
	return p.take(ctx, loom.Account{Tenant: tenant}, 1)
}

// Try takes a place that is free for a tenant now, and reports whether there is one.
func (p *Places) Try(tenant loom.TenantID) bool {
	now, stop := context.WithCancel(context.Background())
	stop()
	return p.take(now, loom.Account{Tenant: tenant}, 1)
}

// Give returns a place back.
func (p *Places) Give(tenant loom.TenantID) { p.give(loom.Account{Tenant: tenant}, 1) }

// take is Take for a user and several places at once, at most as many as he holds.
func (p *Places) take(ctx context.Context, who loom.Account, places int64) bool {
	w := &waiter{who: who, places: places, turn: make(chan struct{})}
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

func (p *Places) give(who loom.Account, places int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= places
	if p.held[who.Tenant] -= places; p.held[who.Tenant] == 0 {
		delete(p.held, who.Tenant)
	}
	if p.users[who] -= places; p.users[who] == 0 {
		delete(p.users, who)
	}
	p.seat()
}

// seat gives places to those that wait longest and may have them. Who needs more than are
// left keeps those behind waiting: few small ones after the other would keep him out.
func (p *Places) seat() {
	full := false
	p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool {
		if full || p.held[w.who.Tenant]+w.places > p.each || p.users[w.who]+w.places > p.one {
			return false
		}
		if full = p.taken+w.places > p.all; full {
			return false
		}
		p.taken += w.places
		p.held[w.who.Tenant] += w.places
		p.users[w.who] += w.places
		close(w.turn)
		return true
	})
}
