package processes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/failpoint"
	"loom/app/loom"
	"loom/app/store"
)

// ErrLeaseLost says that a process could not renew its lease in time, or that
// its row is gone: others have its work, or soon will.
var ErrLeaseLost = errors.New("the lease of this process is lost")

// Keep renews the lease of a process on a connection of its own, at once on
// every nudge and else every RenewEvery, and hands each renewal to on. It returns nil
// when ctx ends, and ErrLeaseLost when the lease is lost or may be; on must not
// block. Draining tells others that the process takes nothing new.
func (f *Processes) Keep(ctx context.Context, id loom.ProcessID, nudge <-chan struct{}, draining func() bool, on func(Renewal)) error {
	conn := &ownConn{db: f.db}
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
			f.tell(ctx, conn, id)
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

// ownConn is a connection that is kept, and replaced after an error.
type ownConn struct {
	db   *sqlx.DB
	conn *sqlx.Conn
}

func (c *ownConn) renew(ctx context.Context, id loom.ProcessID, lease time.Duration, draining bool) (Renewal, error) {
	if c.conn == nil {
		conn, err := c.db.Connx(ctx)
		if err != nil {
			return Renewal{}, fmt.Errorf("take a connection for the process lease: %w", err)
		}
		c.conn = conn
	}
	return store.RenewProcess(ctx, c.conn, id, lease, draining)
}

// tell notes what went wrong in the process since the last time. That it cannot be noted
// is no reason to lose the lease: it is tried again with the next renewal.
func (f *Processes) tell(ctx context.Context, c *ownConn, id loom.ProcessID) {
	found, ok := f.troubles.Load(id)
	if !ok || c.conn == nil {
		return
	}
	t := found.(*Trouble)
	text, at, due := t.due()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.RenewEvery)
	defer cancel()
	if store.SetProcessTrouble(ctx, c.conn, id, text, at) == nil {
		t.told(at)
	}
}

func (c *ownConn) drop() {
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
