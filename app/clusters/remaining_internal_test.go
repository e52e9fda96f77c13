package clusters

import (
	"testing"
	"time"

	"loom/app/loom"
)

// What waits to be tried again is waited for; work for all workers goes on meanwhile.
func TestRemainingCountsThePause(t *testing.T) {
	t.Parallel()
	now := time.Now()
	groups := []TaskGroup{
		{Level: 1, Action: loom.ActionCreate, Status: loom.TaskComplete, Count: 4},
		{Level: 2, Action: loom.ActionConfirm, Status: loom.TaskReady, Count: 2, Again: 1},
		{Level: 3, Action: loom.ActionStart, Status: loom.TaskBlocked, Count: 2},
	}
	usual := func(*TaskGroup) (time.Duration, bool) { return 2 * time.Second, true }
	for _, c := range []struct {
		workers     int
		pause, want time.Duration
	}{{4, 0, 4 * time.Second}, {4, 30 * time.Second, 34 * time.Second}, {4, -time.Minute, 4 * time.Second}, {1, time.Second, 8 * time.Second}} {
		if d, known := remaining(groups, c.workers, now, c.pause, usual); !known || d != c.want {
			t.Errorf("%d workers, pause %s: %s (%v), want %s", c.workers, c.pause, d, known, c.want)
		}
	}
}
