package clusters

import (
	"context"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/places"
)

// TestSearchEndsWithoutAPlace: a search that gets no place begins with its time over,
// and gives none back.
func TestSearchEndsWithoutAPlace(t *testing.T) {
	t.Parallel()
	u := &Clusters{opts: Options{Solved: func(took time.Duration) {}}, searching: places.New(2)}
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
	if free := freePlaces(t, u); free != 1 {
		t.Errorf("%d places of two are free, want all but that of the first", free)
	}
	over()
	over()
	if free := freePlaces(t, u); free != 2 {
		t.Errorf("%d places of two are free once the searches are over", free)
	}
}

// freePlaces counts the places that tenants who have none could take.
func freePlaces(t *testing.T, u *Clusters) (free int) {
	t.Helper()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tenant := range []loom.TenantID{"x", "y", "z"} {
		if u.searching.Take(over, tenant) {
			free++
			defer u.searching.Give(tenant)
		}
	}
	return free
}
