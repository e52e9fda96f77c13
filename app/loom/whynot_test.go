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
	atOnce := []loom.ClusterVerb{loom.VerbLease, loom.VerbEdit, loom.VerbAbort, loom.VerbPause, loom.VerbResume}
	for _, verb := range loom.ClusterVerbs {
		if slices.Contains(atOnce, verb) == slices.Contains(loom.PreviewKinds, loom.PreviewKind(verb)) {
			t.Errorf("%s works at once: %v", verb, slices.Contains(atOnce, verb))
		}
	}
	for _, kind := range loom.PreviewKinds {
		if kind != loom.PreviewCreate && !slices.Contains(loom.ClusterVerbs, kind.Verb()) {
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
		if why := c.WhyNot(loom.VerbRetry, &op); (why == "") != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// There is no way back from a delete that began.
func TestWhyNotRollBackADelete(t *testing.T) {
	t.Parallel()
	c := loom.Cluster{Status: loom.ClusterIncomplete}
	began := loom.Operation{Action: loom.ClusterDelete, Status: loom.OperationFailed, Started: time.Unix(1, 0)}
	if why := c.WhyNot(loom.VerbRollback, &began); !strings.Contains(why, "go on with the delete") {
		t.Errorf("%q", why)
	}
	began.Action = loom.ClusterCreate
	if why := c.WhyNot(loom.VerbRollback, &began); why != "" {
		t.Errorf("%q", why)
	}
}

// A cluster that somebody wants deleted begins nothing else.
func TestWhyNotLooksAtTheWishToDelete(t *testing.T) {
	t.Parallel()
	for verb, allowed := range map[loom.ClusterVerb]bool{
		loom.VerbConfigure: false, loom.VerbStop: false, loom.VerbSync: false, loom.VerbRollback: false, loom.VerbDelete: true, loom.VerbEdit: true, loom.VerbLease: true,
	} {
		c := loom.Cluster{Status: loom.ClusterActive, DeleteWanted: "ana"}
		if why := c.WhyNot(verb, nil); allowed != (why == "") || !allowed && !strings.Contains(why, "ana") {
			t.Errorf("%s: %q", verb, why)
		}
	}
	pending := loom.Cluster{Status: loom.ClusterPending, DeleteWanted: "ana"}
	if why := pending.WhyNot(loom.VerbAbort, &loom.Operation{Status: loom.OperationRunning}); why != "" {
		t.Errorf("abort: %q", why)
	}
}
