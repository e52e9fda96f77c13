package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/remote"
)

// AutomatorTarget is an automator with what its checks need to know.
type AutomatorTarget struct {
	Automator automator.Automator
	// Spec returns a task of an action that succeeds, a new one each time.
	Spec func(action loom.TaskAction) *loom.TaskSpec
	// Actions are those to check, besides BOOTSTRAP.
	Actions []loom.TaskAction
	// Conn is the connection to the machine, nil for automators that need none.
	Conn *remote.Conn
	// Files is the directory with the tenant's resources, or empty.
	Files string
	// Broken makes a task fail on the machine; nil: that is not checked.
	Broken func(*loom.TaskSpec)
	// Slow makes a task last until it is cancelled; nil: that is not checked.
	Slow func(*loom.TaskSpec)
	// Secrets of the tasks that must not be said.
	Secrets []string
	// Limit of one action, 2 minutes when 0.
	Limit time.Duration
}

type automatorRun struct {
	AutomatorTarget
	ctx    context.Context
	r      Reporter
	check  string
	failed bool
}

// Automator checks an automator. What it does to the machine stays there.
func Automator(ctx context.Context, r Reporter, t AutomatorTarget) {
	run := &automatorRun{AutomatorTarget: t, ctx: ctx, r: r}
	run.Limit = cmp.Or(run.Limit, 2*time.Minute)
	run.the("type: its description is valid", true, "", func() {
		described := run.Automator.Type()
		for _, e := range described.Validate() {
			run.fail("%s: %s", e.Field, e.Message)
		}
	})
	run.the("bootstrap: succeeds, also when repeated", true, "", func() {
		for range 2 {
			if c := run.do(run.ctx, run.Spec(loom.ActionBootstrap), loom.ActionBootstrap, &sink{}); !c.ok() {
				run.fail("bootstrap failed: %s", c)
			}
		}
	})
	for _, action := range run.Actions {
		run.the(string(action)+": succeeds, also when repeated", true, "", func() {
			for range 2 {
				if c := run.do(run.ctx, run.Spec(action), action, &sink{}); !c.ok() {
					run.fail("%s failed: %s", action, c)
				}
			}
		})
	}
	some := loom.ActionStart
	if len(run.Actions) > 0 {
		some = run.Actions[0]
	}
	run.the("failure: what fails on the machine fails here, with a message", run.Broken != nil, "the target cannot make an action fail", func() {
		spec := run.Spec(some)
		run.Broken(spec)
		c := run.do(run.ctx, spec, some, &sink{})
		if c.ok() || c.err != nil {
			run.fail("%s", c)
		} else if c.result.Message == "" {
			run.fail("the failure has no message")
		}
	})
	run.the("fields: an action without any is no crash", true, "", func() {
		spec := run.Spec(some)
		if spec.Service != nil {
			service := *spec.Service
			service.Action.Fields = nil
			spec.Service = &service
		}
		if c := run.do(run.ctx, spec, some, &sink{}); c.err != nil {
			run.fail("%s", c)
		}
	})
	run.the("cancel: an action that was cancelled before", true, "", func() { run.cancelled(some, 0) })
	run.the("cancel: while the action runs", run.Slow != nil, "the target cannot make an action last", func() { run.cancelled(some, 1) })
	run.the("cancel: it can be done again afterwards", true, "", func() {
		if c := run.do(run.ctx, run.Spec(some), some, &sink{}); !c.ok() {
			run.fail("%s failed: %s", some, c)
		}
	})
}

// the makes one check.
func (run *automatorRun) the(name string, can bool, why string, do func()) {
	switch {
	case run.ctx.Err() != nil:
		run.r.Skip(name, "the checks were stopped")
		return
	case !can:
		run.r.Skip(name, why)
		return
	}
	run.check, run.failed = name, false
	do()
	if !run.failed {
		run.r.Pass(name)
	}
}

func (run *automatorRun) fail(format string, args ...any) {
	run.failed = true
	run.r.Fail(run.check, fmt.Sprintf(format, args...))
}

func (run *automatorRun) do(ctx context.Context, spec *loom.TaskSpec, action loom.TaskAction, s *sink) *call {
	c := perform(ctx, run.Limit, s, func(ctx context.Context, s loom.Sink) (loom.TaskResult, error) {
		given := with(spec, action)
		if action == loom.ActionBootstrap {
			return run.Automator.Bootstrap(ctx, given, run.Conn, run.Files, s)
		}
		return run.Automator.Run(ctx, given, run.Conn, run.Files, s)
	})
	if c.hung || c.panicked != nil {
		run.fail("%s: %s", action, c)
		return c
	}
	if place := c.leaks(run.Secrets); place != "" {
		run.fail("%s: a secret is in %s", action, place)
	}
	for name := range c.result.Result {
		if loom.FixedConfigKey(name) {
			run.fail("%s: the result has %q, a name that belongs to Loom", action, name)
		}
	}
	return c
}

// cancelled stops an action at its nth sign of work, 0 before it begins.
func (run *automatorRun) cancelled(action loom.TaskAction, at int) {
	ctx, cancel := context.WithCancelCause(run.ctx)
	defer cancel(nil)
	spec := run.Spec(action)
	if at == 0 {
		cancel(errCancelled)
	} else {
		run.Slow(spec)
		patience := time.AfterFunc(2*time.Second, func() { cancel(errCancelled) })
		defer patience.Stop()
	}
	c := run.do(ctx, spec, action, &sink{onSign: func(n int) {
		if n == at {
			cancel(errCancelled)
		}
	}})
	if c.err != nil && !errors.Is(c.err, errCancelled) && !errors.Is(c.err, context.Canceled) {
		run.fail("%s, cancelled: %s", action, c)
	}
	if at > 0 && c.ok() {
		run.fail("%s was to last until it is cancelled, and succeeded", action)
	}
	if c.result.Retryable != nil && !*c.result.Retryable && c.result.Status != 0 {
		run.fail("%s, cancelled, says that trying again is useless: %s", action, c)
	}
}
