package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"loom/app/execution"
	"loom/app/loom"
)

const (
	// commitLinger is how long a batch waits for more where much is under way.
	commitLinger = 2 * time.Millisecond
	// commitMax bounds a batch.
	commitMax = 500
	// commitQuiet is the number of tasks up to which a batch does not wait: with so
	// few, waiting costs time and saves nothing.
	commitQuiet = 64
	// commitWorth is how many tasks are worth a transaction; commitShare is the part of
	// those under way that is, where it is more: the others run while it is stored.
	commitWorth = 200
	commitShare = 4
)

// committer records starts and successes in batches: one transaction for many
// tasks is what makes thousands of tasks a second possible. Starts and successes
// have a loop each, so that neither waits for the other.
type committer struct {
	ops     *execution.Operations
	process loom.ProcessID
	limiter *limiter
	watch   Metrics
	starts  *commitQueue
	ends    *commitQueue
	// recorded is called with the successes that are stored.
	recorded func(keys []execution.AttemptKey)
}

// commitRequest is a start, or with result a success.
type commitRequest struct {
	key    execution.AttemptKey
	result *loom.TaskResult
	answer chan commitAnswer
}

// commitAnswer says whether the attempt began, or whether its result counts.
type commitAnswer struct {
	accepted bool
	// at is when the attempt began, by the clock of the database.
	at time.Time
	// facts of the attempt that began; nil where they could not be read.
	facts *execution.SpecFacts
	err   error
}

func newCommitter(ops *execution.Operations, process loom.ProcessID, limiter *limiter, watch Metrics) *committer {
	return &committer{ops: ops, process: process, limiter: limiter, watch: watch, starts: newCommitQueue(), ends: newCommitQueue()}
}

// start begins an attempt and answers whether it is to run, with the facts its
// spec is built from unless they could not be read.
func (c *committer) start(ctx context.Context, key execution.AttemptKey) (commitAnswer, error) {
	a := c.ask(ctx, c.starts, commitRequest{key: key, answer: make(chan commitAnswer, 1)})
	return a, a.err
}

// complete records a success and reports whether it counts.
func (c *committer) complete(ctx context.Context, key execution.AttemptKey, result loom.TaskResult) (bool, error) {
	a := c.ask(ctx, c.ends, commitRequest{key: key, result: &result, answer: make(chan commitAnswer, 1)})
	return a.accepted, a.err
}

func (c *committer) ask(ctx context.Context, to *commitQueue, ask commitRequest) commitAnswer {
	if err := ctx.Err(); err != nil {
		return commitAnswer{err: context.Cause(ctx)}
	}
	if !to.put(ask) {
		return commitAnswer{err: context.Canceled}
	}
	select {
	case answer := <-ask.answer:
		return answer
	case <-ctx.Done():
		if to.remove(ask.answer) {
			return commitAnswer{err: context.Cause(ctx)}
		}
	}
	// Answered in any case: the transaction has its own time limit.
	return <-ask.answer
}

// run collects and commits until ctx ends.
func (c *committer) run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { c.loop(ctx, c.starts, c.commitStarts) })
	loops.Go(func() { c.loop(ctx, c.ends, c.commitEnds) })
	loops.Wait()
}

func (c *committer) loop(ctx context.Context, asks *commitQueue, commit func(context.Context, []commitRequest)) {
	for {
		select {
		case <-ctx.Done():
			for _, ask := range asks.close() {
				ask.answer <- commitAnswer{err: context.Canceled}
			}
			return
		case <-asks.more:
			batch := c.collect(asks)
			if len(batch) == 0 {
				continue
			}
			// Not the context of any caller: a batch belongs to many.
			commitCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			commit(commitCtx, batch)
			cancel()
		}
	}
}

// collect takes those who ask. Where much is under way it waits a moment until there are
// enough of them to be worth a transaction.
func (c *committer) collect(asks *commitQueue) []commitRequest {
	load := c.limiter.load()
	enough := min(max(load/commitShare, min(load, commitWorth)), commitMax)
	if load > commitQuiet && asks.waiting(enough) < enough {
		timer := time.NewTimer(commitLinger)
		defer timer.Stop()
		for asks.waiting(enough) < enough {
			select {
			case <-asks.more:
				continue
			case <-timer.C:
			}
			break
		}
	}
	return asks.take(commitMax)
}

// commitStarts begins attempts in one transaction.
func (c *committer) commitStarts(ctx context.Context, asks []commitRequest) {
	keys := make([]execution.AttemptKey, len(asks))
	for i, ask := range asks {
		keys[i] = ask.key
	}
	asked := time.Now()
	begun, at, err := c.ops.StartTasks(ctx, c.process, keys)
	if err != nil && len(asks) > 1 {
		// One start that the database refuses must not hold up the others.
		for _, ask := range asks {
			c.commitStarts(ctx, []commitRequest{ask})
		}
		return
	}
	if err == nil {
		c.watch.Committed("start", len(asks), time.Since(asked))
	}
	yes := make(map[execution.AttemptKey]bool, len(begun))
	for _, key := range begun {
		yes[key] = true
	}
	// The next batch need not wait until the facts of this one are read.
	go func() {
		facts := c.facts(ctx, begun)
		for _, ask := range asks {
			ask.answer <- commitAnswer{accepted: yes[ask.key], at: at, facts: facts[ask.key], err: err}
		}
	}()
}

// commitEnds records successes in one transaction.
func (c *committer) commitEnds(ctx context.Context, asks []commitRequest) {
	finished := make([]execution.Finished, len(asks))
	for i, ask := range asks {
		finished[i] = execution.Finished{Key: ask.key, Result: *ask.result}
	}
	asked := time.Now()
	accepted, err := c.ops.CompleteTasks(ctx, finished)
	switch {
	case err != nil && len(asks) > 1:
		// One result that the database refuses must not hold up the others.
		for _, ask := range asks {
			c.commitEnds(ctx, []commitRequest{ask})
		}
		return
	case err != nil:
		asks[0].answer <- commitAnswer{err: err}
		return
	}
	c.watch.Committed("end", len(asks), time.Since(asked))
	done := make([]execution.AttemptKey, 0, len(asks))
	for _, ask := range asks {
		if accepted[ask.key.Task] {
			done = append(done, ask.key)
		}
	}
	c.recorded(done)
	for _, ask := range asks {
		ask.answer <- commitAnswer{accepted: accepted[ask.key.Task]}
	}
}

// facts reads what begun attempts need. One that cannot be read must not hold up the
// others: without facts each attempt reads its own.
func (c *committer) facts(ctx context.Context, begun []execution.AttemptKey) map[execution.AttemptKey]*execution.SpecFacts {
	if len(begun) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	facts, _ := c.ops.SpecFacts(ctx, begun) //nolint:errcheck // as said
	return facts
}

// commitQueue is what waits for a committer: whoever asks wakes it for the first one and when
// enough have come together, not each time.
type commitQueue struct {
	// more learns of the first that waits, and of enough.
	more chan struct{}

	mu     sync.Mutex
	list   []commitRequest
	enough int
	closed bool
}

func newCommitQueue() *commitQueue { return &commitQueue{more: make(chan struct{}, 1)} }

// put adds one; false when nobody takes any longer.
func (a *commitQueue) put(ask commitRequest) bool {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return false
	}
	a.list = append(a.list, ask)
	n, enough := len(a.list), a.enough
	a.mu.Unlock()
	if n == 1 || n == enough {
		a.wake()
	}
	return true
}

func (a *commitQueue) wake() {
	select {
	case a.more <- struct{}{}:
	default: // it knows
	}
}

// waiting says how many wait, and that more is to be told when there are enough of them.
func (a *commitQueue) waiting(enough int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enough = enough
	return len(a.list)
}

// take returns at most so many of those who wait, the first ones first.
func (a *commitQueue) take(most int) []commitRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(most, len(a.list))
	batch := slices.Clone(a.list[:n])
	a.list = slices.Delete(a.list, 0, n)
	if len(a.list) > 0 {
		a.wake()
	}
	return batch
}

// remove takes back one that waits for its answer there; false when it was taken.
func (a *commitQueue) remove(answer chan commitAnswer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.list, func(ask commitRequest) bool { return ask.answer == answer })
	if i < 0 {
		return false
	}
	a.list = slices.Delete(a.list, i, i+1)
	return true
}

// close turns away all who come, and gives those who wait.
func (a *commitQueue) close() []commitRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.list
	a.list, a.closed = nil, true
	return left
}
