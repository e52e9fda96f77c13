package work

import (
	"testing"

	"loom/app/loom"
)

// TestLimiterLends: something may begin at once on slots that nobody waits for, and
// on no others.
func TestLimiterLends(t *testing.T) {
	t.Parallel()
	type side struct{ limit, used, waiting int }
	for name, c := range map[string]struct {
		capacity   int
		a, b       side
		ending     int // of a
		kept, free int
	}{
		"nobody waits, nothing is free":      {10, side{5, 5, 0}, side{5, 0, 0}, 3, 3, 0},
		"nobody waits, some are free":        {10, side{5, 3, 0}, side{5, 0, 0}, 2, 2, 2},
		"the process is full":                {6, side{5, 3, 0}, side{5, 3, 0}, 2, 2, 0},
		"some of the tenant wait":            {10, side{5, 5, 2}, side{5, 0, 0}, 3, 1, 0},
		"more of the tenant wait than end":   {10, side{5, 5, 9}, side{5, 0, 0}, 3, 0, 0},
		"the limit fell":                     {10, side{2, 5, 0}, side{5, 0, 0}, 4, 1, 0},
		"the limit is gone":                  {10, side{0, 5, 0}, side{5, 0, 0}, 5, 0, 0},
		"others wait for a slot of the host": {6, side{5, 5, 0}, side{5, 1, 2}, 4, 2, 0},
		"others wait, at their own limit":    {6, side{5, 4, 0}, side{1, 1, 7}, 4, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimiter(c.capacity)
			for tenant, s := range map[loom.TenantID]side{"a": c.a, "b": c.b} {
				slots := l.tenant(tenant)
				slots.limit, slots.used = s.limit, s.used
				l.used += s.used
				for range s.waiting {
					slots.waiting = append(slots.waiting, make(chan struct{}))
				}
			}
			before := l.used
			lent := l.lend(map[loom.TenantID]int{"a": c.ending})
			if got := lent["a"]; got != (loan{c.kept, c.free}) || len(lent) > 1 {
				t.Fatalf("lent %+v, want %d kept and %d free", lent, c.kept, c.free)
			}
			if l.used != before+c.free || l.used > max(c.capacity, before) {
				t.Errorf("%d slots are taken after %d", l.used, before)
			}
			l.giveBack("a", c.free)
			if c.b.waiting == 0 && l.used != before {
				t.Errorf("%d slots are taken after all, want %d", l.used, before)
			}
		})
	}
}

func TestClosedLimiterLendsNothing(t *testing.T) {
	t.Parallel()
	l := newLimiter(4)
	l.set(map[loom.TenantID]int{"a": 4})
	l.close()
	if lent := l.lend(map[loom.TenantID]int{"a": 2}); len(lent) != 0 {
		t.Errorf("a process that ends lends %+v", lent)
	}
}
