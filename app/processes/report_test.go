package processes_test

import (
	"testing"
	"time"

	"loom/app/processes"
)

// TestNextOf gives hours, days, weeks and months of calendars that are not that of UTC.
func TestNextOf(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02 15:04 -0700"
	for _, c := range []struct{ zone, from, group, want string }{
		{"UTC", "2026-11-22 08:10 +0000", "hour", "2026-11-22 09:00 +0000"},
		{"Asia/Kathmandu", "2026-11-22 08:10 +0545", "hour", "2026-11-22 09:00 +0545"},
		{"Asia/Kathmandu", "2026-11-22 00:00 +0545", "day", "2026-11-23 00:00 +0545"},
		{"Europe/Berlin", "2026-10-25 00:00 +0200", "day", "2026-10-26 00:00 +0100"},
		{"Europe/Berlin", "2026-10-25 02:30 +0200", "hour", "2026-10-25 02:00 +0100"},
		{"Europe/Berlin", "2026-03-29 01:30 +0100", "hour", "2026-03-29 03:00 +0200"},
		{"America/New_York", "2026-11-18 23:00 -0500", "week", "2026-11-23 00:00 -0500"},
		{"America/New_York", "2026-10-31 23:00 -0400", "month", "2026-11-01 00:00 -0400"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.Parse(layout, c.from)
		if err != nil {
			t.Fatal(err)
		}
		if got := processes.NextOf(from.In(zone), c.group).Format(layout); got != c.want {
			t.Errorf("the %s after %s in %s begins %s, want %s", c.group, c.from, c.zone, got, c.want)
		}
	}
}
