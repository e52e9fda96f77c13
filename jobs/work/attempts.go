package work

import (
	"context"
	"sync"
	"time"

	"loom/app/execution"
)

// attempts are the attempts that run in this process, so that they can be
// stopped.
type attempts struct {
	mu      sync.Mutex
	running map[execution.AttemptKey]context.CancelCauseFunc
	// over is set once everything is to stop: what begins then is stopped at once.
	over error
	// until is when the lease of the process has to be renewed, zero as long as nobody
	// knows.
	until time.Time
}

func newAttempts() *attempts {
	return &attempts{running: map[execution.AttemptKey]context.CancelCauseFunc{}}
}

// claim notes an attempt before it is asked to begin; false when it is here
// already: the same delivery came twice.
func (a *attempts) claim(ctx context.Context, key execution.AttemptKey) (context.Context, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, twice := a.running[key]; twice {
		return ctx, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a.running[key] = cancel
	if a.over != nil {
		cancel(a.over)
	}
	return ctx, true
}

// done forgets an attempt.
func (a *attempts) done(key execution.AttemptKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.running[key]; cancel != nil {
		cancel(nil)
	}
	delete(a.running, key)
}

// stop cancels one attempt with a cause; unknown ones are over already.
func (a *attempts) stop(key execution.AttemptKey, cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.running[key]; cancel != nil {
		cancel(cause)
	}
}

// stopAll cancels every attempt, and those to come, with a cause.
func (a *attempts) stopAll(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = cause
	for _, cancel := range a.running {
		cancel(cause)
	}
}

// setLease says until when the lease of the process holds.
func (a *attempts) setLease(until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = until
}

// mayBegin reports whether the lease still holds as far as the clock tells. A process
// that stood still goes on anywhere, often before it has looked after its lease: what
// it was about to do may be another's by now. Both clocks count: one of them stands
// still while a host sleeps.
func (a *attempts) mayBegin(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.until.IsZero() || !now.After(a.until) && !now.Round(0).After(a.until.Round(0))
}
