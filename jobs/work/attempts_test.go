package work

import (
	"context"
	"errors"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

func attemptKey(task loom.TaskID) execution.AttemptKey {
	return execution.AttemptKey{Task: task, Attempt: 1}
}

func TestAttemptsAreStoppedWithTheirCause(t *testing.T) {
	t.Parallel()
	a := newAttempts()
	first, ok := a.claim(context.Background(), attemptKey(1))
	if !ok {
		t.Fatal("not claimed")
	}
	if _, twice := a.claim(context.Background(), attemptKey(1)); twice {
		t.Error("the same delivery was claimed twice")
	}
	one, all := errors.New("one"), errors.New("all")
	a.stop(attemptKey(1), one)
	if context.Cause(first) != one {
		t.Errorf("stopped by %v", context.Cause(first))
	}
	a.stopAll(all)
	late, _ := a.claim(context.Background(), attemptKey(2))
	if context.Cause(late) != all {
		t.Errorf("what begins after the end is stopped by %v", context.Cause(late))
	}
	a.done(attemptKey(1))
	if _, ok := a.claim(context.Background(), attemptKey(1)); !ok {
		t.Error("what is done may be claimed again")
	}
}
