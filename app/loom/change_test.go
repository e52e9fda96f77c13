package loom_test

import (
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// Every action of an operation, and every kind of change, is described.
func TestChangesAreDescribed(t *testing.T) {
	t.Parallel()
	for _, action := range loom.ClusterActions {
		if action.Verb() == string(action) || action.Doing() == string(action) || action.Done() == string(action) || !slices.ContainsFunc(loom.Changes, func(c loom.Change) bool { return c.Action == action }) {
			t.Errorf("%s has no row in loom.Changes", action)
		}
	}
	for _, c := range loom.Changes {
		if c.Action != "" && !slices.Contains(loom.ClusterActions, c.Action) {
			t.Errorf("%s is missing in loom.ClusterActions", c.Action)
		}
		if c.Kind != loom.ChangeCreate && len(c.Allowed) == 0 {
			t.Errorf("%s is allowed in no status", c.Kind)
		}
	}
}

func TestUndoable(t *testing.T) {
	t.Parallel()
	undone := []loom.ClusterAction{loom.ClusterCreate, loom.AddServices, loom.RemoveServices, loom.ClusterExpand, loom.ClusterShrink, loom.ClusterUpgrade, loom.ClusterUpdate, loom.ClusterResize}
	for _, action := range append(slices.Clone(loom.ClusterActions), "other") {
		why := action.WhyNotUndone()
		if action.Undoable() != slices.Contains(undone, action) || (why == "") != action.Undoable() || why != "" && !strings.HasSuffix(why, ".") {
			t.Errorf("%s is undoable: %v, because %q", action, action.Undoable(), why)
		}
	}
}
