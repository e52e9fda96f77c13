package planner

import (
	"fmt"
	"strings"
	"time"

	"loom/app/loom"
)

const (
	// DefaultMaxAttempts is how often a task is tried where nothing else is set.
	DefaultMaxAttempts = 3
	// MaxInterruptions is how many interrupted attempts in a row a task survives;
	// the last of them fails it.
	MaxInterruptions = 10
	// MaxWaits is how many attempts in a row may find away what they need of the
	// installation, such as the file store: about a day.
	MaxWaits = 720
	// waitDelay is the delay after the first of them; the others wait longer and longer.
	waitDelay    = 10 * time.Second
	maxWaitDelay = 2 * time.Minute
	// MaxRetryDelay bounds the delay a plugin may ask for.
	MaxRetryDelay = time.Hour
)

// retryDelays are the delays after the first, second, ... failed try; the last
// one holds for all further ones.
var retryDelays = []time.Duration{5 * time.Second, 30 * time.Second}

// Verdict is what follows an attempt.
type Verdict string

// The verdicts.
const (
	// Complete: the attempt succeeded, nothing is to be decided.
	Complete Verdict = "complete"
	// Retry: the same task again after Decision.Delay.
	Retry Verdict = "retry"
	// Recreate: new tasks Decision.First, in this order, in the node's own chain,
	// then the same task again.
	Recreate Verdict = "recreate"
	// Fail: the task is given up and with it the operation.
	Fail Verdict = "fail"
)

// DecideInput is an attempt that ended, and what came before it.
type DecideInput struct {
	Action loom.TaskAction
	// Row spreads the delays of tasks that failed at the same time.
	Row loom.TaskID
	// History are the outcomes of the earlier attempts of this task in this
	// operation, oldest first; the attempt that ended is not among them.
	History []loom.AttemptStatus
	Result  loom.TaskResult
	// HasMachine says that the node's stored results hold a provider id. A
	// provider id in Result counts as well.
	HasMachine bool
	// Made says that this operation, or one that it goes on with, tried to create the
	// machine of the node: no other machine is ever deleted for the sake of a retry.
	Made bool
	// MaxAttempts is how often a task is tried, the first time included; below 1
	// means DefaultMaxAttempts.
	MaxAttempts int
}

// Decision is what follows an attempt.
type Decision struct {
	Verdict Verdict
	// Delay before the next try; set for Retry only.
	Delay time.Duration
	// First are the tasks to run before the next try; set for Recreate only.
	First []loom.TaskAction
	// Message says why, for the operation; set for Fail only.
	Message string
}

// Decide says what follows an attempt. A decision to retry is
// void when the operation is failing already; the caller knows that.
func Decide(in DecideInput) Decision {
	switch {
	case in.Result.Aborted:
		return fail("aborted", in.Result.Message)
	case in.Result.Interrupted:
		return afterInterruption(in)
	case in.Result.Status == 0:
		return Decision{Verdict: Complete}
	}
	limit := in.MaxAttempts
	if limit < 1 {
		limit = DefaultMaxAttempts
	}
	tries := 1
	for _, s := range in.History {
		if s == loom.AttemptFailed {
			tries++
		}
	}
	if in.Result.Retryable != nil && !*in.Result.Retryable {
		return fail("failed, and trying again would not help", in.Result.Message)
	}
	if tries >= limit {
		return fail("failed "+times(tries), in.Result.Message)
	}
	switch {
	case !in.Made:
	case in.Action == loom.ActionConfirm && !in.Result.KeepMachine:
		return Decision{Verdict: Recreate, First: []loom.TaskAction{loom.ActionDelete, loom.ActionCreate}}
	case in.Action == loom.ActionCreate && (in.HasMachine || hasProviderID(in.Result)):
		return Decision{Verdict: Recreate, First: []loom.TaskAction{loom.ActionDelete}}
	}
	return Decision{Verdict: Retry, Delay: retryDelay(in, tries)}
}

func afterInterruption(in DecideInput) Decision {
	interruptions, waits := 0, 0
	for i := len(in.History) - 1; i >= 0; i-- {
		switch in.History[i] {
		case loom.AttemptInterrupted:
			interruptions++
			continue
		case loom.AttemptWaited:
			waits++
			continue
		}
		break
	}
	switch {
	case in.Result.Status == loom.StatusWaits && waits+1 >= MaxWaits:
		return fail(fmt.Sprintf("waited %d times in a row", waits+1), in.Result.Message)
	case in.Result.Status == loom.StatusWaits:
		return Decision{Verdict: Retry, Delay: spread(min(waitDelay*time.Duration(waits+1), maxWaitDelay), in.Row, waits)}
	case interruptions+1 >= MaxInterruptions:
		return fail(fmt.Sprintf("was interrupted %d times in a row", interruptions+1), in.Result.Message)
	}
	return Decision{Verdict: Retry}
}

// hasProviderID reports whether the attempt itself reported a machine it created.
func hasProviderID(r loom.TaskResult) bool {
	switch id := r.Result["providerid"].(type) {
	case nil:
		return false
	case string:
		return id != ""
	}
	return true
}

// retryDelay is the delay after a failed try, up to a fifth longer by a hash of
// the task, so that what failed together does not come back together.
func retryDelay(in DecideInput, tries int) time.Duration {
	delay := spread(retryDelays[min(tries, len(retryDelays))-1], in.Row, tries)
	if asked := in.Result.RetryAfter; asked > int(MaxRetryDelay/time.Second) {
		delay = MaxRetryDelay
	} else if asked > 0 {
		delay = max(delay, time.Duration(asked)*time.Second)
	}
	return delay
}

// spread makes a delay up to a fifth longer.
func spread(delay time.Duration, task loom.TaskID, tries int) time.Duration {
	return delay + time.Duration(mix(uint64(task), uint64(tries))%1001)*(delay/5)/1000 //nolint:gosec // tries are counted
}

// mix hashes a task and its number of tries (the finalizer of splitmix64).
func mix(row, tries uint64) uint64 {
	x := row*0x9e3779b97f4a7c15 + tries
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// fail words the message of a task that is given up: "failed 3 times: no route".
func fail(what, last string) Decision {
	if last = strings.TrimSpace(last); last != "" {
		what += ": " + last
	}
	return Decision{Verdict: Fail, Message: what}
}
