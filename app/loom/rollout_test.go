package loom_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	night := loom.Window{Days: []string{"fri"}, From: "22:00", To: "04:00"}
	noon := loom.Window{From: "12:00", To: "13:30"}
	for name, c := range map[string]struct {
		windows   []loom.Window
		zone      string
		now, want string
	}{
		"no window":                   {nil, "", "2026-11-29T08:00:00Z", "2026-11-29T08:00:00Z"},
		"inside":                      {[]loom.Window{noon}, "", "2026-11-29T12:00:00Z", "2026-11-29T12:00:00Z"},
		"its end is outside":          {[]loom.Window{noon}, "", "2026-11-29T13:30:00Z", "2026-11-30T12:00:00Z"},
		"in another zone":             {[]loom.Window{noon}, "Europe/Berlin", "2026-11-29T11:30:00Z", "2026-11-29T11:30:00Z"},
		"before, in another zone":     {[]loom.Window{noon}, "Europe/Berlin", "2026-11-29T10:30:00Z", "2026-11-29T11:00:00Z"},
		"past midnight":               {[]loom.Window{night}, "", "2026-11-28T03:59:00Z", "2026-11-28T03:59:00Z"},
		"after midnight of other day": {[]loom.Window{night}, "", "2026-11-27T03:00:00Z", "2026-11-27T22:00:00Z"},
		"next week":                   {[]loom.Window{night}, "", "2026-11-28T04:00:00Z", "2026-12-04T22:00:00Z"},
		"the earliest of several":     {[]loom.Window{night, noon}, "", "2026-11-28T04:00:00Z", "2026-11-28T12:00:00Z"},
		"the whole day":               {[]loom.Window{{From: "00:00", To: "00:00"}}, "", "2026-11-28T23:59:00Z", "2026-11-28T23:59:00Z"},
		"clocks change meanwhile":     {[]loom.Window{{From: "12:00", To: "13:00"}}, "Europe/Berlin", "2026-10-24T22:30:00Z", "2026-10-25T11:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := loom.DefaultRolloutSettings()
			s.Windows, s.Timezone = c.windows, c.zone
			if errs := s.Check(); len(errs) > 0 {
				t.Fatal(errs)
			}
			now, _ := time.Parse(time.RFC3339, c.now)
			if got := s.Opens(now).UTC().Format(time.RFC3339); got != c.want {
				t.Errorf("opens at %s, want %s", got, c.want)
			}
		})
	}
}

func TestCheckRolloutSettings(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(s *loom.RolloutSettings){
		"settings.concurrency": func(s *loom.RolloutSettings) { s.Concurrency = 101 },
		"settings.maxFailed":   func(s *loom.RolloutSettings) { s.MaxFailed = -1 },
		"settings.pause":       func(s *loom.RolloutSettings) { s.Pause = -1 },
		"settings.changed":     func(s *loom.RolloutSettings) { s.Changed = "" },
		"settings.timezone":    func(s *loom.RolloutSettings) { s.Timezone = "Local" },
		"settings.windows":     func(s *loom.RolloutSettings) { s.Windows = make([]loom.Window, 21) },
		"settings.windows[0].days": func(s *loom.RolloutSettings) {
			s.Windows = []loom.Window{{Days: []string{"Monday"}, From: "01:00", To: "02:00"}}
		},
		"settings.windows[0].from":  func(s *loom.RolloutSettings) { s.Windows = []loom.Window{{From: "25:00", To: "02:00"}} },
		"settings.windows[0].to":    func(s *loom.RolloutSettings) { s.Windows = []loom.Window{{From: "01:00"}} },
		"nothing is wrong, so none": func(*loom.RolloutSettings) {},
	} {
		s := loom.DefaultRolloutSettings()
		change(&s)
		errs := s.Check()
		if none := !strings.Contains(field, "."); none != (len(errs) == 0) || !none && errs[0].Field != field {
			t.Errorf("%s: %v", field, errs)
		}
	}
}

// TestDivideWaves: every cluster is in one wave, waves have no gaps, and the smallest clusters
// come first.
func TestDivideWaves(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		clusters := make([]loom.RolloutCluster, r.IntN(60))
		found := map[int]map[loom.ClusterID]bool{}
		for i := range clusters {
			clusters[i] = loom.RolloutCluster{Cluster: loom.ClusterID(i + 1), Nodes: r.IntN(5)}
		}
		var waves []loom.Wave
		for i := range r.IntN(5) {
			n, q := 1+r.IntN(20), "x"
			switch r.IntN(4) {
			case 0:
				waves = append(waves, loom.Wave{Count: &n})
			case 1:
				waves = append(waves, loom.Wave{Percent: &n})
			case 2:
				waves, found[i] = append(waves, loom.Wave{Q: &q}), map[loom.ClusterID]bool{3: true, 7: true}
			case 3:
				waves = append(waves, loom.Wave{Clusters: []loom.ClusterID{2, 3, 99}})
			}
		}
		if errs := loom.CheckWaves(waves); len(errs) > 0 {
			t.Fatal(errs)
		}
		loom.DivideWaves(waves, clusters, found)
		seen := map[loom.ClusterID]bool{}
		for i, c := range clusters {
			if seen[c.Cluster] || c.Wave < 1 || c.Place != i+1 {
				t.Fatalf("%+v", c)
			}
			seen[c.Cluster] = true
			if i == 0 {
				continue
			}
			switch before := clusters[i-1]; {
			case c.Wave < before.Wave || c.Wave > before.Wave+1:
				t.Fatalf("wave %d follows wave %d", c.Wave, before.Wave)
			case c.Wave == before.Wave && c.Nodes < before.Nodes:
				t.Fatalf("a cluster of %d nodes comes after one of %d", c.Nodes, before.Nodes)
			}
		}
	}
}

func TestDefaultWaves(t *testing.T) {
	t.Parallel()
	clusters := make([]loom.RolloutCluster, 30)
	for i := range clusters {
		clusters[i] = loom.RolloutCluster{Cluster: loom.ClusterID(i + 1), Nodes: 30 - i}
	}
	loom.DivideWaves(loom.DefaultWaves(), clusters, nil)
	sizes := map[int]int{}
	for _, c := range clusters {
		sizes[c.Wave]++
	}
	if got := fmt.Sprint(sizes); got != "map[1:1 2:3 3:26]" || clusters[0].Cluster != 30 {
		t.Errorf("%s, cluster %d first", got, clusters[0].Cluster)
	}
}

func TestCheckWaves(t *testing.T) {
	t.Parallel()
	zero, n, q := 0, 101, ""
	for field, w := range map[string]loom.Wave{
		"waves[0]": {}, "waves[0].count": {Count: &zero}, "waves[0].percent": {Percent: &n},
	} {
		if errs := loom.CheckWaves([]loom.Wave{w}); len(errs) != 1 || errs[0].Field != field {
			t.Errorf("%s: %v", field, errs)
		}
	}
	if errs := loom.CheckWaves([]loom.Wave{{Rest: true, Q: &q}}); len(errs) != 1 {
		t.Error("two members of one wave are accepted")
	}
	if errs := loom.CheckWaves(make([]loom.Wave, 51)); len(errs) != 1 || errs[0].Field != "waves" {
		t.Error(errs)
	}
}
