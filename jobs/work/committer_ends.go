package work

import (
	"context"
	"slices"
	"time"

	"loom/app/execution"
	"loom/app/loom"
)

const (
	// lostAfter is how long after an answer got lost it is looked for attempts that
	// began nevertheless, and lostFor how long that is done again: the server may be
	// busy with a transaction of which nobody waits for the answer.
	lostAfter = time.Second
	lostFor   = time.Minute
	// factsMax is of how many attempts the facts are read at once.
	factsMax = 200
)

// commitEnds records successes in one transaction and begins there what they set
// free.
func (c *committer) commitEnds(ctx context.Context, asks []commitAsk) {
	finished := make([]execution.Finished, len(asks))
	ending := map[loom.TenantID]int{}
	for i, ask := range asks {
		finished[i] = execution.Finished{Key: ask.key, Result: *ask.result}
		if ask.tenant != "" {
			ending[ask.tenant]++
		}
	}
	lent := c.limiter.lend(ending)
	asked := time.Now()
	ends, err := c.ops.FinishTasks(ctx, c.process, finished, roomOf(lent))
	if err != nil {
		c.giveUp(lent)
		if len(asks) > 1 {
			// One result that the database refuses must not hold up the others.
			for _, ask := range asks {
				c.commitEnds(ctx, []commitAsk{ask})
			}
			return
		}
		asks[0].answer <- commitAnswer{err: err}
		return
	}
	c.watch.Committed("end", len(asks), time.Since(asked))
	if len(ends.Taken) > 0 {
		c.watch.Committed("start", len(ends.Taken), time.Since(asked))
	}
	// The next batch is on its way to the database while this one is handed over.
	c.handing.Wait()
	c.handing.Go(func() {
		c.attempts.expect(ends.Taken)
		done := make([]execution.AttemptKey, 0, len(asks))
		for _, ask := range asks {
			if ends.Accepted[ask.key.Task] {
				done = append(done, ask.key)
			}
		}
		c.recorded(done)
		c.handOver(ctx, asks, ends, lent)
	})
}

// fill begins on free slots what waits behind that which River brought: River brings some
// hundred tasks of an operation, whatever the number of workers.
func (c *committer) fill(ctx context.Context) {
	lent := c.limiter.lend(c.limiter.busy())
	if len(lent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	asked := time.Now()
	ends, err := c.ops.Fill(ctx, c.process, roomOf(lent))
	if err != nil {
		c.giveUp(lent)
		return
	}
	if len(ends.Taken) > 0 {
		c.watch.Committed("start", len(ends.Taken), time.Since(asked))
	}
	c.handing.Wait()
	c.attempts.expect(ends.Taken)
	c.handOver(ctx, nil, ends, lent)
}

// roomOf gives how many tasks of each tenant may begin.
func roomOf(lent map[loom.TenantID]loan) map[loom.TenantID]int {
	room := make(map[loom.TenantID]int, len(lent))
	for t, n := range lent {
		room[t] = n.kept + n.free
	}
	return room
}

// giveUp gives back what was lent for a transaction of which nobody knows whether it was
// committed.
func (c *committer) giveUp(lent map[loom.TenantID]loan) {
	for t, n := range lent {
		c.limiter.giveBack(t, n.free)
	}
	c.doubt()
}

// handOver answers those whose successes were recorded and gives them, or others on
// free slots, what began.
func (c *committer) handOver(ctx context.Context, asks []commitAsk, ends execution.Ends, lent map[loom.TenantID]loan) {
	taken := map[loom.TenantID][]*execution.Taken{}
	for i := range ends.Taken {
		t := &ends.Taken[i]
		taken[t.Tenant] = append(taken[t.Tenant], t)
		c.watch.Hop(0)
	}
	answers := make([]commitAnswer, len(asks))
	next := func(t loom.TenantID) *execution.Taken {
		waiting := taken[t]
		if len(waiting) == 0 {
			return nil
		}
		taken[t] = waiting[1:]
		return waiting[0]
	}
	for i, ask := range asks {
		answers[i] = commitAnswer{yes: ends.Accepted[ask.key.Task], at: ends.At}
		if answers[i].yes && ask.tenant != "" {
			answers[i].next = next(ask.tenant)
		}
	}
	var onFree []*execution.Taken
	for t, n := range lent {
		used := 0
		for ; used < n.free && len(taken[t]) > 0; used++ {
			onFree = append(onFree, next(t))
		}
		c.limiter.giveBack(t, n.free-used)
	}
	// Where a result was late, its slot is somebody else's now.
	for i, ask := range asks {
		if !answers[i].yes && ask.tenant != "" && len(taken[ask.tenant]) > 0 {
			onFree = append(onFree, next(ask.tenant))
			answers[i].slotGone = true
		}
	}
	c.others.Add(len(onFree)) // before anybody who asked can be gone
	for i, ask := range asks {
		if answers[i].next == nil {
			ask.answer <- answers[i]
		}
	}
	var given []hand
	give := func(h hand) {
		if facts := h.taken.Facts(); facts != nil {
			h.begin(facts)
			return
		}
		given = append(given, h)
	}
	for i := range asks {
		if t := answers[i].next; t != nil {
			give(hand{t, func(f *execution.SpecFacts) { answers[i].facts = f; asks[i].answer <- answers[i] }})
		}
	}
	for _, t := range onFree {
		give(hand{t, func(f *execution.SpecFacts) {
			go func() {
				defer c.others.Done()
				c.takeUp(*t, f, true)
			}()
		}})
	}
	if len(given) == 0 {
		return
	}
	// The next batch need not wait until the facts of this one are read, and those whose
	// facts are there not for the others.
	go func() {
		for some := range slices.Chunk(given, factsMax) {
			keys := make([]execution.AttemptKey, len(some))
			for i, h := range some {
				keys[i] = h.taken.Key
			}
			facts := c.facts(ctx, keys)
			for _, h := range some {
				h.begin(facts[h.taken.Key])
			}
		}
	}()
}

// hand is an attempt that began and what lets it run.
type hand struct {
	taken *execution.Taken
	begin func(facts *execution.SpecFacts)
}

// doubt notes that a transaction may or may not have been committed.
func (c *committer) doubt() {
	c.doubtful = time.Now().Add(lostFor)
	c.recheck = time.After(lostAfter)
}

// findLost takes up attempts that began here without anybody knowing. It runs in turn
// with what makes more of them.
func (c *committer) findLost(ctx context.Context) {
	c.handing.Wait() // what it brings is not known yet
	c.recheck = nil
	if time.Now().Before(c.doubtful) {
		c.recheck = time.After(5 * lostAfter)
	}
	// What ends meanwhile is known before, what begins is known after.
	before := c.attempts.known()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	held, err := c.ops.HeldAttempts(ctx, c.process)
	if err != nil {
		c.recheck = time.After(lostAfter)
		return
	}
	after := c.attempts.known()
	for _, t := range held {
		if before[t.Key] || after[t.Key] {
			continue
		}
		c.attempts.expect([]execution.Taken{t})
		c.others.Go(func() { c.takeUp(t, nil, false) })
	}
}
