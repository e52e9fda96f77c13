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
	"time"

	"loom/app/loom"
	"loom/provisioner/provider"
)

const (
	// ProbeLimit is how long a provider may take to be probed; whoever asked waits.
	ProbeLimit = 50 * time.Second
	// ListLimit is how long it may take to list its machines.
	ListLimit = 10 * time.Minute
)

// Probe asks a provider whether it works as it is set up, or with call.Ask whether it
// has that size or image. What hinders it is in
// the checks, and no secret of call is in any text; an error is trouble of this
// process, or the cause with which ctx ended.
func (r *Runner) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	limited, cancel := context.WithTimeoutCause(ctx, ProbeLimit, errTimedOut)
	defer cancel()
	redactor := NewRedactor(call.Sensitive...)
	call = r.reaching(call)
	probe, err := r.probe(limited, call, redactor)
	switch {
	case ctx.Err() != nil:
		return loom.Probe{}, context.Cause(ctx)
	case limited.Err() != nil:
		probe = loom.FailedProbe("time", fmt.Sprintf("The provider did not answer within %s; look whether its API can be reached from the provisioner.", ProbeLimit))
	case err != nil:
		probe = loom.FailedProbe("probe", "The provisioner could not ask the provider: "+said(err))
	}
	for i := range probe.Checks {
		c := &probe.Checks[i]
		c.Name, c.Message = redactor.Text(c.Name), redactor.Text(c.Message)
	}
	for i := range probe.Flavors {
		probe.Flavors[i].ID, probe.Flavors[i].Name = redactor.Text(probe.Flavors[i].ID), redactor.Text(probe.Flavors[i].Name)
	}
	for i := range probe.Images {
		probe.Images[i].ID, probe.Images[i].Name = redactor.Text(probe.Images[i].ID), redactor.Text(probe.Images[i].Name)
	}
	return probe, nil
}

func (r *Runner) probe(ctx context.Context, call *loom.ProviderCall, redactor *Redactor) (loom.Probe, error) {
	p, ok := r.Providers.Get(call.Provider.Type)
	if !ok {
		return loom.FailedProbe("plugin", r.Providers.Missing(call.Provider.Type)), nil
	}
	if absent := p.Type().Parameters["admin"].Missing(call.Provider.Fields); len(absent) > 0 {
		return loom.FailedProbe("settings", "The provider is incomplete: set "+labels(absent[0])+"."), nil
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
	return guarded(r, call, func() (loom.Probe, error) { return prober.Probe(ctx, call) })
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
