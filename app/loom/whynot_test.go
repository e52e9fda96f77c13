package loom_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

// Every verb works with a preview, or at once.
func TestEveryVerbWorks(t *testing.T) {
	t.Parallel()
	atOnce := []loom.ChangeKind{loom.ChangeLease, loom.ChangeEdit, loom.ChangeAbort, loom.ChangePause, loom.ChangeResume}
	for _, verb := range loom.ClusterChanges {
		if slices.Contains(atOnce, verb) == slices.Contains(loom.PreviewKinds, loom.ChangeKind(verb)) {
			t.Errorf("%s works at once: %v", verb, slices.Contains(atOnce, verb))
		}
	}
	for _, kind := range loom.PreviewKinds {
		if kind != loom.ChangeCreate && !slices.Contains(loom.ClusterChanges, kind) {
			t.Errorf("%s is no verb", kind)
		}
	}
}

// Only what failed, began and was not undone is gone on with.
func TestWhyNotRetry(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	for want, op := range map[string]loom.Operation{
		"":            {Status: loom.OperationFailed, Started: now},
		"was undone":  {Status: loom.OperationRolledBack, Started: now, Undone: true},
		"never began": {Status: loom.OperationAborted},
		"roll that":   {Status: loom.OperationFailed, Started: now, Undone: true},
	} {
		c := loom.Cluster{Status: loom.ClusterInconsistent}
		if why := c.WhyNot(loom.ChangeRetry, &op); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// There is no way back from a delete that began.
func TestWhyNotRollBackADelete(t *testing.T) {
	t.Parallel()
	c := loom.Cluster{Status: loom.ClusterIncomplete}
	began := loom.Operation{Action: loom.ClusterDelete, Status: loom.OperationFailed, Started: time.Unix(1, 0)}
	if why := c.WhyNot(loom.ChangeRollback, &began); !strings.Contains(why, "go on with the delete") {
		t.Errorf("%q", why)
	}
	began.Action = loom.ClusterCreate
	if why := c.WhyNot(loom.ChangeRollback, &began); why != "" {
		t.Errorf("%q", why)
	}
}

// A cluster that somebody wants deleted begins nothing else.
func TestWhyNotLooksAtTheWishToDelete(t *testing.T) {
	t.Parallel()
	for verb, allowed := range map[loom.ChangeKind]bool{
		loom.ChangeConfigure: false, loom.ChangeStop: false, loom.ChangeSync: false, loom.ChangeRollback: false, loom.ChangeDelete: true, loom.ChangeEdit: true, loom.ChangeLease: true,
	} {
		c := loom.Cluster{Status: loom.ClusterActive, DeleteWanted: "ana"}
		if why := c.WhyNot(verb, nil); allowed != (why == "") || !allowed && !strings.Contains(why, "ana") {
			t.Errorf("%s: %q", verb, why)
		}
	}
	pending := loom.Cluster{Status: loom.ClusterPending, DeleteWanted: "ana"}
	if why := pending.WhyNot(loom.ChangeAbort, &loom.Operation{Status: loom.OperationRunning}); why != "" {
		t.Errorf("abort: %q", why)
	}
}

// A delete ends what runs first, unless that is a delete or one is wanted already.
func TestDeleteAborts(t *testing.T) {
	t.Parallel()
	pending := loom.Cluster{Status: loom.ClusterPending}
	expands := &loom.Operation{Action: loom.ClusterExpand, Status: loom.OperationRunning}
	for name, test := range map[string]struct {
		cluster loom.Cluster
		latest  *loom.Operation
		want    bool
	}{
		"running":        {pending, expands, true},
		"failing":        {pending, &loom.Operation{Action: loom.ClusterExpand, Status: loom.OperationFailing}, true},
		"ended":          {pending, &loom.Operation{Action: loom.ClusterExpand, Status: loom.OperationFailed}, false},
		"a delete":       {pending, &loom.Operation{Action: loom.ClusterDelete, Status: loom.OperationRunning}, false},
		"none":           {pending, nil, false},
		"wanted already": {loom.Cluster{Status: loom.ClusterPending, DeleteWanted: "ana"}, expands, false},
		"idle":           {loom.Cluster{Status: loom.ClusterActive}, expands, false},
	} {
		if got := test.cluster.DeleteAborts(test.latest); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if why := pending.WhyNotDeletedIdle(); why != "" || pending.Status != loom.ClusterPending {
		t.Errorf("%q, %s", why, pending.Status)
	}
	pending.Protected = true
	if why := pending.WhyNotDeletedIdle(); !strings.Contains(why, "protected") {
		t.Errorf("%q", why)
	}
}

// Only what is next is left out, and only while nothing begins by itself.
func TestWhyNotSkipped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		operation loom.OperationStatus
		task      loom.TaskStatus
		want      string
	}{
		{loom.OperationPaused, loom.TaskReady, ""},
		{loom.OperationPaused, loom.TaskBlocked, "Task 7 still waits for others"},
		{loom.OperationPaused, loom.TaskRunning, "Task 7 is running"},
		{loom.OperationPaused, loom.TaskComplete, "Task 7 is complete already."},
		{loom.OperationRunning, loom.TaskReady, "Operation 2 is not paused"},
	} {
		op := loom.Operation{Ref: loom.OperationRef{Cluster: 1, Number: 2}, Status: test.operation}
		why := op.WhyNotSkipped(&loom.Task{Ref: loom.TaskRef{Operation: op.Ref, Number: 7}, Status: test.task})
		if (why == "") != (test.want == "") || !strings.HasPrefix(why, test.want) {
			t.Errorf("%s, %s: %q, want %q", test.operation, test.task, why, test.want)
		}
	}
}
