package provisioner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
	"loom/provisioner/resource"
)

// Runner carries out attempts. It may be used by many goroutines at once.
type Runner struct {
	Providers  *provider.Registry
	Automators *automator.Registry
	// Pool keeps connections to nodes; it is the caller's to close.
	Pool *remote.Pool
	// Cache of plugin resources; nil: there are none but those in Files.
	Cache *Cache
	// Files is a set of plugin resources that was laid out by hand, for tasks without
	// a tenant; see Cache.Set. Usually empty.
	Files string
	// Networks are those that the installation adds to what tenants reach, or takes away.
	Networks []loom.ReachNetwork
	// Log takes stack traces of plugins that panic; nil: slog.Default().
	Log *slog.Logger
}

// Run carries out one attempt and always gives a result: panics and errors of
// plugins, the time limit and the cause with which ctx was cancelled (ErrAborted,
// ErrInterrupted) are part of it. Secrets are hidden in all that goes to the
// sink's log and in message and output of the result.
func (r *Runner) Run(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
	begin := time.Now()
	redactor := NewRedactor(sensitive(spec)...)
	quiet := redactor.Sink(sink)
	deadline := spec.Deadline
	if deadline.IsZero() {
		deadline = begin.Add(loom.DefaultTaskLimit(spec.Action))
	}
	ctx, cancel := context.WithDeadlineCause(ctx, deadline, errTimedOut)
	defer cancel()

	result, err := r.guard(spec, func() (loom.TaskResult, error) { return r.attempt(ctx, spec, quiet, redactor) })
	result = conclude(ctx, result, err, time.Since(begin))
	keepFixed(&result, quiet)
	quiet.Flush()
	redactor.Add(passwordsIn(result.Result)...)
	result.Message = firstLine(redactor.Text(result.Message))
	result.Stdout, result.Stderr = redactor.Text(result.Stdout), redactor.Text(result.Stderr)
	return result
}

// attempt fetches the tenant's files and calls the plugin.
func (r *Runner) attempt(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink, redactor *Redactor) (loom.TaskResult, error) {
	given := *spec
	given.Reach = r.reach(spec.Reach)
	if h, ok := r.localMachines(spec.Provider.Type); ok {
		if spec.Action != loom.ActionDelete {
			if err := h.Adopted(ctx, spec); err != nil {
				return loom.TaskResult{}, err
			}
		}
		given.Reach.Machine = h.Address(spec)
	}
	spec = &given
	if !spec.Action.Valid() {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("unknown task %q", spec.Action)}, nil
	}
	set := r.Files
	if r.Cache != nil && spec.ResourceSet > 0 {
		dir, _, release, err := r.Cache.Set(ctx, spec.Tenant, spec.ResourceSet)
		if err != nil {
			return withoutFiles(spec, err, sink)
		}
		defer release()
		set = dir
		redactor.Add(r.Cache.secretFiles(set, spec)...)
	}
	switch spec.Action {
	case loom.ActionCreate, loom.ActionConfirm, loom.ActionDelete:
		return r.provide(ctx, spec, set, sink)
	case loom.ActionReboot:
		result, err := r.reboot(ctx, spec, set, sink)
		result.KeepMachine = true // whatever came of it
		return result, err
	case loom.ActionKeys:
		return r.keys(ctx, spec, set, sink)
	case loom.ActionBootstrap:
		return r.bootstrap(ctx, spec, set, sink)
	}
	return r.serve(ctx, spec, set, sink)
}

// withoutFiles is the result of a task whose files are not to be had. While the store is
// away the task waits; a file that is lost does not come back by itself.
func withoutFiles(spec *loom.TaskSpec, err error, sink loom.Sink) (loom.TaskResult, error) {
	switch {
	case errors.Is(err, errLost):
		return missing(spec, err.Error()), nil
	case errors.Is(err, loom.Unavailable):
		message := "waits for files: " + loom.AsError(err).Message
		sink.Log("loom", message)
		return loom.TaskResult{Status: loom.StatusWaits, Message: message, Interrupted: true}, nil
	}
	return loom.TaskResult{}, err
}

// reach adds to what a tenant may what the installation says.
func (r *Runner) reach(tenant loom.Reach) loom.Reach {
	tenant.Networks, tenant.LocalNetworks, tenant.Machine = r.Networks, nil, netip.Addr{}
	for _, name := range r.Providers.Carried() {
		if h, ok := r.localMachines(name); ok {
			tenant.LocalNetworks = append(tenant.LocalNetworks, h.Networks()...)
		}
	}
	return tenant
}

func (r *Runner) localMachines(providerType string) (provider.LocalMachines, bool) {
	p, _ := r.Providers.Get(providerType)
	h, ok := p.(provider.LocalMachines)
	return h, ok
}

func (r *Runner) provide(ctx context.Context, spec *loom.TaskSpec, set string, sink loom.Sink) (loom.TaskResult, error) {
	p, ok := r.Providers.Get(spec.Provider.Type)
	if !ok {
		return missing(spec, r.Providers.Missing(spec.Provider.Type)), nil
	}
	ctx = provider.WithEnv(ctx, r.env(spec.Provider.Type, set))
	call := func(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
		return r.create(ctx, p, spec, sink)
	}
	switch spec.Action {
	case loom.ActionConfirm:
		call = p.Confirm
	case loom.ActionDelete:
		call = p.Delete
		if r.Pool != nil {
			defer r.Pool.Forget(remote.Target{Node: spec.Node})
		}
	}
	result, err := r.guard(spec, func() (loom.TaskResult, error) { return call(ctx, spec, sink) })
	if _, invents := p.(provider.Keyed); invents && err == nil && result.Status == 0 && spec.Action == loom.ActionConfirm {
		provider.Invented(spec, &result, sink)
	}
	if err == nil && result.Status == 0 && spec.Action == loom.ActionDelete && spec.Results[loom.KeysFact] != nil {
		// They went with the machine, whatever the provider says.
		result.Result = maps.Clone(result.Result)
		if result.Result == nil {
			result.Result = map[string]any{}
		}
		result.Result[loom.KeysFact] = nil
	}
	return result, err
}

// env is what the process lends to a provider of a type.
func (r *Runner) env(providerType, set string) provider.Env {
	env := provider.Env{Files: below(set, "providertypes", providerType)}
	if r.Pool != nil {
		env.Dialer, env.Handshakes = r.Pool, r.Pool.Dialer()
	}
	return env
}

// keys puts public keys on the machine, which stays the one it is whatever comes of it.
func (r *Runner) keys(ctx context.Context, spec *loom.TaskSpec, set string, sink loom.Sink) (loom.TaskResult, error) {
	p, ok := r.Providers.Get(spec.Provider.Type)
	if !ok {
		return missing(spec, r.Providers.Missing(spec.Provider.Type)), nil
	}
	if k, ok := p.(provider.Keyed); ok {
		result, err := r.guard(spec, func() (loom.TaskResult, error) { return k.Keys(ctx, spec, sink) })
		if err == nil && result.Status == 0 {
			provider.Invented(spec, &result, sink)
		}
		return result, err
	}
	conn, release, refused, err := r.connect(ctx, spec, set)
	if conn == nil {
		return refused, err
	}
	defer release()
	return provider.PutKeys(ctx, conn, spec, sink)
}

// connect signs in to the machine of a task; without a connection the result says why.
func (r *Runner) connect(ctx context.Context, spec *loom.TaskSpec, set string) (*remote.Conn, func(), loom.TaskResult, error) {
	target, err := remote.TargetOf(spec, below(set, "providertypes", spec.Provider.Type))
	if err == nil && target.Address == "" {
		return nil, nil, loom.TaskResult{Status: 1, Message: "the node has no address yet; it was never confirmed"}, nil
	}
	if err == nil {
		conn, release, err := r.Pool.Conn(ctx, target)
		if err == nil {
			return conn, release, loom.TaskResult{}, nil
		}
		refused, err := remote.Failure(err)
		return nil, nil, refused, err
	}
	refused, err := remote.Failure(err)
	return nil, nil, refused, err
}

// bootstrap prepares the machine for each automator in turn; later results win,
// the first failure stops.
func (r *Runner) bootstrap(ctx context.Context, spec *loom.TaskSpec, set string, sink loom.Sink) (loom.TaskResult, error) {
	if len(spec.Automators) == 0 {
		sink.Log("loom", "warning: no service of this node has an action, so there is nothing to prepare")
		return loom.TaskResult{}, nil
	}
	var merged loom.TaskResult
	each := *spec
	each.Results = maps.Clone(spec.Results)
	for _, name := range spec.Automators {
		result, err := r.automate(ctx, &each, name, set, sink, automator.Automator.Bootstrap)
		facts := merged.Result
		if len(result.Result) > 0 {
			if facts == nil {
				facts = map[string]any{}
			}
			maps.Copy(facts, result.Result)
			if sets, ok := facts[preparedFact]; ok && each.Results != nil {
				each.Results[preparedFact] = sets
			}
		}
		merged, merged.Result = result, facts
		if err != nil || result.Status != 0 {
			return merged, err
		}
	}
	return merged, nil
}

func (r *Runner) serve(ctx context.Context, spec *loom.TaskSpec, set string, sink loom.Sink) (loom.TaskResult, error) {
	if spec.Service == nil {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("task %s names no service", spec.Action)}, nil
	}
	result, err := r.automate(ctx, spec, spec.Service.Action.Type, set, sink, automator.Automator.Run)
	if err == nil && result.Status == 0 {
		result.Files = r.filesRun(spec, set)
	}
	return result, err
}

// missing is the result of a task whose plugin is not there: the next try would
// not find it either.
func missing(spec *loom.TaskSpec, message string) loom.TaskResult {
	never := false
	result := loom.TaskResult{Status: 1, Message: message, Retryable: &never}
	if spec.Action == loom.ActionCreate {
		result.Status = 200 // failed before anything was made
	}
	return result
}

type automatorCall func(automator.Automator, context.Context, *loom.TaskSpec, *remote.Conn, string, loom.Sink) (loom.TaskResult, error)

// automate connects to the machine and calls an automator of the type.
func (r *Runner) automate(ctx context.Context, spec *loom.TaskSpec, name, set string, sink loom.Sink, call automatorCall) (loom.TaskResult, error) {
	a, ok := r.Automators.Get(name)
	if !ok {
		return missing(spec, r.Automators.Missing(name)), nil
	}
	files := below(set, "automatortypes", name)
	offline, ok := a.(automator.Offline)
	a = reporter{a, name}
	if ok && offline.Offline() {
		return r.guard(spec, func() (loom.TaskResult, error) { return call(a, ctx, spec, nil, files, sink) })
	}
	conn, release, refused, err := r.connect(ctx, spec, set)
	if conn == nil {
		return refused, err
	}
	defer release()
	var learned map[string]string
	if len(remote.HostKeysOf(spec)) == 0 {
		learned = conn.HostKeys()
		sink.Log("loom", "warning: no host key of "+spec.Addresses[loom.AccessV4]+" was recorded; the one it shows now is taken")
	}
	if err := manageHosts(ctx, conn, spec); err != nil {
		return remote.Failure(err)
	}
	result, err := r.guard(spec, func() (loom.TaskResult, error) { return upToDate(ctx, a, name, spec, conn, files, sink, call) })
	if learned != nil {
		if result.Result == nil {
			result.Result = map[string]any{}
		}
		result.Result["ssh_host_keys"] = learned
	}
	return result, err
}

// guard turns a panic of a plugin into a failure; the stack goes to the
// process's log, not to users.
func (r *Runner) guard(spec *loom.TaskSpec, call func() (loom.TaskResult, error)) (result loom.TaskResult, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			logger := r.Log
			if logger == nil {
				logger = slog.Default()
			}
			logger.Error("plugin panicked", "task_id", spec.Ref.String(), "attempt", spec.Attempt, "stack", string(debug.Stack()))
			result, err = loom.TaskResult{Status: 1, Message: fmt.Sprintf("the plugin crashed: %v", trouble)}, nil
		}
	}()
	return call()
}

// conclude says what the end of ctx and an error make of a result. What was
// done before the end came is done: success stays success.
func conclude(ctx context.Context, result loom.TaskResult, err error, took time.Duration) loom.TaskResult {
	cause := context.Cause(ctx)
	if err == nil && result.Status == 0 || cause == nil && err == nil {
		return result
	}
	switch {
	case errors.Is(cause, ErrAborted):
		result.Status, result.Message, result.Aborted = -1, cause.Error(), true
	case errors.Is(cause, errTimedOut), errors.Is(cause, context.DeadlineExceeded):
		result.Status, result.Message = -1, fmt.Sprintf("timed out after %d s", int(took.Round(time.Second).Seconds()))
	case cause != nil:
		result.Status, result.Message, result.Interrupted = -1, "interrupted: "+cause.Error(), true
		if errors.Is(cause, ErrInterrupted) {
			result.Message = cause.Error()
		}
	default:
		result.Status, result.Message, result.Interrupted = 1, "provisioner error: "+err.Error(), true
	}
	return result
}

// keepFixed takes out results that would hide what Loom itself says of a node.
func keepFixed(result *loom.TaskResult, sink loom.Sink) {
	for _, key := range slices.Sorted(maps.Keys(result.Result)) {
		if loom.FixedConfigKey(key) {
			delete(result.Result, key)
			sink.Log("loom", fmt.Sprintf("warning: the result %q is refused: that name belongs to Loom", key))
		}
	}
}

func below(set string, elements ...string) string {
	if set == "" {
		return ""
	}
	return filepath.Join(append([]string{set}, elements...)...)
}

// create calls CREATE where the machine is to be made. A node for which a machine was
// asked for elsewhere, by an earlier attempt whose answer may be lost, gets that machine:
// only when there is none is another one made.
func (r *Runner) create(ctx context.Context, p provider.Provider, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	described, _ := r.Providers.Describe(spec.Provider.Type)
	present, before := described.Placing(spec.Provider.Fields), loom.Placed(spec.Results)
	place := present
	if len(before) > 0 && !maps.Equal(before, present) {
		there, err := r.machineAt(ctx, p, spec, before)
		if ctx.Err() != nil {
			return loom.TaskResult{}, context.Cause(ctx)
		}
		if err != nil {
			return loom.TaskResult{Status: 1, Message: fmt.Sprintf("the node may have a machine at %s, where it was asked for before, and that cannot be looked at: %s", loom.JSONText(before), said(err))}, nil
		}
		if there {
			place = before
		}
	}
	given := *spec
	given.Provider, given.Place = spec.Provider.AtPlace(place), place
	return p.Create(ctx, &given, sink)
}

// machineAt reports whether a node has, or may have, its machine at a place.
func (r *Runner) machineAt(ctx context.Context, p provider.Provider, spec *loom.TaskSpec, place map[string]any) (bool, error) {
	lister, ok := p.(provider.Lister)
	if id, _ := spec.Results["providerid"].(string); id != "" || !ok {
		return true, nil // it stays where it is
	}
	machines, err := lister.List(ctx, &loom.ProviderCall{Tenant: spec.Tenant, Provider: spec.Provider.AtPlace(place), ResourceSet: spec.ResourceSet,
		Sensitive: spec.Sensitive, PrivateKey: spec.PrivateKey, Facts: spec.Results, Reach: spec.Reach})
	return slices.ContainsFunc(machines, func(m loom.TaggedMachine) bool { return m.Key == spec.IdempotencyKey }), err
}

// filesRun returns the versions of the files that a service's action has run, by
// loom.ResourceRef.FileKey; nil where that is not known, or of no account. set is the
// directory that the files were taken from: its links lead to <version>/<name>.
func (r *Runner) filesRun(spec *loom.TaskSpec, set string) map[string]int {
	a, ok := r.Automators.Get(spec.Service.Action.Type)
	if !ok || set == "" || !spec.Action.SetsUp() {
		return nil
	}
	plugin := a.Type()
	if len(plugin.ResourceTypes) == 0 {
		return nil
	}
	// A machine that an older release prepared may still have older files.
	if _, known := preparedWith(spec, plugin.Name); !known {
		return nil
	}
	files := map[string]int{}
	kind := string(loom.KindAutomatorType)
	for typ := range plugin.ResourceTypes {
		names, _ := resource.Names(below(set, kind, plugin.Name), typ) // none where there are none
		for _, name := range names {
			ref := loom.ResourceRef{Kind: kind, Plugin: plugin.Name, Type: typ, Name: name}
			if !ref.UsedBy(&plugin, spec.Service.Action) {
				continue
			}
			target, err := os.Readlink(filepath.Join(below(set, kind, plugin.Name), typ, name))
			if err != nil {
				continue // a version that is not known
			}
			if version, err := strconv.Atoi(filepath.Base(filepath.Dir(target))); err == nil {
				files[ref.FileKey()] = version
			}
		}
	}
	return files
}
