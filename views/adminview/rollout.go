package adminview

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

// RolloutModel is a rollout with some clusters of each wave.
type RolloutModel struct {
	clusters.RolloutView
	Heads []loom.RolloutCluster
	Now   time.Time
	// Confirm is the number of machines that is typed before the start, 0 for none; Errors say
	// what was wrong with it.
	Confirm int
	Errors  ui.FormErrors
}

var rolloutStates = map[loom.RolloutStatus]ui.State{
	loom.RolloutReady:    {Word: "Ready", Icon: "circle", Tone: ui.ToneIdle},
	loom.RolloutRunning:  {Word: "Running", Icon: "ring", Tone: ui.ToneRun},
	loom.RolloutStopped:  {Word: "Stopped", Icon: "pause", Tone: ui.ToneWarn},
	loom.RolloutComplete: {Word: "Complete", Icon: "check-circle", Tone: ui.ToneOK},
	loom.RolloutAborted:  {Word: "Aborted", Icon: "ban", Tone: ui.ToneIdle},
}

// RolloutState shows the status of a rollout.
func RolloutState(s loom.RolloutStatus) ui.State { return rolloutStates[s] }

var rolloutClusterStates = map[loom.RolloutClusterStatus]ui.State{
	loom.RolloutWaits:   {Word: "Waiting", Icon: "circle", Tone: ui.ToneIdle},
	loom.RolloutRuns:    {Word: "Running", Icon: "ring", Tone: ui.ToneRun},
	loom.RolloutDone:    {Word: "Done", Icon: "check-circle", Tone: ui.ToneOK},
	loom.RolloutFailed:  {Word: "Failed", Icon: "error", Tone: ui.ToneBad},
	loom.RolloutUndone:  {Word: "Undone", Icon: "back", Tone: ui.ToneWarn},
	loom.RolloutSkipped: {Word: "Skipped", Icon: "ban", Tone: ui.ToneIdle},
}

// RolloutClusterState shows the status of a cluster of a rollout.
func RolloutClusterState(s loom.RolloutClusterStatus) ui.State { return rolloutClusterStates[s] }

// count counts the clusters of a wave with one of the statuses.
func (m *RolloutModel) count(wave int, statuses ...loom.RolloutClusterStatus) (n int) {
	for _, c := range m.Counts {
		for _, s := range statuses {
			if c.Wave == wave && c.Status == s {
				n += c.Clusters
			}
		}
	}
	return n
}

func (m *RolloutModel) all(wave int) int { return m.count(wave, loom.RolloutClusterStatuses...) }

func (m *RolloutModel) bar(wave int) ui.SegmentsModel {
	return ui.SegmentsModel{ID: "wave-" + strconv.Itoa(wave), Complete: m.count(wave, loom.RolloutDone), CompleteWord: "done", Running: m.count(wave, loom.RolloutRuns),
		Failed: m.count(wave, loom.RolloutFailed, loom.RolloutUndone), Skipped: m.count(wave, loom.RolloutSkipped), Rest: m.count(wave, loom.RolloutWaits)}
}

func (m *RolloutModel) headsOf(wave int) (heads []loom.RolloutCluster) {
	for _, c := range m.Heads {
		if c.Wave == wave {
			heads = append(heads, c)
		}
	}
	return heads
}

// rolloutHref is where a cluster of the rollout is looked at: its operation, once there is one.
func rolloutHref(c loom.RolloutCluster) templ.SafeURL {
	if c.Operation > 0 {
		return templ.URL(route.Operation(loom.OperationRef{Cluster: c.Cluster, Number: c.Operation}))
	}
	return templ.URL(route.Cluster(c.Cluster))
}

// waveTitle is "Wave 2".
func waveTitle(wave int) string {
	if wave == 0 {
		return "Left out"
	}
	return "Wave " + strconv.Itoa(wave)
}

// waveNumbers are the waves in their order, 0 for clusters that are left out last. One whose clusters
// all get their turn in a later wave is left out.
func (m *RolloutModel) waveNumbers() []int {
	var waves []int
	for wave := 1; wave <= m.Waves; wave++ {
		if m.all(wave) > 0 {
			waves = append(waves, wave)
		}
	}
	if m.all(0) > 0 {
		waves = append(waves, 0)
	}
	return waves
}

// changed reports whether the rollout began any operation.
func (m *RolloutModel) changed() bool {
	return m.Clusters(loom.RolloutDone, loom.RolloutFailed, loom.RolloutUndone) > 0
}

// why is what the rollout waits for or why it stopped, which a time follows where it ends by itself.
func (m *RolloutModel) why() string {
	if m.Until.IsZero() {
		return m.Why
	}
	return strings.TrimSuffix(m.Why, ".") + ","
}

// facts are what is to be known of the whole rollout.
func (m *RolloutModel) facts() []ui.Def {
	s := m.Settings
	pause := "none"
	switch {
	case s.Confirm:
		pause = "until somebody continues"
	case s.Pause > 0:
		pause = ui.Duration(time.Duration(s.Pause) * time.Second)
	}
	facts := []ui.Def{{Term: "Effect", Text: m.Effects()}}
	if m.Asked.Q != "" {
		facts = append(facts, ui.Def{Term: "Clusters", Text: m.Asked.Q, Mono: true})
	}
	facts = append(facts, ui.Def{Term: "At the same time", Text: strconv.Itoa(s.Concurrency)}, ui.Def{Term: "May fail", Text: strconv.Itoa(s.MaxFailed)}, ui.Def{Term: "Pause", Text: pause})
	for _, w := range s.Windows {
		days := "every day"
		if len(w.Days) > 0 {
			days = strings.Join(w.Days, ", ")
		}
		facts = append(facts, ui.Def{Term: "Window", Text: days + " " + w.From + "–" + w.To + " " + cmp.Or(s.Timezone, "UTC")})
	}
	by := m.CreatedBy
	if m.StartedBy != "" {
		by = m.StartedBy
	}
	return append(facts, ui.Def{Term: "By", Text: string(by)})
}
