package work

import (
	"context"
	"errors"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

func askOf(n int) commitRequest {
	return commitRequest{key: execution.AttemptKey{Task: loom.TaskID(n), Attempt: 1}, answer: make(chan commitAnswer, 1)}
}

func told(a *commitQueue) bool {
	select {
	case <-a.more:
		return true
	default:
		return false
	}
}

func TestAsksWakeOnce(t *testing.T) {
	t.Parallel()
	a := newCommitQueue()
	if n := a.waiting(3); n != 0 || told(a) {
		t.Fatalf("%d wait", n)
	}
	for i, want := range []bool{true, false, true, false} { // the first, and enough
		if !a.put(askOf(i+1)) || told(a) != want {
			t.Errorf("after ask %d: told %t, want %t", i+1, !want, want)
		}
	}
	if got := a.take(3); len(got) != 3 || got[0].key.Task != 1 || got[2].key.Task != 3 {
		t.Errorf("took %+v", got)
	}
	if !told(a) {
		t.Error("nothing was said of the one that is left")
	}
	left := askOf(5)
	a.put(left)
	if !a.remove(left.answer) || a.remove(left.answer) {
		t.Error("one that waits is taken back once")
	}
	if got := a.take(9); len(got) != 1 || got[0].key.Task != 4 || a.remove(got[0].answer) {
		t.Errorf("took %+v", got)
	}
	a.put(askOf(6))
	if got := a.close(); len(got) != 1 || a.put(askOf(7)) || len(a.take(9)) != 0 {
		t.Errorf("closed with %+v", got)
	}
}

// TestAskersAreAnswered: whoever asks gets an answer, also when nobody commits any longer
// or the one who asks is in a hurry.
func TestAskersAreAnswered(t *testing.T) {
	t.Parallel()
	c := &committer{starts: newCommitQueue(), ends: newCommitQueue(), limiter: newLimiter(1)}
	impatient, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	answers := make(chan error, 2)
	go func() {
		_, err := c.start(impatient, execution.AttemptKey{Task: 1})
		answers <- err
	}()
	<-c.starts.more
	cancel(gone)
	if err := <-answers; !errors.Is(err, gone) {
		t.Errorf("the impatient one got %v", err)
	}
	if _, err := c.start(impatient, execution.AttemptKey{Task: 1}); !errors.Is(err, gone) {
		t.Errorf("again: %v", err)
	}
	go func() {
		_, err := c.complete(t.Context(), execution.AttemptKey{Task: 2}, loom.TaskResult{})
		answers <- err
	}()
	<-c.ends.more
	over, end := context.WithCancel(t.Context())
	end()
	c.run(over)
	if err := <-answers; !errors.Is(err, context.Canceled) {
		t.Errorf("the one who waited got %v", err)
	}
	if _, err := c.complete(t.Context(), execution.AttemptKey{Task: 3}, loom.TaskResult{}); !errors.Is(err, context.Canceled) {
		t.Errorf("one who came later got %v", err)
	}
}
