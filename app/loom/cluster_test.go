package loom_test

import (
	"testing"
	"time"

	"loom/app/loom"
)

// TestLeaseSoon: one is warned in the last fifth of a lease, at least 15 minutes and at most 48
// hours before its end.
func TestLeaseSoon(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ lease, warning time.Duration }{
		{30 * time.Minute, 15 * time.Minute}, {10 * time.Hour, 2 * time.Hour}, {30 * 24 * time.Hour, loom.MostLeaseWarning},
	} {
		end := created.Add(c.lease)
		if loom.LeaseSoon(created, end, end.Add(-c.warning)) || !loom.LeaseSoon(created, end, end.Add(time.Second-c.warning)) || !loom.LeaseSoon(created, end, end.Add(time.Hour)) {
			t.Errorf("a lease of %s warns otherwise than %s before its end", c.lease, c.warning)
		}
	}
	if loom.LeaseSoon(created, time.Time{}, created) {
		t.Error("no end is soon")
	}
}
