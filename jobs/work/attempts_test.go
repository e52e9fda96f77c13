package work

import (
	"context"
	"errors"
	"testing"
	"time"

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

// unasked is a runner that must not be asked.
type unasked struct{ t *testing.T }

func (u unasked) Run(context.Context, *loom.TaskSpec, loom.Sink) loom.TaskResult {
	u.t.Error("it began after the lease was over")
	return loom.TaskResult{}
}

// TestNothingBeginsAfterTheLease: a process that stood still goes on in the middle of
// what it was about to do, and looks after its lease later.
func TestNothingBeginsAfterTheLease(t *testing.T) {
	t.Parallel()
	a, now := newAttempts(), time.Now()
	for _, c := range []struct {
		until, now time.Time
		may        bool
	}{
		{time.Time{}, now, true},
		{now, now, true},
		{now, now.Add(time.Millisecond), false},
		{now, now.Round(0).Add(time.Hour), false}, // only the clock on the wall went on
	} {
		a.setLease(c.until)
		if got := a.mayBegin(c.now); got != c.may {
			t.Errorf("until %v, at %v: %v", c.until, c.now, got)
		}
	}
	a.setLease(now.Add(-time.Second))
	w := &runTask{attempts: a, runner: unasked{t}}
	if got := w.run(t.Context(), &loom.TaskSpec{}, &sink{}); !got.Interrupted || got.Status == 0 {
		t.Errorf("%+v", got)
	}
}
