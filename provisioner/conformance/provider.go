package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// ProviderTarget is a provider with what its checks need to know.
type ProviderTarget struct {
	Provider provider.Provider
	// Spec returns the task of the nth machine, whose key no other machine has. Action
	// and results are set by the checks.
	Spec func(n int) *loom.TaskSpec
	// Machines returns the ids of all machines there are by idempotency key. Nil: by
	// the provider's own List, if it has one.
	Machines func(ctx context.Context) (map[string][]string, error)
	// Refused makes the credentials of a task wrong; nil if there are none.
	Refused func(*loom.TaskSpec)
	// Arrange makes the cloud misbehave from now on, or, with n 0, behave again.
	// Unknown() for what it cannot do; nil if it can do nothing.
	Arrange func(ctx context.Context, fault Fault, n int) error
	// NoRetryHint allows failures because of throttling that do not say that trying again
	// helps: plugins of a revision of the protocol before 1.1 need not say it.
	NoRetryHint bool
	// NoConfirm leaves out CONFIRM, where there is nothing to sign in to.
	NoConfirm bool
	// Context carries what the provider finds in its context; nil:
	// context.Background.
	Context context.Context
	// Secrets of the tasks that must not be said.
	Secrets []string
	// Limit of one action, 2 minutes when 0.
	Limit time.Duration
}

// providerRun is one run of the checks.
type providerRun struct {
	ProviderTarget
	ctx context.Context
	r   Reporter
	n   int
	// keys are those of all machines that the checks asked for.
	keys []string
	// check is the name of the present one; failed whether it found something.
	check  string
	failed bool
}

// Provider checks a provider. It makes machines and removes them again; ctx ends
// the checks, not what they clean up.
func Provider(ctx context.Context, r Reporter, t ProviderTarget) {
	run := &providerRun{ProviderTarget: t, ctx: ctx, r: r}
	run.Limit = cmp.Or(run.Limit, 2*time.Minute)
	if run.Machines == nil {
		run.Machines = run.lister()
	}
	_, lists := run.Provider.(provider.Lister)
	_, reboots := run.Provider.(provider.Rebooter)
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"type: its description is valid", run.describes},
		{"create: reports the machine at once, and how to sign in", run.creates},
		{"create: repeated, it finds its machine", run.repeats},
		{"create: two at once give two machines", run.two},
		{"create: nothing is doubled when Loom forgets the answer", run.forgotten},
		{"create: nothing is doubled when the cloud's answer is lost", run.lost},
		{"confirm: gives addresses, also when repeated", run.confirms},
		{"confirm: waits for a machine that is slow to run", run.pending},
		{"confirm: knows a machine that the cloud does not show yet", run.lagging},
		{"throttling: no action gives up for good or doubles anything", run.throttled},
		{"list: names a machine and what it is", optional(lists, run.lists)},
		{"reboot: may be repeated, and makes no machine", optional(reboots, run.reboots)},
		{"delete: removes the machine and clears its stored values", run.deletes},
		{"delete: what is gone is success", run.gone},
		{"delete: without an id it finds the machine by its key", run.unnamed},
		{"credentials: CREATE makes nothing and says so", run.refusedCreate},
		{"credentials: CONFIRM fails", run.refusedConfirm},
		{"credentials: DELETE fails and the machine stays known", run.refusedDelete},
		{"cancel: an action that was cancelled before makes nothing twice", func() { run.cancelled(0) }},
		{"cancel: at the first sign of work", func() { run.cancelled(1) }},
		{"cancel: later", func() { run.cancelled(2) }},
		{"cancel: while it waits for the cloud", run.waiting},
		{"end: nothing is left", run.nothingLeft},
	} {
		if c.do == nil {
			continue
		}
		if ctx.Err() != nil {
			r.Skip(c.name, "the checks were stopped")
			continue
		}
		run.check, run.failed = c.name, false
		skipped := run.guard(c.do)
		if !run.failed && skipped == "" {
			r.Pass(c.name)
		} else if skipped != "" {
			r.Skip(c.name, skipped)
		}
	}
}

// optional is the check of what not all providers have, nil without it.
func optional(has bool, do func()) func() {
	if has {
		return do
	}
	return nil
}

// skip ends a check that cannot be made.
type skip string

// guard carries out a check; a panic with a skip ends it.
func (run *providerRun) guard(do func()) (skipped string) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case skip:
			skipped = string(why)
		default:
			panic(why)
		}
	}()
	do()
	return ""
}

func (run *providerRun) fail(format string, args ...any) {
	run.failed = true
	run.r.Fail(run.check, fmt.Sprintf(format, args...))
}

func (run *providerRun) need(there bool, what string) {
	if !there {
		panic(skip(what))
	}
}

// lister asks the provider itself.
func (run *providerRun) lister() func(context.Context) (map[string][]string, error) {
	list, ok := run.Provider.(provider.Lister)
	if !ok {
		return nil
	}
	return func(ctx context.Context) (map[string][]string, error) {
		machines, err := list.List(ctx, run.call())
		found := map[string][]string{}
		for _, m := range machines {
			found[m.Key] = append(found[m.Key], m.ID)
		}
		return found, err
	}
}

// call is a question to the provider outside of tasks.
func (run *providerRun) call() *loom.ProviderCall {
	spec := run.Spec(0)
	return &loom.ProviderCall{Tenant: spec.Tenant, Provider: spec.Provider, Sensitive: spec.Sensitive, Reach: spec.Reach}
}

// machine returns the task of a new machine and removes it when the check is over.
func (run *providerRun) machine() (*loom.TaskSpec, func()) {
	run.n++
	spec := run.Spec(run.n)
	run.keys = append(run.keys, spec.IdempotencyKey)
	if spec.Results == nil {
		spec.Results = map[string]any{}
	}
	return spec, func() {
		run.heal()
		ctx := run.base(context.WithoutCancel(run.ctx))
		c := perform(ctx, run.Limit, &sink{}, func(ctx context.Context, s loom.Sink) (loom.TaskResult, error) {
			return run.Provider.Delete(ctx, with(spec, loom.ActionDelete), s)
		})
		if !c.ok() {
			run.fail("the machine could not be removed in the end: %s", c)
		}
	}
}

func (run *providerRun) base(ctx context.Context) context.Context {
	if run.Context == nil {
		return ctx
	}
	return joined{Context: ctx, values: run.Context}
}

// joined has the values of another context.
type joined struct {
	context.Context
	values context.Context
}

// Value looks in both.
func (j joined) Value(key any) any {
	if value := j.Context.Value(key); value != nil {
		return value
	}
	return j.values.Value(key)
}

func with(spec *loom.TaskSpec, action loom.TaskAction) *loom.TaskSpec {
	given := *spec
	given.Action = action
	given.Results = maps.Clone(spec.Results)
	if given.Attempt == 0 {
		given.Attempt = 1
	}
	return &given
}

// do carries out an action as Loom does: what it reports is kept for the next.
func (run *providerRun) do(spec *loom.TaskSpec, action loom.TaskAction) *call {
	return run.doWith(run.ctx, spec, action, &sink{})
}

func (run *providerRun) doWith(ctx context.Context, spec *loom.TaskSpec, action loom.TaskAction, s *sink) *call {
	c := perform(run.base(ctx), run.Limit, s, func(ctx context.Context, s loom.Sink) (loom.TaskResult, error) {
		given := with(spec, action)
		switch action {
		case loom.ActionCreate:
			return run.Provider.Create(ctx, given, s)
		case loom.ActionConfirm:
			return run.Provider.Confirm(ctx, given, s)
		case loom.ActionReboot:
			return run.Provider.(provider.Rebooter).Reboot(ctx, given, s)
		}
		return run.Provider.Delete(ctx, given, s)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, facts := range []map[string]any{s.facts, c.result.Result} {
		for name, value := range facts {
			if value == nil {
				delete(spec.Results, name)
				continue
			}
			spec.Results[name] = value
		}
	}
	if c.result.Status == 0 && len(c.result.Addresses) > 0 {
		spec.Addresses = c.result.Addresses
	}
	return c
}

// must carries out an action that has to succeed.
func (run *providerRun) must(spec *loom.TaskSpec, action loom.TaskAction) bool {
	c := run.do(spec, action)
	if !c.ok() {
		run.fail("%s failed: %s", action, c)
	}
	return c.ok()
}

// count checks how many machines have the key of a task. Without a way to list
// them it knows nothing.
func (run *providerRun) count(spec *loom.TaskSpec, want int, when string) {
	if run.Machines == nil {
		return
	}
	all, err := run.Machines(run.base(context.WithoutCancel(run.ctx)))
	switch got := len(all[spec.IdempotencyKey]); {
	case err != nil:
		run.fail("the machines cannot be listed: %v", err)
	case got != want:
		run.fail("%s there are %d machines with the key, not %d", when, got, want)
	}
}

// arrange makes the cloud misbehave, or skips the check.
func (run *providerRun) arrange(fault Fault, n int) {
	run.need(run.Arrange != nil, "the target can arrange no faults")
	if err := run.Arrange(run.ctx, fault, n); err == errUnknown { //nolint:errorlint // it is never wrapped
		panic(skip("the target cannot arrange “" + string(fault) + "”"))
	} else if err != nil {
		run.fail("arrange “%s”: %v", fault, err)
	}
}

func (run *providerRun) heal() {
	if run.Arrange == nil {
		return
	}
	for _, fault := range Faults {
		if err := run.Arrange(context.WithoutCancel(run.ctx), fault, 0); err != nil && err != errUnknown { //nolint:errorlint // it is never wrapped
			run.fail("end “%s”: %v", fault, err)
		}
	}
}
