package work

import (
	"context"
	"sync"
	"time"

	"loom/app/loom"
)

// limiter keeps each tenant to the workers it was assigned and the process to its
// capacity. Limits change at any time: a smaller one takes no slot from anybody,
// it acts at the next slot.
type limiter struct {
	mu       sync.Mutex
	capacity int
	used     int
	tenants  map[loom.TenantID]*tenantSlots
	// turn holds the tenants in the order in which they get the next free slot of
	// the process.
	turn   []loom.TenantID
	closed chan struct{}
}

type tenantSlots struct {
	limit, used int
	waiting     []chan struct{}
	// spare is how many of those who wait others could run sooner; -1 as long as
	// nobody knows.
	spare int
}

func newLimiter(capacity int) *limiter {
	return &limiter{capacity: capacity, tenants: map[loom.TenantID]*tenantSlots{}, closed: make(chan struct{})}
}

func (l *limiter) tenant(t loom.TenantID) *tenantSlots {
	s := l.tenants[t]
	if s == nil {
		s = &tenantSlots{spare: -1}
		l.tenants[t] = s
		l.turn = append(l.turn, t)
	}
	return s
}

// set makes limits the workers of each tenant, none for who is not named, and
// reports whether a tenant now has workers that had none, or the other way round.
func (l *limiter) set(limits map[loom.TenantID]int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := false
	for t, n := range limits {
		s := l.tenant(t)
		changed = changed || (s.limit == 0) != (n == 0)
		s.limit = n
	}
	for t, s := range l.tenants {
		if _, ok := limits[t]; !ok {
			changed = changed || s.limit != 0
			s.limit = 0
		}
	}
	l.grant()
	return changed
}

// limit is how many workers a tenant has here.
func (l *limiter) limit(t loom.TenantID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.tenants[t]; s != nil {
		return s.limit
	}
	return 0
}

// load is how many slots of the process are taken.
func (l *limiter) load() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// slots returns the slots that are taken, those assigned to all tenants, and the
// capacity of the process.
func (l *limiter) slots() (used, assigned, capacity int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.tenants {
		assigned += s.limit
	}
	return l.used, assigned, l.capacity
}

// waitingTenants are the tenants for whose slots somebody waits.
func (l *limiter) waitingTenants() []loom.TenantID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var tenants []loom.TenantID
	for t, s := range l.tenants {
		if len(s.waiting) > 0 {
			tenants = append(tenants, t)
		}
	}
	return tenants
}

// spare says how many workers of each crowded tenant are free in other processes:
// so many of those who wait are given back for them, twice over since not every one
// is taken by whom it is meant for.
func (l *limiter) spare(free map[loom.TenantID]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, s := range l.tenants {
		s.spare = 2 * free[t]
	}
}

// giveUp reports whether one who has waited for long enough makes way: where
// others could take the work at once, nobody knows, or there is nothing to wait for.
func (l *limiter) giveUp(t loom.TenantID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.tenants[t]
	if s.spare > 0 {
		s.spare--
		return true
	}
	return s.spare < 0 || s.limit == 0
}

// acquire takes a slot for a tenant and reports whether there was one. It waits
// for a time, and for another as long as nobody else has a free worker for the
// tenant: giving work back and taking it again costs the database much and helps
// nobody then. The caller releases the slot.
func (l *limiter) acquire(ctx context.Context, t loom.TenantID, wait, longest time.Duration) bool {
	l.mu.Lock()
	s := l.tenant(t)
	select {
	case <-l.closed:
		l.mu.Unlock()
		return false
	default:
	}
	ready := make(chan struct{})
	s.waiting = append(s.waiting, ready)
	l.grant()
	l.mu.Unlock()

	select {
	case <-ready: // most of the time at once
		return true
	default:
	}
	began := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case <-ready:
			return true
		case <-timer.C:
			if waiting = time.Since(began) < longest && !l.giveUp(t); waiting {
				timer.Reset(wait)
			}
		case <-l.closed:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range s.waiting {
		if w == ready {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return false
		}
	}
	select {
	case <-ready: // granted in the same moment
		return true
	default: // turned away by close
		return false
	}
}

// release returns a slot back.
func (l *limiter) release(t loom.TenantID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tenants[t].used--
	l.used--
	l.grant()
}

// close turns away all who wait and all who come: the process takes nothing new.
// It is called once.
func (l *limiter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.closed)
	for _, s := range l.tenants {
		s.waiting = nil
	}
}

// grant hands free slots out, one tenant after the other.
func (l *limiter) grant() {
	for granted := true; granted && l.used < l.capacity; {
		granted = false
		for i, t := range l.turn {
			s := l.tenants[t]
			if len(s.waiting) == 0 || s.used >= s.limit {
				continue
			}
			close(s.waiting[0])
			s.waiting = s.waiting[1:]
			s.used++
			l.used++
			l.turn = append(append(l.turn[:i:i], l.turn[i+1:]...), t)
			granted = true
			break
		}
	}
}
