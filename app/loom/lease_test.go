package loom_test

import (
	"errors"
	"testing"
	"time"

	"loom/app/loom"
)

const hour = int64(3_600_000)

func TestLeaseGrant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		rule   loom.LeaseRule
		wanted int64
		want   int64
		ok     bool
	}{
		{"template's own", loom.LeaseRule{Initial: 8 * hour, Max: 24 * hour}, -1, 8 * hour, true},
		{"template unlimited", loom.LeaseRule{}, -1, 0, true},
		{"any where unlimited", loom.LeaseRule{}, 100 * hour, 100 * hour, true},
		{"for ever where unlimited", loom.LeaseRule{}, 0, 0, true},
		{"shorter", loom.LeaseRule{Initial: 8 * hour}, hour, hour, true},
		{"equal", loom.LeaseRule{Initial: 8 * hour}, 8 * hour, 8 * hour, true},
		{"longer", loom.LeaseRule{Initial: 8 * hour}, 8*hour + 1, 0, false},
		{"for ever where limited", loom.LeaseRule{Initial: 8 * hour}, 0, 0, false},
		{"beyond all clocks", loom.LeaseRule{}, 1 << 62, 0, false},
		{"negative", loom.LeaseRule{}, -2, 0, false},
		{"imported rule, above max", loom.LeaseRule{Max: 4 * hour}, 5 * hour, 0, false},
		{"imported rule, for ever", loom.LeaseRule{Max: 4 * hour}, -1, 0, false},
		{"imported rule, within max", loom.LeaseRule{Max: 4 * hour}, 3 * hour, 3 * hour, true},
		{"imported rule, initial above max", loom.LeaseRule{Initial: 9 * hour, Max: 4 * hour}, -1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, errs := c.rule.Grant(c.wanted)
			if (len(errs) == 0) != c.ok || got != c.want {
				t.Fatalf("Grant(%d) = %d, %v; want %d, ok %v", c.wanted, got, errs, c.want, c.ok)
			}
			if !c.ok && errs[0].Field != "initialLeaseDuration" {
				t.Errorf("field %q", errs[0].Field)
			}
		})
	}
}

// A worked example, in order: refused calls change nothing.
func TestLeaseChangeWorkedExample(t *testing.T) {
	t.Parallel()
	rule := loom.LeaseRule{Initial: 8 * hour, Max: 24 * hour, Step: 6 * hour}
	created := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(h int) time.Time { return created.Add(time.Duration(h) * time.Hour) }
	expires := at(8)
	for _, c := range []struct {
		to int
		ok bool
	}{{15, false}, {14, true}, {20, true}, {25, false}, {24, true}, {3, true}, {-1, false}, {0, true}} {
		err := rule.CheckChange(loom.ClusterActive, created, expires, at(c.to))
		if (err == nil) != c.ok {
			t.Fatalf("from %v to hour %d: %v, want ok %v", expires, c.to, err, c.ok)
		}
		if err != nil && !errors.Is(err, loom.Invalid) {
			t.Errorf("kind of %v", err)
		}
		if c.ok {
			expires = at(c.to)
		}
	}
}

func TestLeaseChange(t *testing.T) {
	t.Parallel()
	created := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(h int) time.Time { return created.Add(time.Duration(h) * time.Hour) }
	never := time.Time{}
	stepped := loom.LeaseRule{Initial: 8 * hour, Max: 24 * hour, Step: 6 * hour}
	for _, c := range []struct {
		name            string
		rule            loom.LeaseRule
		status          loom.ClusterStatus
		expires, wanted time.Time
		ok              bool
	}{
		{"never without max", loom.LeaseRule{Step: hour}, loom.ClusterActive, at(1), never, true},
		{"never with max", stepped, loom.ClusterActive, at(8), never, false},
		{"from never within max", stepped, loom.ClusterActive, never, at(24), true},
		{"from never above max", stepped, loom.ClusterActive, never, at(25), false},
		{"step without max is not enforced", loom.LeaseRule{Step: hour}, loom.ClusterActive, at(1), at(100), true},
		{"no step", loom.LeaseRule{Initial: hour, Max: 24 * hour}, loom.ClusterActive, at(1), at(24), true},
		{"beyond all clocks", loom.LeaseRule{}, loom.ClusterActive, at(1), created.AddDate(5000, 0, 0), false},
		{"pending", loom.LeaseRule{}, loom.ClusterPending, at(1), at(2), false},
		{"terminated", loom.LeaseRule{}, loom.ClusterTerminated, at(1), at(2), false},
		{"incomplete", loom.LeaseRule{}, loom.ClusterIncomplete, at(1), at(2), true},
		{"inconsistent", loom.LeaseRule{}, loom.ClusterInconsistent, at(1), at(2), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := c.rule.CheckChange(c.status, created, c.expires, c.wanted); (err == nil) != c.ok {
				t.Fatalf("%v, want ok %v", err, c.ok)
			}
		})
	}
}

// Whatever the limits of a form offer as the latest end is accepted, and a
// second later is not.
func TestLeaseLimitsAgreeWithChange(t *testing.T) {
	t.Parallel()
	created := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, rule := range []loom.LeaseRule{
		{Initial: 8 * hour, Max: 24 * hour, Step: 6 * hour}, {Initial: hour, Max: 3 * hour}, {Initial: hour, Max: 3 * hour, Step: hour / 2},
	} {
		for h := 0; h <= 24; h++ {
			expires := created.Add(time.Duration(h) * time.Hour)
			if h == 24 {
				expires = time.Time{}
			}
			limits := rule.Limits(created, expires)
			if limits.Rule == "" {
				t.Fatalf("%+v: no rule named", rule)
			}
			if err := rule.CheckChange(loom.ClusterActive, created, expires, limits.Latest); err != nil {
				t.Errorf("%+v expires %v: latest %v refused: %v", rule, expires, limits.Latest, err)
			}
			if err := rule.CheckChange(loom.ClusterActive, created, expires, limits.Latest.Add(time.Second)); err == nil {
				t.Errorf("%+v expires %v: a second after the latest was accepted", rule, expires)
			}
		}
	}
	if l := (loom.LeaseRule{Step: hour}).Limits(created, created); !l.Latest.IsZero() || l.Rule != "" {
		t.Errorf("no maximum, yet limits %+v", l)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for millis, want := range map[int64]string{
		0: "no expiry", 1: "1 millisecond", 8 * hour: "8 hours", 36 * hour: "1 day 12 hours", 24*hour + 60_000: "1 day", 90_000: "1 minute 30 seconds",
	} {
		if got := loom.Duration(millis); got != want {
			t.Errorf("Duration(%d) = %q, want %q", millis, got, want)
		}
	}
}
