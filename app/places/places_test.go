package places

import (
	"context"
	"slices"
	"testing"

	"loom/app/loom"
)

// TestPlaces: a tenant holds all places but one, whoever waits longest comes
// first, and who stops waiting takes no place.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := New(3)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, step := range []struct {
		tenant loom.TenantID
		placed bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if got := p.Take(over, step.tenant); got != step.placed {
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
			if p.Take(t.Context(), tenant) {
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
		p.Give(gives)
		order = append(order, <-came)
	}
	if want := []loom.TenantID{"c", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("places went to %v, want %v", order, want)
	}
	p.Give("a")
	p.Give("a")
	p.Give("b")
	if p.taken != 0 || len(p.held) != 0 {
		t.Errorf("%d places are taken, by %v, once all were given back", p.taken, p.held)
	}
}

// TestTwoPlaces: a tenant has one place of two, and who gives up leaves none behind.
func TestTwoPlaces(t *testing.T) {
	t.Parallel()
	p := New(2)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if !p.Take(t.Context(), "a") || p.Take(gone, "a") {
		t.Error("a tenant has not one place")
	}
	if !p.Take(t.Context(), "b") || p.Take(gone, "c") {
		t.Error("there are not two places")
	}
	p.Give("a")
	if !p.Take(t.Context(), "c") {
		t.Error("what was given back is not there")
	}
	p.Give("b")
	p.Give("c")
	if !p.Take(t.Context(), "a") {
		t.Error("no place is left behind")
	}
	p.Give("a")
}
