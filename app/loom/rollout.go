package loom

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rollout is a change of many clusters, carried out in waves.
type Rollout struct {
	Row    int64
	Tenant TenantID
	// Number of the rollout in its tenant, from 1.
	Number int
	Kind   ChangeKind
	// Request is the change as it was asked for, JSON of the use case.
	Request  []byte
	Settings RolloutSettings
	// Hash covers the change, the settings, and the waves with what is to be done in each cluster.
	Hash   string
	Status RolloutStatus
	// Why is a sentence why the rollout stopped, or what it waits for; Until is when that ends
	// by itself, zero where it does not.
	Why   string
	Until time.Time
	// Wave is the present one, 0 before the start, of Waves.
	Wave, Waves int
	// WaveEnded is when nothing of the present wave was left to run, zero before.
	WaveEnded time.Time
	// Continued says that somebody lets the next wave begin.
	Continued bool
	// Failures counts the clusters that failed since the start, or since it was resumed.
	Failures int
	// Unaffected is how many clusters the change leaves as they are.
	Unaffected            int
	CreatedBy, StartedBy  UserID
	Created, Started, End time.Time
}

// Topic is that of live updates of the rollout.
func (r *Rollout) Topic() string { return "rollout:" + strconv.Itoa(r.Number) }

// RolloutStatus is how far a rollout is.
type RolloutStatus string

// The statuses of rollouts. A ready one waits for its start; it can stop and go on any number of
// times.
const (
	RolloutReady    RolloutStatus = "ready"
	RolloutRunning  RolloutStatus = "running"
	RolloutStopped  RolloutStatus = "stopped"
	RolloutComplete RolloutStatus = "complete"
	RolloutAborted  RolloutStatus = "aborted"
)

// RolloutStatuses are all statuses of rollouts, in their order.
var RolloutStatuses = []RolloutStatus{RolloutReady, RolloutRunning, RolloutStopped, RolloutComplete, RolloutAborted}

// Open reports whether the rollout may still change clusters.
func (s RolloutStatus) Open() bool { return s == RolloutRunning || s == RolloutStopped }

// Final reports whether the rollout is over.
func (s RolloutStatus) Final() bool { return s == RolloutComplete || s == RolloutAborted }

// RolloutClusterStatus is how far a cluster of a rollout is.
type RolloutClusterStatus string

// The statuses of clusters of a rollout.
const (
	RolloutWaits   RolloutClusterStatus = "waiting"
	RolloutRuns    RolloutClusterStatus = "running"
	RolloutDone    RolloutClusterStatus = "done"
	RolloutFailed  RolloutClusterStatus = "failed"
	RolloutUndone  RolloutClusterStatus = "undone"
	RolloutSkipped RolloutClusterStatus = "skipped"
)

// RolloutClusterStatuses are all statuses of clusters of a rollout, in their order.
var RolloutClusterStatuses = []RolloutClusterStatus{RolloutWaits, RolloutRuns, RolloutDone, RolloutFailed, RolloutUndone, RolloutSkipped}

// RolloutCluster is a cluster of a rollout.
type RolloutCluster struct {
	Cluster ClusterID
	Name    string
	// Wave is that in which its turn comes, 0 for one that is left out; Place orders them all.
	Wave, Place int
	// Effect, Nodes, Replaced and Tasks are what the fleet preview showed, Digest that of the
	// plan.
	Effect          string
	Nodes, Replaced int
	Tasks           map[TaskAction]int
	Digest          string
	Status          RolloutClusterStatus
	// Note is a sentence why it was skipped or failed.
	Note string
	// Operation is the number of the operation that the rollout began, 0 before.
	Operation int
	// Health is that of the cluster when its first operation began.
	Health HealthStatus
	// Tried is when its turn first came, End when it was over; both may be zero.
	Tried, End time.Time
}

// RolloutSettings say how a rollout goes.
type RolloutSettings struct {
	// Concurrency is how many clusters are changed at the same time at most.
	Concurrency int `json:"concurrency"`
	// MaxFailed is how many clusters may fail before the rollout stops.
	MaxFailed int `json:"maxFailed"`
	// Pause is the time between two waves, in seconds.
	Pause int `json:"pause"`
	// Confirm says that each wave but the first waits until somebody continues.
	Confirm bool `json:"confirm"`
	// Windows are when operations may begin, always where there is none; their times are those of
	// Timezone, an IANA name, UTC for "".
	Windows  []Window `json:"windows"`
	Timezone string   `json:"timezone"`
	// Changed is what becomes of clusters whose plan is another by their turn.
	Changed RolloutChanged `json:"changed"`
}

// RolloutChanged is what becomes of clusters whose plan is another by their turn.
type RolloutChanged string

// Such a cluster is skipped, or with replan changed all the same if the effect is no stronger.
const (
	RolloutSkip   RolloutChanged = "skip"
	RolloutReplan RolloutChanged = "replan"
)

// Window is when operations may begin on some days of the week.
type Window struct {
	// Days are "mon" to "sun", every day where there is none.
	Days []string `json:"days"`
	// From and To are times of day, "22:00"; a window whose To is not later ends the next day.
	From string `json:"from"`
	To   string `json:"to"`
}

// DefaultRolloutSettings are those of a rollout for which nobody says anything else.
func DefaultRolloutSettings() RolloutSettings {
	return RolloutSettings{Concurrency: 5, Pause: 600, Changed: RolloutSkip, Windows: []Window{}}
}

// Bounds of rollouts.
const (
	MaxOpenRollouts       = 20 // of a tenant, ready ones included
	MaxWaves              = 50
	MaxRolloutConcurrency = 100
	maxRolloutPause       = 7 * 24 * 60 * 60
	maxWindows            = 20
)

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Check finds what is wrong with settings; names of fields begin with "settings.".
func (s *RolloutSettings) Check() []FieldError {
	var errs []FieldError
	wrong := func(field, format string, args ...any) {
		errs = append(errs, FieldError{"settings." + field, fmt.Sprintf(format, args...)})
	}
	if s.Concurrency < 1 || s.Concurrency > MaxRolloutConcurrency {
		wrong("concurrency", "Give a number from 1 to %d.", MaxRolloutConcurrency)
	}
	if s.MaxFailed < 0 || s.MaxFailed > math.MaxInt32 {
		wrong("maxFailed", "Give a number of 0 or more.")
	}
	if s.Pause < 0 || s.Pause > maxRolloutPause {
		wrong("pause", "Give a number of seconds from 0 to %d.", maxRolloutPause)
	}
	if s.Changed != RolloutSkip && s.Changed != RolloutReplan {
		wrong("changed", "Say “skip” or “replan”.")
	}
	if _, err := s.location(); err != nil {
		wrong("timezone", "There is no time zone “%.60s”. Use an IANA name such as Europe/Berlin.", s.Timezone)
	}
	if len(s.Windows) > maxWindows {
		wrong("windows", "Give at most %d windows.", maxWindows)
	}
	for i, w := range s.Windows {
		field := fmt.Sprintf("windows[%d].", i)
		for _, day := range w.Days {
			if !slices.Contains(weekdays, day) {
				wrong(field+"days", "“%.20s” is no day. Days are mon, tue, wed, thu, fri, sat, and sun.", day)
			}
		}
		if _, ok := timeOfDay(w.From); !ok {
			wrong(field+"from", "Give a time of day such as 22:00.")
		}
		if _, ok := timeOfDay(w.To); !ok {
			wrong(field+"to", "Give a time of day such as 04:00.")
		}
	}
	return errs
}

func (s *RolloutSettings) location() (*time.Location, error) {
	if strings.EqualFold(s.Timezone, "local") { // that of this host is nobody's
		return nil, fmt.Errorf("no time zone %q", s.Timezone)
	}
	return time.LoadLocation(s.Timezone)
}

// timeOfDay reads a time such as 22:00, as the duration since midnight.
func timeOfDay(text string) (time.Duration, bool) {
	t, err := time.Parse("15:04", text)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err == nil
}

// Opens returns when operations may begin, seen from a moment: that moment itself within a
// window, else the beginning of the next. The zero time where the settings are not valid.
func (s *RolloutSettings) Opens(now time.Time) time.Time {
	if len(s.Windows) == 0 {
		return now
	}
	zone, err := s.location()
	if err != nil {
		return time.Time{}
	}
	var next time.Time
	local := now.In(zone)
	for _, w := range s.Windows {
		from, ok1 := timeOfDay(w.From)
		to, ok2 := timeOfDay(w.To)
		if !ok1 || !ok2 {
			continue
		}
		for day := -1; day <= 7; day++ { // that of yesterday may pass midnight
			midnight := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, 0, 0, zone)
			if len(w.Days) > 0 && !slices.Contains(w.Days, weekdays[midnight.Weekday()]) {
				continue
			}
			begin, end := clock(midnight, 0, from), clock(midnight, 0, to)
			if to <= from {
				end = clock(midnight, 1, to)
			}
			switch {
			case !now.Before(begin) && now.Before(end):
				return now
			case begin.After(now) && (next.IsZero() || begin.Before(next)):
				next = begin
			}
		}
	}
	return next
}

// clock is a time of day some days after a midnight, also where clocks change meanwhile.
func clock(midnight time.Time, days int, of time.Duration) time.Time {
	return time.Date(midnight.Year(), midnight.Month(), midnight.Day()+days, int(of.Hours()), int(of.Minutes())%60, 0, 0, midnight.Location())
}

// Wave says which clusters a wave takes of those that no wave before it took. One member is set.
type Wave struct {
	Count    *int        `json:"count,omitempty"`
	Percent  *int        `json:"percent,omitempty"`
	Q        *string     `json:"q,omitempty"`
	Clusters []ClusterID `json:"clusters,omitempty"`
	Rest     bool        `json:"rest,omitempty"`
}

// DefaultWaves are a single cluster, a tenth of all, and the rest.
func DefaultWaves() []Wave {
	one, tenth := 1, 10
	return []Wave{{Count: &one}, {Percent: &tenth}, {Rest: true}}
}

// CheckWaves finds what is wrong with waves.
func CheckWaves(waves []Wave) []FieldError {
	if len(waves) > MaxWaves {
		return []FieldError{{"waves", fmt.Sprintf("Give at most %d waves.", MaxWaves)}}
	}
	var errs []FieldError
	for i, w := range waves {
		field, set := fmt.Sprintf("waves[%d]", i), 0
		for _, is := range []bool{w.Count != nil, w.Percent != nil, w.Q != nil, len(w.Clusters) > 0, w.Rest} {
			if is {
				set++
			}
		}
		switch {
		case set != 1:
			errs = append(errs, FieldError{field, "Give one of count, percent, q, clusters, and rest."})
		case w.Count != nil && *w.Count < 1:
			errs = append(errs, FieldError{field + ".count", "Give a number of 1 or more."})
		case w.Percent != nil && (*w.Percent < 1 || *w.Percent > 100):
			errs = append(errs, FieldError{field + ".percent", "Give a number from 1 to 100."})
		}
	}
	return errs
}

// DivideWaves gives clusters their waves and places: in each wave those with the fewest nodes
// first, then by id. found says which clusters the search of a wave finds, by its index. Waves
// that take no cluster are left out; clusters that no wave takes are in a last one.
func DivideWaves(waves []Wave, clusters []RolloutCluster, found map[int]map[ClusterID]bool) {
	slices.SortFunc(clusters, func(a, b RolloutCluster) int {
		return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.Cluster, b.Cluster))
	})
	all, number := len(clusters), 0
	for i := range clusters {
		clusters[i].Wave = 0
	}
	take := func(most int, is func(c *RolloutCluster) bool) {
		taken := 0
		for i := range clusters {
			if c := &clusters[i]; c.Wave == 0 && taken < most && is(c) {
				c.Wave = number + 1
				taken++
			}
		}
		if taken > 0 {
			number++
		}
	}
	anyone := func(*RolloutCluster) bool { return true }
	for i, w := range slices.Concat(waves, []Wave{{Rest: true}}) {
		switch {
		case w.Count != nil:
			take(*w.Count, anyone)
		case w.Percent != nil:
			take((all**w.Percent+99)/100, anyone)
		case w.Q != nil:
			take(all, func(c *RolloutCluster) bool { return found[i][c.Cluster] })
		case w.Rest:
			take(all, anyone)
		default:
			take(all, func(c *RolloutCluster) bool { return slices.Contains(w.Clusters, c.Cluster) })
		}
	}
	slices.SortStableFunc(clusters, func(a, b RolloutCluster) int { return cmp.Compare(a.Wave, b.Wave) })
	for i := range clusters {
		clusters[i].Place = i + 1
	}
}
