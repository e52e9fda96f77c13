package conformance

import (
	"context"
	"errors"
	"time"

	"loom/app/loom"
)

// cancelled stops each action at its nth sign of work, 0 before it begins; doing
// it again then gives one machine, and none in the end.
func (run *providerRun) cancelled(at int) {
	spec, remove := run.machine()
	defer remove()
	for _, action := range []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionDelete} {
		if action == loom.ActionConfirm && run.NoConfirm {
			continue
		}
		ctx, cancel := context.WithCancelCause(run.ctx)
		s := &sink{onSign: func(n int) {
			if n == at {
				cancel(errCancelled)
			}
		}}
		if at == 0 {
			cancel(errCancelled)
		}
		c := run.doWith(ctx, spec, action, s)
		cancel(nil)
		if c.hung || c.panicked != nil {
			return
		}
		if c.err != nil && !errors.Is(c.err, errCancelled) && !errors.Is(c.err, context.Canceled) {
			run.fail("%s, cancelled: %s", action, c)
		}
		if c.result.Retryable != nil && !*c.result.Retryable && c.result.Status != 0 {
			run.fail("%s, cancelled, says that trying again is useless: %s", action, c)
		}
		if !run.must(spec, action) {
			return
		}
		if action == loom.ActionDelete {
			run.count(spec, 0, "after a cancelled DELETE and another")
		} else {
			run.count(spec, 1, "after a cancelled "+string(action)+" and another")
		}
	}
}

// waiting stops a CONFIRM that would wait forever.
func (run *providerRun) waiting() {
	run.need(!run.NoConfirm, "there is nothing to sign in to")
	spec, remove := run.machine()
	defer remove()
	run.arrange(Pending, 1_000_000)
	if !run.must(spec, loom.ActionCreate) {
		return
	}
	ctx, cancel := context.WithCancelCause(run.ctx)
	defer cancel(nil)
	patience := time.AfterFunc(2*time.Second, func() { cancel(errCancelled) })
	defer patience.Stop()
	c := run.doWith(ctx, spec, loom.ActionConfirm, &sink{onSign: func(int) { cancel(errCancelled) }})
	if c.ok() {
		run.fail("CONFIRM succeeds though the machine does not run")
	}
	run.heal()
	run.must(spec, loom.ActionConfirm)
}

var errCancelled = errors.New("cancelled by a conformance check")
