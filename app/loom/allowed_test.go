package loom_test

import (
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

func TestWhyNotFollowsTheTable(t *testing.T) {
	t.Parallel()
	// One letter per status in which the verb may begin.
	table := map[loom.ClusterVerb]string{
		loom.VerbConfigure: "A i I", loom.VerbAddServices: "A", loom.VerbRemoveServices: "A i I", loom.VerbStart: "A",
		loom.VerbStop: "A", loom.VerbRestart: "A", loom.VerbExpand: "A", loom.VerbShrink: "A", loom.VerbUpgrade: "A",
		loom.VerbResize: "A", loom.VerbRepair: "A i I", loom.VerbRollback: "A i I", loom.VerbRetry: "i I",
		loom.VerbSync: "A", loom.VerbAuthorize: "A", loom.VerbDelete: "A i I", loom.VerbLease: "A i I", loom.VerbEdit: "P A i I",
		loom.VerbAbort: "P", loom.VerbPause: "P", loom.VerbResume: "",
	}
	letters := map[loom.ClusterStatus]string{
		loom.ClusterPending: "P", loom.ClusterActive: "A", loom.ClusterIncomplete: "i",
		loom.ClusterInconsistent: "I", loom.ClusterTerminated: "T",
	}
	for _, verb := range loom.ClusterVerbs {
		want, listed := table[verb]
		if !listed {
			t.Errorf("%s is not in the table of this test", verb)
		}
		for _, status := range loom.ClusterStatuses {
			c := loom.Cluster{Status: status}
			op := loom.Operation{Ref: loom.OperationRef{Cluster: 1, Number: 3}, Action: loom.ClusterCreate, Status: loom.OperationRunning, Started: time.Unix(1, 0)}
			if status != loom.ClusterPending {
				op.Status = loom.OperationComplete
			}
			why := c.WhyNot(verb, &op)
			if allowed := strings.Contains(want, letters[status]); allowed != (why == "") {
				t.Errorf("%s of a cluster %s: %q, want allowed %v", verb, status, why, allowed)
			}
			if why != "" && !strings.HasSuffix(why, ".") {
				t.Errorf("%s of a cluster %s: %q is not a sentence", verb, status, why)
			}
		}
	}
}

func TestWhyNotLooksAtOperationAndProtection(t *testing.T) {
	t.Parallel()
	op := func(s loom.OperationStatus) *loom.Operation {
		return &loom.Operation{Ref: loom.OperationRef{Cluster: 1, Number: 3}, Action: loom.ClusterCreate, Status: s}
	}
	failed := func(a loom.ClusterAction) *loom.Operation {
		return &loom.Operation{Action: a, Status: loom.OperationFailed, Started: time.Unix(1, 0)}
	}
	for _, c := range []struct {
		verb      loom.ClusterVerb
		status    loom.ClusterStatus
		protected bool
		latest    *loom.Operation
		want      string
	}{
		{loom.VerbPause, loom.ClusterPending, false, op(loom.OperationRunning), ""},
		{loom.VerbPause, loom.ClusterPending, false, op(loom.OperationPaused), "paused already"},
		{loom.VerbPause, loom.ClusterPending, false, op(loom.OperationFailing), "not running"},
		{loom.VerbResume, loom.ClusterPending, false, op(loom.OperationPaused), ""},
		{loom.VerbAbort, loom.ClusterPending, false, op(loom.OperationPaused), ""},
		{loom.VerbAbort, loom.ClusterPending, false, op(loom.OperationFailing), "ending already"},
		{loom.VerbDelete, loom.ClusterActive, true, nil, "protected"},
		{loom.VerbShrink, loom.ClusterActive, true, nil, "protected"},
		{loom.VerbResize, loom.ClusterActive, true, nil, "take the protection off"},
		{loom.VerbResize, loom.ClusterActive, false, nil, ""},
		{loom.VerbConfigure, loom.ClusterActive, true, nil, ""},
		{loom.VerbExpand, loom.ClusterActive, true, nil, ""},
		{loom.VerbRepair, loom.ClusterInconsistent, true, nil, ""},
		{loom.VerbRetry, loom.ClusterInconsistent, true, failed(loom.ClusterResize), "take the protection off"},
		{loom.VerbRetry, loom.ClusterInconsistent, true, failed(loom.ClusterShrink), "take the protection off"},
		{loom.VerbRetry, loom.ClusterIncomplete, true, failed(loom.ClusterDelete), "take the protection off"},
		{loom.VerbRetry, loom.ClusterInconsistent, true, failed(loom.ClusterExpand), ""},
		{loom.VerbDelete, loom.ClusterPending, false, op(loom.OperationRunning), "Operation 3 (create) is running."},
		{loom.VerbDelete, loom.ClusterPending, false, op(loom.OperationPaused), "is paused"},
		{loom.VerbDelete, loom.ClusterTerminated, false, nil, "gone"},
		{"dance", loom.ClusterActive, false, nil, "no action"},
	} {
		cluster := loom.Cluster{Status: c.status, Protected: c.protected}
		got := cluster.WhyNot(c.verb, c.latest)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s of %s (protected %v): %q, want %q", c.verb, c.status, c.protected, got, c.want)
		}
	}
}

func TestHostname(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 80)
	for _, c := range []struct{ name, suffix, want string }{
		{"9Web_tier", "lab.example", "web-tier42-1001.lab.example"},
		{"web.a", ".lab", "web-a42-1001.lab"},
		{"123", "", "node42-1001.local"},
		{"_x", "", "x42-1001.local"},
		{long, "s", strings.Repeat("x", 56) + "42-1001.s"},
	} {
		got := loom.Hostname(c.name, 42, 1001, c.suffix)
		if got != c.want {
			t.Errorf("Hostname(%q, %q) = %q, want %q", c.name, c.suffix, got, c.want)
		}
		if label, _, _ := strings.Cut(got, "."); len(label) > 63 {
			t.Errorf("label of %d characters", len(label))
		}
	}
}
