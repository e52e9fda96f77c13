package execution

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/store"
)

const (
	// logWriters is how many transactions store task logs at once.
	logWriters = 2
	// logParts is how many logs a transaction takes at most, and logTime how long it
	// may take.
	logParts = 200
	logTime  = time.Minute
)

// logStore stores what many logs have to say in few transactions: what comes while
// one is under way goes into the next one.
type logStore struct {
	db *sqlx.DB

	mu      sync.Mutex
	waiting []logPart
	writers int
}

// logPart is what one log wants stored: its lines, and that those from mark to cut are
// left out, which is told in the place of mark; none are while cut is below mark, or
// mark 0.
type logPart struct {
	store.LogPart
	mark, cut int
	stored    chan<- error
}

// store stores a part and returns once that is certain.
func (s *logStore) store(part logPart) error {
	stored := make(chan error, 1)
	part.stored = stored
	s.mu.Lock()
	s.waiting = append(s.waiting, part)
	if s.writers < logWriters {
		s.writers++
		go s.write()
	}
	s.mu.Unlock()
	return <-stored
}

// write stores until nothing waits.
func (s *logStore) write() {
	for {
		s.mu.Lock()
		n := min(len(s.waiting), logParts)
		parts := s.waiting[:n:n]
		s.waiting = s.waiting[n:]
		if n == 0 {
			s.writers--
			s.waiting = nil
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		err := s.commit(parts)
		for _, part := range parts {
			if err != nil && n > 1 {
				// What the database refuses of one must not hold up the others.
				part.stored <- s.commit([]logPart{part})
				continue
			}
			part.stored <- err
		}
	}
}

// commit stores parts in one transaction.
func (s *logStore) commit(parts []logPart) error {
	ctx, cancel := context.WithTimeout(context.Background(), logTime)
	defer cancel()
	return store.Exec(ctx, s.db, func(tx *sqlx.Tx) error {
		lines := make([]store.LogPart, len(parts))
		for i, part := range parts {
			lines[i] = part.LogPart
		}
		if err := store.AppendLogsAllTenants(ctx, tx, lines); err != nil {
			return err
		}
		for _, part := range parts {
			if part.mark == 0 || part.cut < part.mark {
				continue
			}
			text := fmt.Sprintf("[%d lines left out here: a log keeps its first 1 MiB and its last 3 MiB]", part.cut-part.mark+1)
			if err := store.CutLogAllTenants(ctx, tx, part.Key, part.mark, part.cut, text); err != nil {
				return err
			}
		}
		return nil
	})
}
