package provisioner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

const (
	// ListLimit is how long it may take to list its machines.
	ListLimit = 10 * time.Minute
)

// Probe asks a provider whether it works as it is set up, or with call.Ask whether it
// has that size or image. What hinders it is in the checks; no secret of call is in any text,
// and what a provider says is bounded. The checks of a provider that does not end in time are
// those that it told. An error is the cause with which ctx ended.
func (r *Runner) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	limited, cancel := context.WithTimeoutCause(ctx, loom.ProbeLimit, errTimedOut)
	defer cancel()
	clean := cleaner{NewRedactor(call.Sensitive...)}
	var mu sync.Mutex
	var told []loom.ProbeCheck
	over, next := false, call.Told
	call = r.reaching(call)
	call.Told = func(c loom.ProbeCheck) {
		mu.Lock()
		defer mu.Unlock()
		if over || len(told) == loom.MaxProbeChecks {
			return
		}
		c = clean.check(c)
		told = append(told, c)
		if next != nil {
			next(c)
		}
	}
	type answer struct {
		probe loom.Probe
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		probe, err := r.probe(limited, call, clean.Redactor)
		answered <- answer{probe, err}
	}()
	var got answer
	select {
	case got = <-answered:
	case <-limited.Done():
		select { // it may say more of why
		case got = <-answered:
		case <-time.After(time.Second):
		}
	}
	mu.Lock()
	over = true
	mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return loom.Probe{}, context.Cause(ctx)
	case limited.Err() != nil:
		got.probe = loom.Probe{Checks: told}
		if _, failed := got.probe.Failed(); !failed {
			got.probe.Checks = append(got.probe.Checks, loom.ProbeCheck{Name: "time", Message: fmt.Sprintf("The provider did not answer within %s; look whether its API can be reached from the provisioner.", loom.ProbeLimit)})
		}
	case got.err != nil:
		got.probe = loom.FailedProbe("probe", "The provisioner could not ask the provider: "+said(got.err))
	}
	return clean.probe(got.probe), nil
}

func (r *Runner) probe(ctx context.Context, call *loom.ProviderCall, redactor *Redactor) (loom.Probe, error) {
	p, ok := r.Providers.Get(call.Provider.Type)
	if !ok {
		return loom.FailedProbe("plugin", r.Providers.Missing(call.Provider.Type)), nil
	}
	prober, ok := p.(provider.Prober)
	if !ok {
		return loom.FailedProbe("probe", fmt.Sprintf("The plugin “%s” cannot say whether it works; make a small cluster to find out.", call.Provider.Type)), nil
	}
	ctx, release, err := r.ask(ctx, call, redactor)
	if err != nil {
		return loom.Probe{}, err
	}
	defer release()
	if call.Ask.Kind != "" {
		return guarded(r, call, func() (loom.Probe, error) { return verify(ctx, prober, call) })
	}
	probe, err := guarded(r, call, func() (loom.Probe, error) { return prober.Probe(ctx, call) })
	// Last: what the fields can be set to is known by then.
	if absent := p.Type().Parameters["admin"].Missing(call.Provider.Fields); err == nil && ctx.Err() == nil && probe.OK && len(absent) > 0 {
		probe.Check("settings", false, "The provider is incomplete: set "+labels(absent[0])+".")
	}
	return probe, err
}

// Machines lists the machines of a provider that carry Loom's labels. listed is
// false for a type that cannot list them, or whose plugin is not here: then
// nothing is known. Errors hold no secret of call.
func (r *Runner) Machines(ctx context.Context, call *loom.ProviderCall) (machines []loom.TaggedMachine, listed bool, err error) {
	p, _ := r.Providers.Get(call.Provider.Type)
	lister, ok := p.(provider.Lister)
	if !ok {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ListLimit, errTimedOut)
	defer cancel()
	redactor := NewRedactor(call.Sensitive...)
	call = r.reaching(call)
	ctx, release, err := r.ask(ctx, call, redactor)
	if err != nil {
		return nil, false, hush(redactor, err)
	}
	defer release()
	machines, err = guarded(r, call, func() ([]loom.TaggedMachine, error) { return lister.List(ctx, call) })
	if err != nil {
		return nil, false, hush(redactor, err)
	}
	return machines, true, nil
}

// Remove deletes a machine that no node claims, as the DELETE task of its node
// would have; with alone, nothing but the machine of m's id. Errors of kind loom.Unavailable say why it could not, without
// secrets; others are those of ctx and of this process.
func (r *Runner) Remove(ctx context.Context, call *loom.ProviderCall, m loom.TaggedMachine, alone bool) error {
	spec := &loom.TaskSpec{
		Tenant: call.Tenant, Action: loom.ActionDelete, Attempt: 1, Deadline: time.Now().Add(Limit(loom.ActionDelete)),
		IdempotencyKey: m.Key, Alone: alone, Node: m.Node, Hostname: m.Name, Provider: call.Provider,
		Results: map[string]any{}, ResourceSet: call.ResourceSet, Sensitive: call.Sensitive, PrivateKey: call.PrivateKey, Reach: call.Reach,
	}
	maps.Copy(spec.Results, call.Facts)
	spec.Results["providerid"] = m.ID
	if cluster, ok := loom.ParseClusterID(m.Cluster); ok {
		spec.Ref.Operation.Cluster = cluster
	}
	result := r.Run(ctx, spec, silent{})
	switch {
	case result.Status == 0:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return loom.NewError(loom.Unavailable, "%s", strings.TrimSuffix(result.Message, ".")+".")
}

// reaching is a call with what the installation says of what may be connected to.
func (r *Runner) reaching(call *loom.ProviderCall) *loom.ProviderCall {
	given := *call
	given.Reach = r.reach(call.Reach)
	return &given
}

// ask lends a provider what it may need to be asked outside of a task.
func (r *Runner) ask(ctx context.Context, call *loom.ProviderCall, redactor *Redactor) (context.Context, func(), error) {
	set, release := "", func() {}
	if r.Cache != nil && call.ResourceSet > 0 {
		dir, _, done, err := r.Cache.Set(ctx, call.Tenant, call.ResourceSet)
		if err != nil {
			return nil, nil, err
		}
		set, release = dir, done
		redactor.Add(secretFiles(set, &loom.TaskSpec{Provider: call.Provider})...)
	}
	env := provider.Env{Files: below(set, "providertypes", call.Provider.Type)}
	if r.Pool != nil {
		env.Dialer, env.Handshakes = r.Pool, r.Pool.Dialer()
	}
	return provider.WithEnv(ctx, env), release, nil
}

// guarded turns a panic of a plugin into an error; the stack goes to the
// process's log.
func guarded[T any](r *Runner, call *loom.ProviderCall, do func() (T, error)) (result T, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			logger := r.Log
			if logger == nil {
				logger = slog.Default()
			}
			logger.Error("plugin panicked", "tenant_id", call.Tenant, "provider", call.Provider.Name, "stack", string(debug.Stack()))
			err = loom.NewError(loom.Unavailable, "The plugin crashed: %v.", trouble)
		}
	}()
	return do()
}

// hush makes an error without secrets, also for what is logged of it.
func hush(redactor *Redactor, err error) error {
	var e *loom.Error
	if errors.As(err, &e) {
		return loom.NewError(e.Kind, "%s", redactor.Text(e.Message))
	}
	return errors.New(redactor.Text(err.Error()))
}

// said is the part of an error for people.
func said(err error) string {
	var e *loom.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

func labels(fields map[string]loom.FieldSchema) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		names = append(names, "“"+fields[name].Label+"”")
	}
	return strings.Join(names, ", ")
}

// silent drops what a task says.
type silent struct{}

// Log drops the line.
func (silent) Log(string, string) {}

// Fact drops the results: there is no node.
func (silent) Fact(map[string]any) error { return nil }
