package external

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/provider"
	"loom/provisioner/remote"
)

// Providers returns the provider types of the found plugins.
func (h *Host) Providers(f *Found) []provider.Provider {
	var all []provider.Provider
	for _, name := range f.Types(KindProvider) {
		all = append(all, h.Provider(f.Plugin(KindProvider, name), name))
	}
	return all
}

// Automators returns the automator types of the found plugins.
func (h *Host) Automators(f *Found) []automator.Automator {
	var all []automator.Automator
	for _, name := range f.Types(KindAutomator) {
		all = append(all, h.Automator(f.Plugin(KindAutomator, name), name))
	}
	return all
}

// Provider returns a provider type of a plugin. It is a provider.Lister and a
// provider.Rebooter where the manifest lists these actions.
func (h *Host) Provider(p *Plugin, typeName string) provider.Provider {
	e := &externalProvider{host: h, plugin: p, name: typeName}
	t := p.Manifest.Types[typeName]
	switch lists, reboots := t.Has(actionList), t.Has(string(loom.ActionReboot)); {
	case lists && reboots:
		return struct {
			*externalProvider
			provider.Lister
			provider.Rebooter
		}{e, lister{e}, rebooter{e}}
	case lists:
		return lister{e}
	case reboots:
		return rebooter{e}
	}
	return e
}

// Automator returns an automator type of a plugin.
func (h *Host) Automator(p *Plugin, typeName string) automator.Automator {
	return &externalAutomator{host: h, plugin: p, name: typeName}
}

type externalProvider struct {
	host   *Host
	plugin *Plugin
	name   string
}

// Type describes the provider type as the manifest does.
func (p *externalProvider) Type() loom.PluginType { return p.plugin.Manifest.Types[p.name].Describes }

// Create runs the plugin.
func (p *externalProvider) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	if len(spec.Place) > 0 {
		if err := sink.Fact(map[string]any{loom.PlaceFact: spec.Place}); err != nil {
			return loom.TaskResult{}, err
		}
	}
	return p.run(ctx, spec, loom.ActionCreate, nil, sink)
}

type rebooter struct{ *externalProvider }

// Reboot runs the plugin.
func (p rebooter) Reboot(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	return p.run(ctx, spec, loom.ActionReboot, nil, sink)
}

type lister struct{ *externalProvider }

// List runs the plugin and takes its messages of type machine.
func (p lister) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	c := specCall(p.plugin, KindProvider, p.name, &loom.TaskSpec{Tenant: call.Tenant, Action: actionList, Attempt: 1, Provider: call.Provider,
		Results: map[string]any{}, ResourceSet: call.ResourceSet, Sensitive: call.Sensitive, Reach: call.Reach}, provider.EnvOf(ctx).Files)
	result, err := p.host.run(ctx, c, unheard{})
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case result.Status != 0:
		return nil, loom.NewError(loom.Unavailable, "The plugin cannot list the machines: %s", strings.TrimSuffix(result.Message, ".")+".")
	}
	return c.machines, nil
}

// unheard drops what a plugin says while no task runs.
type unheard struct{}

// Log drops the line.
func (unheard) Log(string, string) {}

// Fact drops the results.
func (unheard) Fact(map[string]any) error { return nil }

// Delete runs the plugin.
func (p *externalProvider) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	return p.run(ctx, spec, loom.ActionDelete, nil, sink)
}

// Confirm runs the plugin, and after one that only waits for the cloud the steps
// that all providers share.
func (p *externalProvider) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	cloud := p.plugin.Manifest.Types[p.name].CloudConfirm
	var target *remote.Target
	if spec.Results["ssh-auth"] != nil && !cloud {
		t, err := remote.TargetOf(spec, provider.EnvOf(ctx).Files)
		if err != nil {
			return remote.Failure(err)
		}
		target = &t
	}
	result, err := p.run(ctx, spec, loom.ActionConfirm, target, sink)
	if err != nil || result.Status != 0 || !cloud {
		return result, err
	}
	known := *spec
	known.Results = maps.Clone(spec.Results)
	if known.Results == nil {
		known.Results = map[string]any{}
	}
	maps.Copy(known.Results, result.Result)
	machine := provider.Machine{Addresses: result.Addresses, Hostname: result.Hostname, HostKeys: remote.HostKeysOf(&known)}
	if port, ok := result.Result["ssh_port"]; ok {
		if _, err := fmt.Sscan(fmt.Sprint(port), &machine.Port); err != nil || machine.Port < 1 || machine.Port > 65535 {
			return loom.TaskResult{Status: 1, Message: fmt.Sprintf("the plugin gave “%v” as ssh_port; it takes a port", port), Result: result.Result}, nil
		}
	}
	confirmed, err := provider.Confirm(ctx, &known, machine, sink)
	facts := result.Result
	if facts == nil {
		facts = map[string]any{}
	}
	maps.Copy(facts, confirmed.Result)
	confirmed.Result = facts
	return confirmed, err
}

func (p *externalProvider) run(ctx context.Context, spec *loom.TaskSpec, action loom.TaskAction, target *remote.Target, sink loom.Sink) (loom.TaskResult, error) {
	given := *spec
	given.Action = action
	c := specCall(p.plugin, KindProvider, p.name, &given, provider.EnvOf(ctx).Files)
	c.target = target
	return p.host.run(ctx, c, sink)
}

type externalAutomator struct {
	host   *Host
	plugin *Plugin
	name   string
}

// Type describes the automator type as the manifest does.
func (a *externalAutomator) Type() loom.PluginType { return a.plugin.Manifest.Types[a.name].Describes }

// Bootstrap runs the plugin, unless it has nothing to prepare.
func (a *externalAutomator) Bootstrap(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	if !a.plugin.Manifest.Types[a.name].Has(string(loom.ActionBootstrap)) {
		return loom.TaskResult{}, nil
	}
	given := *spec
	given.Action = loom.ActionBootstrap
	return a.run(ctx, &given, conn, files, sink)
}

// Run runs the plugin.
func (a *externalAutomator) Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	if !a.plugin.Manifest.Types[a.name].Has(string(spec.Action)) {
		return loom.TaskResult{Status: 1, Retryable: new(false),
			Message: fmt.Sprintf("the automator “%s” has no action %s; take the action out of the service", a.name, spec.Action)}, nil
	}
	return a.run(ctx, spec, conn, files, sink)
}

// run lends the plugin the sign-in of the connection, and the host key that the
// machine showed on it.
func (a *externalAutomator) run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	c := specCall(a.plugin, KindAutomator, a.name, spec, files)
	if conn != nil {
		target := conn.Target()
		if len(target.HostKeys) == 0 {
			target.HostKeys = conn.HostKeys()
		}
		target.Jump = slices.Clone(target.Jump)
		for i, hop := range target.Jump {
			if len(hop.HostKeys) == 0 {
				target.Jump[i].HostKeys = conn.JumpHostKeys()[hop.HostPort()]
			}
		}
		c.target = &target
		if !target.Password.IsZero() {
			c.secrets = append(c.secrets, target.Password.Reveal())
		}
	}
	return a.host.run(ctx, c, sink)
}
