package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/failpoint"
	"loom/app/loom"
	"loom/app/store"
)

// ErrLeaseLost says that a process could not renew its lease in time, or that
// its row is gone: others have its work, or soon will.
var ErrLeaseLost = errors.New("the lease of this process is lost")

// HoldLease renews the lease of a process on a connection of its own, at once on
// every nudge and else every RenewEvery, and hands each renewal to on. It returns nil
// when ctx ends, and ErrLeaseLost when the lease is lost or may be; on must not
// block. Draining tells others that the process takes nothing new.
func (f *Processes) HoldLease(ctx context.Context, id loom.ProcessID, nudge <-chan struct{}, draining func() bool, on func(Renewal)) error {
	conn := &leaseConn{db: f.db}
	defer conn.drop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	lastGood := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-nudge:
		}
		asked := time.Now()
		left := f.opts.GiveUpAfter - asked.Sub(lastGood)
		if left <= 0 {
			return fmt.Errorf("%w: no renewal for %s", ErrLeaseLost, asked.Sub(lastGood).Round(time.Millisecond))
		}
		tryCtx, cancel := context.WithTimeout(ctx, left)
		renewal, err := conn.renew(tryCtx, id, f.opts.Lease, draining())
		cancel()
		switch {
		case err == nil:
			failpoint.At(failpoint.Renewed)
			// Counted from the question: the answer may have been long under way.
			lastGood, renewal.Until = asked, asked.Add(f.opts.GiveUpAfter)
			on(renewal)
			f.recordError(ctx, conn, id)
			timer.Reset(f.opts.RenewEvery)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, loom.NotFound):
			return fmt.Errorf("%w: its row is gone", ErrLeaseLost)
		default:
			conn.drop()
			timer.Reset(f.opts.RenewEvery / 10)
		}
	}
}

// leaseConn is a connection that is kept, and replaced after an error.
type leaseConn struct {
	db   *sqlx.DB
	conn *sqlx.Conn
}

func (c *leaseConn) renew(ctx context.Context, id loom.ProcessID, lease time.Duration, draining bool) (Renewal, error) {
	if c.conn == nil {
		conn, err := c.db.Connx(ctx)
		if err != nil {
			return Renewal{}, fmt.Errorf("take a connection for the process lease: %w", err)
		}
		c.conn = conn
	}
	return store.RenewProcess(ctx, c.conn, id, lease, draining)
}

// recordError notes what went wrong in the process since the last time. That it cannot be noted
// is no reason to lose the lease: it is tried again with the next renewal.
func (f *Processes) recordError(ctx context.Context, c *leaseConn, id loom.ProcessID) {
	found, ok := f.lastErrors.Load(id)
	if !ok || c.conn == nil {
		return
	}
	t := found.(*LastError)
	text, at, due := t.unwritten()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.RenewEvery)
	defer cancel()
	if store.SetProcessTrouble(ctx, c.conn, id, text, at) == nil {
		t.markWritten(at)
	}
}

func (c *leaseConn) drop() {
	if c.conn != nil {
		c.conn.Close() //nolint:errcheck // it goes back or is broken, either is fine
		c.conn = nil
	}
}

// Wakeup is a reason to look: River jobs became available on Queue, or, with
// Stop, attempts are to be stopped. An empty one says look at everything.
type Wakeup struct {
	Queue string
	Stop  bool
}

// Wakeups listens for new work and for attempts to stop, on a connection of its
// own to dsn, until ctx ends.
func (f *Processes) Wakeups(ctx context.Context, dsn string) (<-chan Wakeup, error) {
	river, err := store.RiverChannel(ctx, f.db)
	if err != nil {
		return nil, err
	}
	notices, err := store.Listen(ctx, dsn, river, store.StopChannel)
	if err != nil {
		return nil, err
	}
	out := make(chan Wakeup)
	go func() {
		defer close(out)
		for n := range notices {
			w := Wakeup{Stop: n.Channel == store.StopChannel}
			if n.Channel == river {
				var body struct {
					Queue string `json:"queue"`
				}
				// What cannot be read means: look at everything.
				_ = json.Unmarshal([]byte(n.Payload), &body)
				w.Queue = body.Queue
			}
			select {
			case out <- w:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// registerTimeout bounds what is asked of the database when a process comes and goes: one
// that is away must not keep a process from ending.
const registerTimeout = 3 * time.Second

// StayRegistered keeps a process registered until ctx ends, and then takes it out: for processes
// that have nothing to lose with their lease. Where a lease is lost or the database is
// away, it begins another one under a new id as soon as it can, and hands what went
// wrong to trouble. Held is told when a lease begins and when it is lost.
func (f *Processes) StayRegistered(ctx context.Context, p NewProcess, held func(bool), trouble func(error)) {
	delay := f.opts.RenewEvery / 10
	for ctx.Err() == nil {
		kept, err := f.registerOnce(ctx, p, held)
		if err != nil && ctx.Err() == nil {
			trouble(err)
		}
		if kept {
			delay = f.opts.RenewEvery / 10
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		delay = min(2*delay, 2*f.opts.RenewEvery)
	}
}

// registerOnce is one lease, from its beginning to its end; kept says that it began.
func (f *Processes) registerOnce(ctx context.Context, p NewProcess, held func(bool)) (kept bool, err error) {
	asking, cancel := context.WithTimeout(ctx, registerTimeout)
	id, err := f.Register(asking, p)
	cancel()
	if err != nil {
		// Its answer may have been lost, not its lease: that runs out.
		return false, err
	}
	held(true)
	lost := f.HoldLease(ctx, id, nil, func() bool { return ctx.Err() != nil }, func(Renewal) {})
	held(false)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerTimeout)
	defer cancel()
	return true, errors.Join(lost, f.Deregister(leaving, id))
}

// maxErrorText is how much of an error the list of processes shows, in characters.
const maxErrorText = 500

// LastError remembers the last error that a process wrote to its log. Its zero value is
// ready for use, by any number of goroutines.
type LastError struct {
	mu      sync.Mutex
	text    string
	at      time.Time
	written time.Time // what the list of processes shows
}

// Log returns a logger that writes where log does, and remembers errors.
func (t *LastError) Log(log *slog.Logger) *slog.Logger {
	return slog.New(errorHandler{log.Handler(), t})
}

func (t *LastError) note(r *slog.Record) {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			text += ": " + a.Value.Resolve().String()
		}
		return true
	})
	if runes := []rune(strings.ToValidUTF8(text, "")); len(runes) > maxErrorText {
		text = string(runes[:maxErrorText]) + "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Time.After(t.at) {
		t.text, t.at = text, r.Time
	}
}

// unwritten returns what is not written yet.
func (t *LastError) unwritten() (text string, at time.Time, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text, t.at, t.at.After(t.written)
}

func (t *LastError) markWritten(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = at
}

// markUnwritten makes the last error due once more, for a process that begins anew.
func (t *LastError) markUnwritten() { t.markWritten(time.Time{}) }

// errorHandler hands errors to a LastError, also those that are not to be written.
type errorHandler struct {
	slog.Handler
	trouble *LastError
}

// Enabled reports whether lines of a level are looked at.
func (h errorHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || h.Handler.Enabled(ctx, level)
}

// Handle writes a line, and remembers it when it is an error.
func (h errorHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		h.trouble.note(&r)
		if !h.Handler.Enabled(ctx, r.Level) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps remembering.
func (h errorHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorHandler{h.Handler.WithAttrs(attrs), h.trouble}
}

// WithGroup keeps remembering.
func (h errorHandler) WithGroup(name string) slog.Handler {
	return errorHandler{h.Handler.WithGroup(name), h.trouble}
}
