package loom_test

import (
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// TestJournalMeter: lines of the past beside those of a second, a gap once the second is
// over, and an end by size.
func TestJournalMeter(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_700_000_000, 0)
	m := loom.JournalMeter{Past: 100}
	taken := func(lines int, at time.Time) (n int) {
		for range lines {
			if take, full := m.Take("x", at); full {
				t.Fatal("full")
			} else if take {
				n++
			}
		}
		return n
	}
	if n := taken(1000, begin); n != loom.JournalRate+100 {
		t.Errorf("%d lines of the first second", n)
	}
	if n := m.Skipped(begin.Add(999 * time.Millisecond)); n != 0 {
		t.Errorf("a gap of %d before the second was over", n)
	}
	if n := m.Skipped(begin.Add(time.Second)); n != 1000-loom.JournalRate-100 {
		t.Errorf("a gap of %d", n)
	}
	if n := taken(1000, begin.Add(time.Second)); n != loom.JournalRate {
		t.Errorf("%d lines of the next second", n)
	}
	if n := m.Skipped(time.Time{}); n != 1000-loom.JournalRate {
		t.Errorf("a gap of %d at the end", n)
	}
	if n := m.Skipped(time.Time{}); n != 0 {
		t.Errorf("the gap comes twice: %d", n)
	}
	long, at := strings.Repeat("x", 16<<10), begin.Add(2*time.Second)
	for sum := 0; ; sum += len(long) {
		if _, full := m.Take(long, at); full {
			break
		}
		if sum > loom.JournalBytes {
			t.Fatal("never full")
		}
	}
}

// TestHasJournal: logs, or a container.
func TestHasJournal(t *testing.T) {
	t.Parallel()
	docker := loom.Service{Provisioner: loom.ServiceProvisioner{Actions: map[loom.TaskAction]loom.ServiceAction{loom.ActionStart: {Type: "docker"}}}}
	for name, c := range map[string]struct {
		service loom.Service
		want    bool
	}{
		"nothing": {loom.Service{}, false},
		"empty":   {loom.Service{Logs: &loom.ServiceLogs{}}, false},
		"unit":    {loom.Service{Logs: &loom.ServiceLogs{Units: []string{"nginx"}}}, true},
		"file":    {loom.Service{Logs: &loom.ServiceLogs{Files: []string{"/var/log/x"}}}, true},
		"docker":  {docker, true},
	} {
		if got := c.service.HasJournal(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
