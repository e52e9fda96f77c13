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
	table := map[loom.ChangeKind]string{
		loom.ChangeConfigure: "A i I", loom.ChangeAddServices: "A", loom.ChangeRemoveServices: "A i I", loom.ChangeStart: "A",
		loom.ChangeStop: "A", loom.ChangeRestart: "A", loom.ChangeExpand: "A", loom.ChangeShrink: "A", loom.ChangeUpgrade: "A", loom.ChangeUpdate: "A",
		loom.ChangeResize: "A", loom.ChangeRepair: "A i I", loom.ChangeRollback: "A i I", loom.ChangeRetry: "i I",
		loom.ChangeSync: "A", loom.ChangeAuthorize: "A", loom.ChangeDelete: "A i I", loom.ChangeLease: "A i I", loom.ChangeEdit: "P A i I",
		loom.ChangeAbort: "P", loom.ChangePause: "P", loom.ChangeResume: "",
	}
	letters := map[loom.ClusterStatus]string{
		loom.ClusterPending: "P", loom.ClusterActive: "A", loom.ClusterIncomplete: "i",
		loom.ClusterInconsistent: "I", loom.ClusterTerminated: "T",
	}
	for _, verb := range loom.ClusterChanges {
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
		verb      loom.ChangeKind
		status    loom.ClusterStatus
		protected bool
		latest    *loom.Operation
		want      string
	}{
		{loom.ChangePause, loom.ClusterPending, false, op(loom.OperationRunning), ""},
		{loom.ChangePause, loom.ClusterPending, false, op(loom.OperationPaused), "paused already"},
		{loom.ChangePause, loom.ClusterPending, false, op(loom.OperationFailing), "no longer running"},
		{loom.ChangeResume, loom.ClusterPending, false, op(loom.OperationPaused), ""},
		{loom.ChangeAbort, loom.ClusterPending, false, op(loom.OperationPaused), ""},
		{loom.ChangeAbort, loom.ClusterPending, false, op(loom.OperationFailing), "ending already"},
		{loom.ChangeDelete, loom.ClusterActive, true, nil, "protected"},
		{loom.ChangeShrink, loom.ClusterActive, true, nil, "protected"},
		{loom.ChangeResize, loom.ClusterActive, true, nil, "Unprotect it"},
		{loom.ChangeResize, loom.ClusterActive, false, nil, ""},
		{loom.ChangeConfigure, loom.ClusterActive, true, nil, ""},
		{loom.ChangeExpand, loom.ClusterActive, true, nil, ""},
		{loom.ChangeRepair, loom.ClusterInconsistent, true, nil, ""},
		{loom.ChangeRetry, loom.ClusterInconsistent, true, failed(loom.ClusterResize), "Unprotect it"},
		{loom.ChangeRetry, loom.ClusterInconsistent, true, failed(loom.ClusterShrink), "Unprotect it"},
		{loom.ChangeRetry, loom.ClusterIncomplete, true, failed(loom.ClusterDelete), "Unprotect it"},
		{loom.ChangeRetry, loom.ClusterInconsistent, true, failed(loom.ClusterExpand), ""},
		{loom.ChangeDelete, loom.ClusterPending, false, op(loom.OperationRunning), "Operation 3 (create) is running."},
		{loom.ChangeDelete, loom.ClusterPending, false, op(loom.OperationPaused), "is paused"},
		{loom.ChangeDelete, loom.ClusterTerminated, false, nil, "is deleted"},
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
