package adminview_test

import (
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
	"loom/views/adminview"
)

// TestRolloutLeavesOutEmptyWaves: a wave whose clusters all got another turn in a later one is not shown.
func TestRolloutLeavesOutEmptyWaves(t *testing.T) {
	t.Parallel()
	m := adminview.RolloutModel{Now: now, RolloutView: clusters.RolloutView{Rollout: loom.Rollout{Number: 7, Status: loom.RolloutRunning, Wave: 2, Waves: 3},
		Counts: []store.RolloutCount{{Wave: 2, Status: loom.RolloutDone, Clusters: 2}, {Wave: 3, Status: loom.RolloutWaits, Clusters: 1}}}}
	var page strings.Builder
	if err := adminview.Rollout(m).Render(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	for title, shown := range map[string]bool{"Wave 1": false, "Wave 2": true, "Wave 3": true} {
		if strings.Contains(page.String(), title) != shown {
			t.Errorf("%s is shown: %v", title, !shown)
		}
	}
}
