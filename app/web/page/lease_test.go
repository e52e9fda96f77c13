package page

import (
	"testing"
)

// TestParseLease: common spellings of a duration mean the same.
func TestParseLease(t *testing.T) {
	t.Parallel()
	const minute, hour, day = 60_000, 3_600_000, 86_400_000
	for text, want := range map[string]int64{
		"7d": 7 * day, "12h": 12 * hour, "1d 6h 30m": 30*hour + 30*minute, "2 hours": 2 * hour, "2h": 2 * hour, "90 min": 90 * minute,
		"1 day": day, "1 Day 6 hrs": 30 * hour, "2 weeks": 14 * day, "45 secs": 45_000, "0": 0,
	} {
		if got, ok := ParseLease(text); !ok || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "soon", "2", "2 months", "h", "2 hs5", "-1d", "1.5h", "2h 3", "99999999999d"} {
		if got, ok := ParseLease(text); ok {
			t.Errorf("%q passed as %d", text, got)
		}
	}
}
