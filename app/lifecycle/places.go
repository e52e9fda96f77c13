package lifecycle

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"loom/app/loom"
)

// places bound how many searches for a layout run at once. A tenant holds all of them
// but one at most, so that another one's search begins.
type places struct {
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

// searches is how many run at once: as many as there are processors, and a few where
// there are hardly any, since one that takes long must not hold up the short ones.
func searches() int { return max(runtime.GOMAXPROCS(0), 4) }

func newPlaces(all int) *places {
	return &places{all: all, held: map[loom.TenantID]int{}}
}

// take waits for a place until ctx ends. It reports whether there is one, which give
// gives back.
func (p *places) take(ctx context.Context, tenant loom.TenantID) bool {
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

func (p *places) give(tenant loom.TenantID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.held[tenant]--; p.held[tenant] == 0 {
		delete(p.held, tenant)
	}
	p.seat()
}

// seat gives places to those that wait longest and may have one.
func (p *places) seat() {
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
