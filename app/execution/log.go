package execution

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Limits of task logs.
const (
	logEvery     = 250 * time.Millisecond
	logBatch     = 64 << 10 // bytes that are stored without waiting
	logLine      = 16 << 10 // bytes of one line; longer ones are split
	logHead      = 1 << 20  // bytes kept from the beginning of an attempt's log
	logTail      = 3 << 20  // bytes kept from its end
	logLineExtra = 32       // bytes counted for a line beside its text
)

// Log writes the log of one attempt. Lines are numbered from 1 in the order of
// Add and stored in batches; Add never waits for the database. Close stores what
// is left.
type Log struct {
	ops *Operations
	key AttemptKey

	mu      sync.Mutex
	lines   []loom.LogLine // not stored yet
	bytes   int            // of lines
	seq     int
	total   int // bytes of all lines ever
	mark    int // number of the first line behind the head, 0 before there is one
	cut     int // lines from mark up to this one were left out, none while it is lower
	kept    []keptLine
	keptSum int
	closed  bool

	// wake and done are there from the first line on, with a goroutine that stores:
	// many attempts have nothing to say.
	wake, done chan struct{}
}

// keptLine is a stored line behind the head, which may have to go.
type keptLine struct{ seq, size int }

// Log begins to write the log of an attempt, in the background from its first line
// until the caller closes it.
func (o *Operations) Log(key AttemptKey) *Log { return &Log{ops: o, key: key} }

// Add appends text, split into lines. Stream is "stdout", "stderr" or "loom".
func (l *Log) Add(stream, text string) {
	level := "info"
	if stream == "stderr" {
		level = "warn"
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		for first := true; first || line != ""; first = false {
			part := line
			if len(part) > logLine {
				part = part[:runeEnd(part, logLine)]
			}
			line = line[len(part):]
			l.append(loom.LogLine{Attempt: l.key.Attempt, Time: now, Stream: stream, Level: level, Text: part})
		}
	}
	if l.bytes >= logBatch {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// runeEnd is the largest cut up to limit that splits no character.
func runeEnd(s string, limit int) int {
	for cut := limit; cut > limit-utf8.UTFMax; cut-- {
		if utf8.RuneStart(s[cut]) {
			return cut
		}
	}
	return limit
}

// append numbers a line. What was left out is said in the place of the first line that
// was, so that no other number is missing.
func (l *Log) append(line loom.LogLine) {
	size := len(line.Text) + logLineExtra
	if l.wake == nil {
		l.wake, l.done = make(chan struct{}, 1), make(chan struct{})
		go l.run(l.wake)
	}
	l.total += size
	if l.total > logHead && l.mark == 0 {
		l.mark, l.cut = l.seq+1, l.seq
	}
	l.seq++
	line.Seq = l.seq
	l.lines = append(l.lines, line)
	l.bytes += size
	if l.mark == 0 {
		return
	}
	l.kept = append(l.kept, keptLine{line.Seq, size})
	l.keptSum += size
	for l.keptSum > logTail {
		l.keptSum -= l.kept[0].size
		l.cut = l.kept[0].seq
		l.kept = l.kept[1:]
	}
	// Lines that go before they were stored are never stored.
	for len(l.lines) > 0 && l.lines[0].Seq >= l.mark && l.lines[0].Seq <= l.cut {
		l.bytes -= len(l.lines[0].Text) + logLineExtra
		l.lines = l.lines[1:]
	}
}

// run stores batches until wake is closed.
func (l *Log) run(wake <-chan struct{}) {
	defer close(l.done)
	clock := time.NewTicker(logEvery)
	defer clock.Stop()
	for stopping := false; ; {
		select {
		case <-clock.C:
		case _, open := <-wake:
			stopping = !open
		}
		err := l.flush()
		if stopping {
			for began := time.Now(); err != nil && time.Since(began) < l.ops.opts.LogPatience; {
				time.Sleep(logEvery)
				err = l.flush()
			}
			if err != nil {
				l.ops.opts.Logger.Warn("end of task log lost", "task_id", l.key.Task, "attempt", l.key.Attempt, "error", err)
			}
			return
		}
	}
}

// Close stores what is left. What is added afterwards is lost.
func (l *Log) Close() {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if l.wake == nil {
		return
	}
	if first {
		close(l.wake)
	}
	<-l.done
}

// flush stores what waits. After an error the same lines are stored again later:
// their numbers make that harmless.
func (l *Log) flush() error {
	l.mu.Lock()
	part := logPart{LogPart: store.LogPart{Key: l.key, Lines: l.lines}, mark: l.mark, cut: l.cut}
	last := l.seq
	size := l.bytes - len(l.lines)*logLineExtra
	l.mu.Unlock()
	if len(part.Lines) == 0 {
		return nil
	}
	if err := l.ops.logs.store(part); err != nil {
		return err
	}
	l.ops.opts.Logged(size)
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) > 0 && l.lines[0].Seq <= last {
		l.bytes -= len(l.lines[0].Text) + logLineExtra
		l.lines = l.lines[1:]
	}
	return nil
}

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
