package loom

import (
	"strings"
	"testing"
	"time"
)

func TestLeaseStep(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	usual := Settings{LeaseReminderHours: []int{24, 1}}
	grace := Settings{LeaseReminderHours: []int{24, 1}, LeaseGraceHours: 6}
	silent := Settings{LeaseReminderHours: []int{}}
	for _, c := range []struct {
		name     string
		settings Settings
		change   func(e *LeaseEnd)
		at       time.Duration // after the end
		want     LeaseStep
	}{
		{"long before", usual, nil, -25 * time.Hour, LeaseStep{NotReminded, LeaseNothing}},
		{"at the first reminder", usual, nil, -24 * time.Hour, LeaseStep{24, LeaseNothing}},
		{"reminded already", usual, func(e *LeaseEnd) { e.Reminded = 24 }, -2 * time.Hour, LeaseStep{NotReminded, LeaseNothing}},
		{"the second reminder", usual, func(e *LeaseEnd) { e.Reminded = 24 }, -time.Hour, LeaseStep{1, LeaseNothing}},
		{"a short lease gets the nearest one alone", usual, nil, -30 * time.Minute, LeaseStep{1, LeaseNothing}},
		{"after the last one", usual, func(e *LeaseEnd) { e.Reminded = 1 }, -time.Minute, LeaseStep{NotReminded, LeaseNothing}},
		{"no reminders wanted", silent, nil, -time.Minute, LeaseStep{NotReminded, LeaseNothing}},
		{"the end", usual, func(e *LeaseEnd) { e.Reminded = 1 }, 0, LeaseStep{0, LeaseDelete}},
		{"the end without reminders", silent, nil, 0, LeaseStep{0, LeaseDelete}},
		{"told of the end already", usual, func(e *LeaseEnd) { e.Reminded = 0 }, time.Hour, LeaseStep{NotReminded, LeaseDelete}},
		{"not again before its time", usual, func(e *LeaseEnd) { e.Reminded, e.Next = 0, end.Add(time.Hour) }, time.Minute, LeaseStep{NotReminded, LeaseNothing}},
		{"again at its time", usual, func(e *LeaseEnd) { e.Reminded, e.Next = 0, end.Add(time.Hour) }, time.Hour, LeaseStep{NotReminded, LeaseDelete}},
		{"protected", usual, func(e *LeaseEnd) { e.Protected = true }, time.Hour, LeaseStep{0, LeaseNothing}},
		{"protected, in the time of grace", grace, func(e *LeaseEnd) { e.Protected = true }, time.Hour, LeaseStep{0, LeaseNothing}},
		{"pending", usual, func(e *LeaseEnd) { e.Status = ClusterPending }, time.Hour, LeaseStep{0, LeaseNothing}},
		{"kept by a paused operation", usual, func(e *LeaseEnd) { e.Status, e.Holds = ClusterPending, true }, time.Hour, LeaseStep{0, LeaseDelete}},
		{"kept by a paused operation, in the time of grace", grace, func(e *LeaseEnd) { e.Status, e.Holds = ClusterPending, true }, time.Hour, LeaseStep{0, LeaseNothing}},
		{"terminated", usual, func(e *LeaseEnd) { e.Status = ClusterTerminated }, time.Hour, LeaseStep{NotReminded, LeaseNothing}},
		{"for ever", usual, func(e *LeaseEnd) { e.Expires = time.Time{} }, time.Hour, LeaseStep{NotReminded, LeaseNothing}},
		{"incomplete", usual, func(e *LeaseEnd) { e.Status = ClusterIncomplete }, time.Hour, LeaseStep{0, LeaseDelete}},
		{"inconsistent", usual, func(e *LeaseEnd) { e.Status = ClusterInconsistent }, time.Hour, LeaseStep{0, LeaseDelete}},
		{"leftovers are tried elsewhere", usual, func(e *LeaseEnd) { e.Status, e.Left = ClusterIncomplete, true }, time.Hour, LeaseStep{0, LeaseNothing}},
		{"grace begins", grace, nil, 0, LeaseStep{0, LeaseStop}},
		{"grace, stopped", grace, func(e *LeaseEnd) { e.Reminded, e.StoppedFor = 0, end }, time.Hour, LeaseStep{NotReminded, LeaseNothing}},
		{"grace, stopped at an earlier end", grace, func(e *LeaseEnd) { e.Reminded, e.StoppedFor = 0, end.Add(-48*time.Hour) }, time.Hour, LeaseStep{NotReminded, LeaseStop}},
		{"grace, nothing to stop there", grace, func(e *LeaseEnd) { e.Status = ClusterInconsistent }, time.Hour, LeaseStep{0, LeaseNothing}},
		{"grace is over", grace, func(e *LeaseEnd) { e.Reminded, e.StoppedFor = 0, end }, 6 * time.Hour, LeaseStep{NotReminded, LeaseDelete}},
		{"grace is over, never stopped", grace, func(e *LeaseEnd) { e.Status = ClusterInconsistent }, 6 * time.Hour, LeaseStep{0, LeaseDelete}},
	} {
		e := LeaseEnd{Status: ClusterActive, Expires: end, Reminded: NotReminded}
		if c.change != nil {
			c.change(&e)
		}
		if got := c.settings.LeaseStep(e, end.Add(c.at)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestLeaseNotice(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	usual := Settings{LeaseReminderHours: []int{24, 1}}
	grace := Settings{LeaseReminderHours: []int{24, 1}, LeaseGraceHours: 6}
	for _, c := range []struct {
		name     string
		settings Settings
		change   func(e *LeaseEnd)
		stopped  bool
		at       time.Duration
		has      []string // none: there is nothing to say
	}{
		{"long before", usual, nil, false, -25 * time.Hour, nil},
		{"soon", usual, nil, false, -2 * time.Hour, []string{"ends on 1 March 2026 at 12:00 UTC", "is then deleted", "Extend"}},
		{"soon, with grace", grace, nil, false, -2 * time.Hour, []string{"Services then stop", "6 hours later"}},
		{"soon, protected", usual, func(e *LeaseEnd) { e.Protected = true }, false, -2 * time.Hour, []string{"stays", "protected"}},
		{"over, protected", usual, func(e *LeaseEnd) { e.Protected = true }, false, time.Hour, []string{"lease expired", "protected"}},
		{"grace", grace, func(e *LeaseEnd) { e.StoppedFor = end }, true, time.Hour, []string{"services were stopped", "deleted on 1 March 2026 at 18:00 UTC", "Extend"}},
		{"grace, with nothing to stop", grace, nil, false, time.Hour, []string{"The lease expired. The machines"}},
		{"refused", usual, func(e *LeaseEnd) { e.Next, e.Problem = end.Add(time.Hour), "the zone is missing" }, false, time.Minute, []string{"(the zone is missing)", "again on 1 March 2026 at 13:00 UTC"}},
		{"came to nothing", usual, func(e *LeaseEnd) { e.Next = end.Add(time.Hour) }, false, time.Minute, []string{"tried again on 1 March 2026 at 13:00 UTC"}},
		{"left over", usual, func(e *LeaseEnd) { e.Status, e.Left = ClusterIncomplete, true }, false, time.Minute, []string{"every hour"}},
		{"extended", usual, func(e *LeaseEnd) { e.StoppedFor = end.Add(-72 * time.Hour) }, true, -48 * time.Hour, []string{"stay stopped until you start them"}},
		{"extended and started", usual, func(e *LeaseEnd) { e.StoppedFor = end.Add(-72 * time.Hour) }, false, -48 * time.Hour, nil},
		{"for ever now, stopped", usual, func(e *LeaseEnd) { e.StoppedFor, e.Expires = end, time.Time{} }, true, time.Hour, []string{"until you start them"}},
		{"gone", usual, func(e *LeaseEnd) { e.Status = ClusterTerminated }, false, time.Hour, nil},
	} {
		e := LeaseEnd{Status: ClusterActive, Expires: end, Reminded: NotReminded}
		if c.change != nil {
			c.change(&e)
		}
		got := c.settings.LeaseNotice(e, LeaseSoon(end.Add(-50*time.Hour), e.Expires, end.Add(c.at)), c.stopped, end.Add(c.at))
		if (got == "") != (len(c.has) == 0) {
			t.Errorf("%s: %q", c.name, got)
		}
		for _, part := range c.has {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q lacks %q", c.name, got, part)
			}
		}
	}
}
