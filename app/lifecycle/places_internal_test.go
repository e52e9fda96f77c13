package lifecycle

import (
	"context"
	"slices"
	"testing"
	"time"

	"loom/app/loom"
)

// TestSearchesAtOnce: a tenant holds all places but one, whoever waits longest comes
// first, and who stops waiting takes no place.
func TestSearchesAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlaces(3)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, step := range []struct {
		tenant loom.TenantID
		placed bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if got := p.take(over, step.tenant); got != step.placed {
			t.Fatalf("a place for %s: %v, want %v; taken are %v", step.tenant, got, step.placed, p.held)
		}
	}
	if len(p.waiting) != 0 {
		t.Fatalf("%d wait still", len(p.waiting))
	}
	// Of those that wait, a may not have the place that b gives back.
	came := make(chan loom.TenantID)
	for n, tenant := range []loom.TenantID{"a", "c", "b"} {
		go func() {
			if p.take(t.Context(), tenant) {
				came <- tenant
			}
		}()
		for waits := false; !waits; {
			p.mu.Lock()
			waits = len(p.waiting) == n+1
			p.mu.Unlock()
		}
	}
	var order []loom.TenantID
	for _, gives := range []loom.TenantID{"b", "a", "c"} {
		p.give(gives)
		order = append(order, <-came)
	}
	if want := []loom.TenantID{"c", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("places went to %v, want %v", order, want)
	}
	p.give("a")
	p.give("a")
	p.give("b")
	if p.taken != 0 || len(p.held) != 0 {
		t.Errorf("%d places are taken, by %v, once all were given back", p.taken, p.held)
	}
}

// TestSearchEndsWithoutAPlace: a search that gets no place begins with its time over,
// and gives none back.
func TestSearchEndsWithoutAPlace(t *testing.T) {
	t.Parallel()
	u := &Clusters{opts: Options{Solved: func(took time.Duration) {}}, searching: newPlaces(2)}
	first, over := u.solving(t.Context(), "a", time.Hour)
	if first.Err() != nil {
		t.Fatal(first.Err())
	}
	second, end := u.solving(t.Context(), "a", time.Nanosecond)
	if second.Err() == nil {
		t.Error("a search began without a place")
	}
	end()
	end()
	if u.searching.taken != 1 {
		t.Errorf("%d places are taken, want that of the first", u.searching.taken)
	}
	over()
	over()
	if u.searching.taken != 0 {
		t.Errorf("%d places are taken once the searches are over", u.searching.taken)
	}
}
