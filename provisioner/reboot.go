package provisioner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// rebootScript asks the machine to reboot. It returns while the machine still runs.
const rebootScript = `if [ -d /run/systemd/system ]; then exec systemctl reboot; fi
exec reboot`

// reboot starts or restarts the machine of a node through its provider, else over SSH. It
// makes no machine, may run again after any outcome, and ends when the machine has gone down
// as far as can be seen: CONFIRM, which follows, then waits for one that has come up again.
func (r *Runner) reboot(ctx context.Context, spec *loom.TaskSpec, set string, sink loom.Sink) (loom.TaskResult, error) {
	p, ok := r.Providers.Get(spec.Provider.Type)
	if !ok {
		return missing(spec, r.Providers.Missing(spec.Provider.Type)), nil
	}
	if r.Pool != nil {
		defer r.Pool.Forget(remote.Target{Node: spec.Node})
	}
	rebooter, ok := p.(provider.Rebooter)
	if !ok {
		return r.rebootOverSSH(ctx, spec, set, sink)
	}
	reboot := func() (loom.TaskResult, error) {
		return r.guard(spec, func() (loom.TaskResult, error) {
			return rebooter.Reboot(provider.WithEnv(ctx, r.env(spec.Provider.Type, set)), spec, sink)
		})
	}
	if u, ok := p.(provider.Unconnected); ok && u.Unconnected() {
		return reboot()
	}
	connecting, cancel := context.WithTimeoutCause(ctx, aliveLimit, errTimedOut)
	conn, release, _, _ := r.connect(connecting, spec, set) // one that cannot be signed in to is what reboots are for
	if cancel(); conn == nil {
		return reboot()
	}
	defer release()
	result, err := reboot()
	if err != nil || result.Status != 0 {
		return result, err
	}
	return awaitDown(ctx, conn, result)
}

// rebootOverSSH reboots the machine as root. A connection that breaks is a machine that goes
// down.
func (r *Runner) rebootOverSSH(ctx context.Context, spec *loom.TaskSpec, set string, sink loom.Sink) (loom.TaskResult, error) {
	failed := func(result loom.TaskResult, format string, args ...any) loom.TaskResult {
		result.Status = 1
		result.Message = fmt.Sprintf(format, args...) + fmt.Sprintf("; Loom reboots machines of providers of type %s over SSH only: restart it by hand and retry, or replace the node", spec.Provider.Type)
		return result
	}
	conn, release, refused, err := r.connect(ctx, spec, set)
	switch {
	case err != nil:
		return refused, err
	case conn == nil:
		return failed(refused, "the machine cannot be signed in to: %s", firstLine(refused.Message)), nil
	}
	defer release()
	out, err := conn.Exec(ctx, remote.Command{Text: rebootScript, Root: true, Line: sink.Log})
	switch failure, trouble := remote.Failure(err); {
	case err == nil && !out.OK():
		return failed(failure, "the machine refuses to reboot (status %d): %s", out.Code, remote.LastLine(out.Stderr)), nil
	case trouble != nil:
		return failure, trouble
	case err != nil && !errors.Is(err, remote.ErrLost) && !errors.Is(err, remote.ErrSignal): // what goes down ends the command, too
		return failed(failure, "the machine cannot be rebooted: %s", firstLine(failure.Message)), nil
	}
	return awaitDown(ctx, conn, loom.TaskResult{Message: "the machine reboots"})
}

// downLimit is how long a machine that was told to reboot may go on as before. EC2 waits for
// four minutes until it resets a machine by force.
const downLimit = 5 * time.Minute

// awaitDown returns the result once a machine that is to reboot gives no sign of life any
// longer on a connection from before.
func awaitDown(ctx context.Context, conn *remote.Conn, result loom.TaskResult) (loom.TaskResult, error) {
	tick, limit := time.NewTicker(time.Second), time.NewTimer(downLimit)
	defer tick.Stop()
	defer limit.Stop()
	for conn.Alive(ctx, aliveLimit) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return result, context.Cause(ctx)
		case <-limit.C:
			return loom.TaskResult{Status: 1, Message: fmt.Sprintf("the machine did not reboot within %d s; look at its console, restart it by hand and retry", int(downLimit.Seconds()))}, nil
		}
	}
	return result, ctx.Err()
}
