package loom

import (
	"testing"
	"time"
)

var checkedFrom = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestServiceHealthAfter plays results: "." passes, "x" fails, each a number of seconds after
// the one before.
func TestServiceHealthAfter(t *testing.T) {
	t.Parallel()
	check := ServiceCheck{Command: "true", Interval: 60, Failures: 3, Passes: 2, Grace: 60}
	for name, c := range map[string]struct {
		results string
		step    time.Duration
		started time.Time
		want    HealthStatus
	}{
		"nothing seen":                                {"", 0, time.Time{}, ""},
		"one pass is enough at first":                 {".", time.Minute, time.Time{}, HealthPassing},
		"two failures are not enough":                 {".xx", 15 * time.Second, time.Time{}, HealthPassing},
		"three failures in a row":                     {".xxx", 15 * time.Second, time.Time{}, HealthFailing},
		"a pass between failures":                     {".xx.xx", 15 * time.Second, time.Time{}, HealthPassing},
		"never passed":                                {"xx", 15 * time.Second, time.Time{}, HealthUnknown},
		"never passed, three times":                   {"xxx", 15 * time.Second, time.Time{}, HealthFailing},
		"one pass does not heal":                      {".xxx.", 15 * time.Second, time.Time{}, HealthFailing},
		"two passes heal":                             {".xxx..", 15 * time.Second, time.Time{}, HealthPassing},
		"a failure between passes":                    {".xxx.x.", 15 * time.Second, time.Time{}, HealthFailing},
		"failures too far apart are not in a row":     {".xxx", 181 * time.Second, time.Time{}, HealthPassing},
		"failures three intervals apart are in a row": {".xxx", 180 * time.Second, time.Time{}, HealthFailing},
		"grace after a start":                         {"xxx", 15 * time.Second, checkedFrom, HealthUnknown},
		"grace is over":                               {"xxxxxx", 15 * time.Second, checkedFrom, HealthFailing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h ServiceHealth
			at := checkedFrom
			for _, r := range c.results {
				at = at.Add(c.step)
				h = h.After(check, CheckResult{At: at, Passed: r == '.', Message: "exit status 7"}, c.started)
			}
			if h.Status != c.want {
				t.Errorf("%s every %s: %q, want %q", c.results, c.step, h.Status, c.want)
			}
			if h.Status == HealthPassing && c.results[len(c.results)-1] == '.' && h.Message != "" {
				t.Errorf("a passing service says %q", h.Message)
			}
			if h.Status == HealthFailing && h.Message == "" {
				t.Error("a failing service does not say why")
			}
		})
	}
}

// TestServiceHealthAfterStart: what failed before a service was started again is over with the
// first pass since, and only with that one.
func TestServiceHealthAfterStart(t *testing.T) {
	t.Parallel()
	check := ServiceCheck{Command: "true", Interval: 60, Failures: 3, Passes: 2, Grace: 60}
	started := checkedFrom.Add(time.Minute)
	failing := ServiceHealth{Status: HealthFailing, Since: checkedFrom, CheckedAt: checkedFrom, Message: "exit status 7"}
	if h := failing.After(check, CheckResult{At: started, Passed: true}, started); h.Status != HealthPassing || h.Message != "" {
		t.Errorf("the first pass since the start made it %+v", h)
	}
	h := failing.After(check, CheckResult{At: started, Message: "exit status 7"}, started)
	if h = h.After(check, CheckResult{At: started.Add(time.Second), Passed: true}, started); h.Status != HealthFailing {
		t.Errorf("one pass after a failure since the start made it %+v", h)
	}
}

// TestHealthAsOf: a status is as old as the look that says so.
func TestHealthAsOf(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return checkedFrom.Add(time.Duration(seconds) * time.Second) }
	suspect := NodeHealth{Status: HealthHealthy, CheckedAt: at(60), Services: map[string]ServiceHealth{
		"nginx": {Status: HealthPassing, CheckedAt: at(60), PassedAt: at(20), Against: 1}, "idle": {Status: HealthOff}}}
	failing := NodeHealth{Status: HealthFailing, CheckedAt: at(70)}
	for name, c := range map[string]struct {
		status HealthStatus
		nodes  []NodeHealth
		want   time.Time
	}{
		"nobody looked":                      {HealthUnknown, nil, time.Time{}},
		"a failure that is not certain":      {HealthHealthy, []NodeHealth{suspect}, at(20)},
		"a bad node is as old as its look":   {HealthDegraded, []NodeHealth{suspect, failing}, at(70)},
		"the oldest of those that are right": {HealthHealthy, []NodeHealth{{Status: HealthHealthy, CheckedAt: at(50)}, {Status: HealthHealthy, CheckedAt: at(40)}}, at(40)},
	} {
		if got := HealthAsOf(c.status, c.nodes); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestServiceHealthIgnoresLateResults(t *testing.T) {
	t.Parallel()
	check := ServiceCheck{Command: "true", Failures: 1}
	h := ServiceHealth{}.After(check, CheckResult{At: checkedFrom, Passed: true}, time.Time{})
	if late := h.After(check, CheckResult{At: checkedFrom.Add(-time.Second)}, time.Time{}); late != h {
		t.Errorf("an older result made %+v of %+v", late, h)
	}
	if again := h.After(check, CheckResult{At: checkedFrom}, time.Time{}); again != h {
		t.Errorf("the same result made %+v of %+v", again, h)
	}
}

// FuzzServiceHealth: a status changes only on as many results in a row as the check asks for,
// and Since never moves while the status stays.
func FuzzServiceHealth(f *testing.F) {
	f.Add("x.x..xx", uint8(3), uint8(2), uint8(15))
	f.Fuzz(func(t *testing.T, results string, failures, passes, step uint8) {
		check := ServiceCheck{Command: "true", Failures: 1 + int(failures%5), Passes: 1 + int(passes%5)}.WithDefaults()
		var h ServiceHealth
		at, row, last := checkedFrom, 0, byte(0)
		inRow := StaleAfter * time.Duration(check.Interval) * time.Second
		for i := range len(results) {
			gap := time.Second * time.Duration(1+int(step))
			at = at.Add(gap)
			passed := results[i]%2 == 0
			if last == results[i]%2 && i > 0 && gap <= inRow {
				row++
			} else {
				row = 1
			}
			last = results[i] % 2
			next := h.After(check, CheckResult{At: at, Passed: passed}, time.Time{})
			if next.Status == h.Status && h.Status != "" && next.Since != h.Since {
				t.Fatalf("result %d: %q since %s became since %s", i, h.Status, h.Since, next.Since)
			}
			switch {
			case next.Status == HealthFailing && h.Status != HealthFailing && row < check.Failures:
				t.Fatalf("failing after %d failures in a row, want %d", row, check.Failures)
			case next.Status == HealthPassing && h.Status == HealthFailing && row < check.Passes:
				t.Fatalf("passing after %d passes in a row, want %d", row, check.Passes)
			case passed && next.Status == HealthFailing && h.Status != HealthFailing, !passed && next.Status == HealthPassing && h.Status != HealthPassing:
				t.Fatalf("a result that %t passed made %q of %q", passed, next.Status, h.Status)
			}
			h = next
		}
	})
}

func TestJudgeNode(t *testing.T) {
	t.Parallel()
	now := checkedFrom
	fine := NodeSeen{SeenAt: now.Add(-time.Minute), Interval: time.Minute, Disk: 10, Services: map[string]ServiceHealth{"nginx": {Status: HealthPassing}}}
	with := func(change func(n *NodeSeen)) NodeSeen { n := fine; change(&n); return n }
	for name, c := range map[string]struct {
		seen NodeSeen
		want HealthStatus
	}{
		"fine":                           {fine, HealthHealthy},
		"never seen":                     {with(func(n *NodeSeen) { n.SeenAt = time.Time{} }), HealthUnknown},
		"three intervals ago":            {with(func(n *NodeSeen) { n.SeenAt = now.Add(-3 * time.Minute) }), HealthHealthy},
		"longer ago":                     {with(func(n *NodeSeen) { n.SeenAt = now.Add(-3*time.Minute - time.Second) }), HealthUnknown},
		"unreachable":                    {with(func(n *NodeSeen) { n.Unreachable = true }), HealthUnreachable},
		"unreachable for a doubtful one": {with(func(n *NodeSeen) { n.Unreachable, n.Doubted = true, true }), HealthUnknown},
		"reached by a doubtful one":      {with(func(n *NodeSeen) { n.Doubted = true }), HealthHealthy},
		"refused":                        {with(func(n *NodeSeen) { n.Refused = "The host key changed." }), HealthFailing},
		"a service fails": {with(func(n *NodeSeen) {
			n.Services = map[string]ServiceHealth{"nginx": {Status: HealthFailing, Message: "exit status 7"}}
		}), HealthFailing},
		"a service is unknown":            {with(func(n *NodeSeen) { n.Services = map[string]ServiceHealth{"nginx": {Status: HealthUnknown}} }), HealthHealthy},
		"the disk is full":                {with(func(n *NodeSeen) { n.Disk = 90 }), HealthFailing},
		"the disk is almost full":         {with(func(n *NodeSeen) { n.Disk = 89 }), HealthHealthy},
		"changing while unreachable":      {with(func(n *NodeSeen) { n.Changing, n.Unreachable = true, true }), HealthChanging},
		"checks are off while it changes": {with(func(n *NodeSeen) { n.Off, n.Changing = true, true }), HealthOff},
	} {
		got, message := JudgeNode(c.seen, now)
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got.Bad() != (message != "") {
			t.Errorf("%s: %q says %q", name, got, message)
		}
	}
}

func TestJudgeCluster(t *testing.T) {
	t.Parallel()
	node := func(status HealthStatus, services ...HealthStatus) NodeHealth {
		n := NodeHealth{Status: status, Services: map[string]ServiceHealth{}}
		for i, s := range services {
			n.Services[string(rune('a'+i))] = ServiceHealth{Status: s}
		}
		return n
	}
	const pass, fail = HealthPassing, HealthFailing
	for name, c := range map[string]struct {
		nodes []NodeHealth
		want  HealthStatus
	}{
		"no nodes":                              {nil, HealthOff},
		"checks are off":                        {[]NodeHealth{node(HealthOff), node(HealthOff)}, HealthOff},
		"all changing":                          {[]NodeHealth{node(HealthChanging)}, HealthUnknown},
		"all healthy":                           {[]NodeHealth{node(HealthHealthy, pass), node(HealthHealthy, pass)}, HealthHealthy},
		"one unknown":                           {[]NodeHealth{node(HealthHealthy, pass), node(HealthUnknown)}, HealthUnknown},
		"one bad and one unknown":               {[]NodeHealth{node(HealthHealthy, pass), node(HealthUnknown), node(HealthFailing, fail)}, HealthDegraded},
		"a service fails somewhere":             {[]NodeHealth{node(HealthHealthy, pass), node(HealthFailing, fail)}, HealthDegraded},
		"a service fails everywhere":            {[]NodeHealth{node(HealthHealthy, pass), node(HealthFailing, pass, fail)}, HealthFailing},
		"a service passes on a changing one":    {[]NodeHealth{node(HealthChanging, pass), node(HealthFailing, fail)}, HealthDegraded},
		"the only place of a service is down":   {[]NodeHealth{node(HealthHealthy, pass), node(HealthUnreachable, HealthUnknown, pass)}, HealthFailing},
		"no node is reached":                    {[]NodeHealth{node(HealthUnreachable), node(HealthGone)}, HealthFailing},
		"one of two nodes without checks gone":  {[]NodeHealth{node(HealthHealthy), node(HealthGone)}, HealthDegraded},
		"drifted":                               {[]NodeHealth{{Status: HealthHealthy, Drift: []Drift{{Kind: DriftSize}}}}, HealthDegraded},
		"no services":                           {[]NodeHealth{node(HealthHealthy)}, HealthHealthy},
		"nothing checks its services":           {[]NodeHealth{node(HealthHealthy, HealthUnchecked), node(HealthHealthy, HealthOff)}, HealthUnchecked},
		"unchecked services beside others":      {[]NodeHealth{node(HealthHealthy, pass, HealthUnchecked)}, HealthHealthy},
		"all services are off":                  {[]NodeHealth{node(HealthHealthy, HealthOff), node(HealthHealthy, HealthOff)}, HealthStopped},
		"a service that is off beside others":   {[]NodeHealth{node(HealthHealthy, pass, HealthOff)}, HealthPartly},
		"a service that is off on one node":     {[]NodeHealth{node(HealthHealthy, pass, pass), node(HealthHealthy, pass, HealthOff)}, HealthHealthy},
		"no service has been checked":           {[]NodeHealth{node(HealthHealthy, HealthUnknown)}, HealthUnknown},
		"unknown where it has not been checked": {[]NodeHealth{node(HealthHealthy, HealthUnknown), node(HealthFailing, fail)}, HealthDegraded},
	} {
		if got := JudgeCluster(c.nodes); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
