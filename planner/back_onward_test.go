package planner

import (
	"testing"

	"loom/app/loom"
)

// TestBackOnward goes from where random changes stopped to where they led.
func TestBackOnward(t *testing.T) {
	t.Parallel()
	for seed := range backCases(t) / 4 {
		r := newRand(seed, 12)
		change, plan := randomOperation(t, r)
		w := newWorld(change.Before)
		w.early = true
		op, err := w.execute(plan, change.After, change.Before.Services, r.IntN(len(plan.Tasks)+2), r)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		in := RollbackInput{Plan: plan, Begun: op.Begun, Done: op.Done, HasMachine: w.has(r), Before: change.Before, After: change.After, To: change.After}
		if in.To.Nodes == nil {
			in.To.Nodes = []loom.Node{}
		}
		onward, err := PlanRollback(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkShape(t, onward)
		if _, err := w.execute(onward, change.After, in.Definitions(), len(onward.Tasks), r); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, Text(plan), Text(onward))
		}
		if diff := w.differs(change.After, change.Before.Services, change.After.Services); diff != "" {
			t.Fatalf("seed %d: %s\n%s\n%s", seed, diff, Text(plan), Text(onward))
		}
	}
}
