package cloud

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	// sharedFor is how long an answer of a cloud is used by later tasks at most.
	sharedFor = 15 * time.Minute
	// sharedBefore is how long before its own end it is asked for again.
	sharedBefore = time.Minute
)

// answers keeps what clouds said to this process: tokens above all, which all tasks with
// the same credentials share.
var answers = memory{of: map[[sha256.Size]byte]*fact{}, salt: rand.Text()}

type memory struct {
	mu   sync.Mutex
	of   map[[sha256.Size]byte]*fact
	salt string
}

// fact is what a cloud said, or is being asked for: then done is closed in the end.
type fact struct {
	value any
	until time.Time
	done  chan struct{}
	err   error
	// left says that whoever asked had to stop, which is no answer for others.
	left bool
}

// Shared returns what the cloud said to an earlier task of the tenant about the same, or asks
// it: of several tasks one asks, and the others wait for its answer. ask gives the
// answer and when it ends, the zero time where it does not say so. about tells apart
// what is asked for: name, addresses and credentials; how the cloud is reached counts
// by itself. Sessions for probes always ask, for themselves: what they sign in with may not be
// stored at all.
func Shared[T any](ctx context.Context, s *Session, about []string, ask func(context.Context) (T, time.Time, error)) (T, error) {
	if s.brief {
		value, _, err := ask(ctx)
		return value, err
	}
	key := answers.key(s, about)
	for {
		known, mine := answers.begin(key)
		if mine {
			var value T
			err := answers.keep(ctx, key, known, func() (any, time.Time, error) {
				v, until, err := ask(ctx)
				value = v
				return v, until, err
			})
			return value, err
		}
		select {
		case <-known.done:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
		if value, ok := known.value.(T); ok || known.err != nil && !known.left {
			return value, known.err
		}
	}
}

// Forget drops what Shared gave, so that it is asked for again: once, however many tasks
// find that it does not hold.
func Forget[T comparable](s *Session, about []string, value T) {
	key := answers.key(s, about)
	answers.mu.Lock()
	defer answers.mu.Unlock()
	if f := answers.of[key]; f != nil && !f.asking() && f.value == any(value) {
		delete(answers.of, key)
	}
}

// key hides what it is made of, for credentials are among it.
func (m *memory) key(s *Session, about []string) [sha256.Size]byte {
	text, err := json.Marshal([]any{m.salt, s.tenant, s.kind, s.Reach.Key(), s.Insecure, s.authority(), about})
	if err != nil {
		panic(fmt.Sprintf("write down what is shared: %v", err)) // texts and a switch
	}
	return sha256.Sum256(text)
}

// begin returns what is known or being asked for; mine says that the caller has to ask.
func (m *memory) begin(key [sha256.Size]byte) (f *fact, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	f = m.of[key]
	if f != nil && (f.asking() || now.Before(f.until)) {
		return f, false
	}
	for other, old := range m.of {
		if !old.asking() && !now.Before(old.until) {
			delete(m.of, other)
		}
	}
	f = &fact{done: make(chan struct{})}
	m.of[key] = f
	return f, true
}

func (f *fact) asking() bool {
	select {
	case <-f.done:
		return false
	default:
		return true
	}
}

// keep asks, and tells everybody who waits. What failed is not kept.
func (m *memory) keep(ctx context.Context, key [sha256.Size]byte, f *fact, ask func() (any, time.Time, error)) error {
	f.left = true
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if f.value == nil && m.of[key] == f {
			delete(m.of, key)
		}
		close(f.done)
	}()
	value, until, err := ask()
	f.left = ctx.Err() != nil
	if f.err = err; err != nil {
		return err
	}
	f.value, f.until = value, time.Now().Add(sharedFor)
	if end := until.Add(-sharedBefore); !until.IsZero() && end.Before(f.until) {
		f.until = end
	}
	return nil
}
