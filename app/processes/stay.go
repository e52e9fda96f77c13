package processes

import (
	"context"
	"errors"
	"time"
)

// stayTimeout bounds what is asked of the database when a process comes and goes: one
// that is away must not keep a process from ending.
const stayTimeout = 3 * time.Second

// Stay keeps a process registered until ctx ends, and then takes it out: for processes
// that have nothing to lose with their lease. Where a lease is lost or the database is
// away, it begins another one under a new id as soon as it can, and hands what went
// wrong to trouble. Held is told when a lease begins and when it is lost.
func (f *Processes) Stay(ctx context.Context, p NewProcess, held func(bool), trouble func(error)) {
	delay := f.opts.RenewEvery / 10
	for ctx.Err() == nil {
		kept, err := f.stayOnce(ctx, p, held)
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

// stayOnce is one lease, from its beginning to its end; kept says that it began.
func (f *Processes) stayOnce(ctx context.Context, p NewProcess, held func(bool)) (kept bool, err error) {
	asking, cancel := context.WithTimeout(ctx, stayTimeout)
	id, err := f.Register(asking, p)
	cancel()
	if err != nil {
		// Its answer may have been lost, not its lease: that runs out.
		return false, err
	}
	held(true)
	lost := f.Keep(ctx, id, nil, func() bool { return ctx.Err() != nil }, func(Renewal) {})
	held(false)
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), stayTimeout)
	defer cancel()
	return true, errors.Join(lost, f.Deregister(leaving, id))
}
