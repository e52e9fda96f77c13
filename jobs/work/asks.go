package work

import (
	"slices"
	"sync"
)

// asks is what waits for a committer: whoever asks wakes it for the first one and when
// enough have come together, not each time.
type asks struct {
	// more is told of the first that waits, and of enough.
	more chan struct{}

	mu     sync.Mutex
	list   []commitAsk
	enough int
	closed bool
}

func newAsks() *asks { return &asks{more: make(chan struct{}, 1)} }

// put adds one; false when nobody takes any more.
func (a *asks) put(ask commitAsk) bool {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return false
	}
	a.list = append(a.list, ask)
	n, enough := len(a.list), a.enough
	a.mu.Unlock()
	if n == 1 || n == enough {
		a.tell()
	}
	return true
}

func (a *asks) tell() {
	select {
	case a.more <- struct{}{}:
	default: // it knows
	}
}

// waiting says how many wait, and that more is to be told when there are enough of them.
func (a *asks) waiting(enough int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.enough = enough
	return len(a.list)
}

// take gives at most so many of those who wait, the first ones first.
func (a *asks) take(most int) []commitAsk {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(most, len(a.list))
	batch := slices.Clone(a.list[:n])
	a.list = slices.Delete(a.list, 0, n)
	if len(a.list) > 0 {
		a.tell()
	}
	return batch
}

// remove takes back one that waits for its answer there; false when it was taken.
func (a *asks) remove(answer chan commitAnswer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.list, func(ask commitAsk) bool { return ask.answer == answer })
	if i < 0 {
		return false
	}
	a.list = slices.Delete(a.list, i, i+1)
	return true
}

// close turns away all who come, and gives those who wait.
func (a *asks) close() []commitAsk {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.list
	a.list, a.closed = nil, true
	return left
}
