// Package mock is a provider that invents machines, for load and fault tests. Nothing is connected to. Delays, failures, hangs and lies
// follow from the node's id, the action and the attempt, so a run can be
// repeated; which machines there are is kept by package simcloud. It must be
// registered on request only.
package mock

import (
	"context"
	"fmt"
	"os"
	"time"

	"loom/app/loom"
	"loom/provisioner/simcloud"
)

// Provider is the mock; the zero value is ready to use and keeps no books: each
// of its machines is there whenever it is asked for.
type Provider struct {
	cloud simcloud.Cloud
}

// New returns a mock provider that remembers in memory what it invented.
func New() Provider { return NewOn(simcloud.NewBooks()) }

// NewOn returns a mock provider whose machines are in a cloud, unless the field
// “simulator” of a provider names another.
func NewOn(cloud simcloud.Cloud) Provider { return Provider{cloud} }

// layout is that of the form.
var layout = loom.FieldLayout{
	{Group: loom.SectionMachines, Names: []string{"delay_ms", "boot_ms", "linger_ms", "addresses"}},
	{Group: "Faults", Names: []string{"fail_percent", "fail_by", "fail_tasks", "lie_percent"}},
	{Group: loom.SectionAdvanced, Names: []string{"hang_percent", "hang_ms", "lookup", "list_lag_ms", "ssh_target", "simulator"}},
}

// Type describes the provider type.
func (Provider) Type() loom.PluginType {
	percent := func(label, tip string) loom.FieldSchema {
		return loom.FieldSchema{Label: label, Type: "number", Default: 0, Override: true, Tip: tip}
	}
	return loom.PluginType{
		Base: loom.Base{Name: "mock", Label: "Mock", Description: "Invents machines, for load and fault tests."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: layout.Of(map[string]loom.FieldSchema{
				"delay_ms":     {Label: "Delay of each task in milliseconds", Type: "number", Default: 0, Override: true},
				"boot_ms":      {Label: "Time from CREATE until a machine answers, in milliseconds", Type: "number", Default: 0, Override: true},
				"fail_percent": percent("Percentage of attempts that fail", ""),
				"fail_by": {Label: "What fails together", Type: "select", Default: "attempt", Override: true,
					Options: []string{"attempt", "node"}, Tip: "attempt: each by itself. node: every attempt of a task on the same nodes."},
				"fail_tasks":   {Label: "Tasks that always fail", Type: "text", Tip: "Comma-separated, such as “create,confirm”.", Override: true},
				"hang_percent": percent("Percentage of attempts that hang", "They end when asked to, or after hang_ms."),
				"hang_ms":      {Label: "Longest hang in milliseconds", Type: "number", Default: 0, Tip: "0: until the attempt is asked to end.", Override: true},
				"lie_percent": percent("Percentage of attempts whose answer is lost",
					"CREATE and DELETE do their work and say that they failed."),
				"linger_ms":   {Label: "Time from DELETE until a machine is gone, in milliseconds", Type: "number", Default: 0, Override: true},
				"list_lag_ms": {Label: "Age below which lists miss a machine, in milliseconds", Type: "number", Default: 0, Override: true},
				"lookup": {Label: "How CREATE finds a machine it made before", Type: "select", Default: "token", Override: true,
					Options: []string{"token", "list"}, Tip: "token: the cloud gives the machine of the same key again. list: CREATE looks first."},
				"addresses":  {Label: "Range of addresses", Type: "text", Default: defaultAddresses, Override: true},
				"ssh_target": {Label: "SSH server for all machines", Type: "text", Tip: "host:port of a test server.", Override: true},
				"simulator":  {Label: "Address of a simulator", Type: "text", Tip: "Of a cloud in another process, such as http://127.0.0.1:8000.", Override: true},
			}), Required: [][]string{}},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{},
	}
}

// Unconnected says that nobody signs in to invented machines.
func (Provider) Unconnected() bool { return true }

// Create invents a machine, or finds the one it invented before.
func (p Provider) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	return p.work(ctx, spec, func(cloud simcloud.Cloud) (loom.TaskResult, error) {
		id := "mock-" + string(spec.Node)
		if cloud != nil {
			m, err := obtain(ctx, cloud, spec)
			if err != nil {
				return failed(err)
			}
			id = m.ID
		}
		if decides(spec, "lie_percent") {
			return loom.TaskResult{Status: 1, Message: "the answer of the cloud was lost, as lie_percent asks for"}, nil
		}
		if err := sink.Fact(map[string]any{"providerid": id}); err != nil {
			return loom.TaskResult{}, err
		}
		result := act(ctx, spec, sink)
		user := spec.SSHUser
		if user == "" {
			user = loom.DefaultSSHUser
		}
		result.Result = map[string]any{"providerid": id, "ssh-auth": map[string]any{"user": user}}
		return result, nil
	})
}

// obtain asks the cloud for the machine of the node.
func obtain(ctx context.Context, cloud simcloud.Cloud, spec *loom.TaskSpec) (simcloud.Machine, error) {
	byToken := text(spec, "lookup") != "list"
	if !byToken && spec.IdempotencyKey != "" {
		found, err := cloud.Find(ctx, simcloud.Query{Key: spec.IdempotencyKey, Lag: milliseconds(spec, "list_lag_ms")})
		if err != nil || len(found) > 0 {
			return first(found), err
		}
	}
	address, _, err := place(spec)
	if err != nil {
		address = "" // CONFIRM says what is wrong
	}
	return cloud.Create(ctx, simcloud.Want{Token: byToken, Machine: simcloud.Machine{
		Name: spec.Hostname, Key: spec.IdempotencyKey, Node: spec.Node, Cluster: spec.Ref.Operation.Cluster.String(),
		Tenant: spec.Tenant, Flavor: spec.Flavor, Image: spec.Image, Address: address,
	}})
}

func first(machines []simcloud.Machine) simcloud.Machine {
	if len(machines) == 0 {
		return simcloud.Machine{}
	}
	return machines[0]
}

// Confirm returns the invented machine its address once it has booted.
func (p Provider) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	address, port, err := place(spec)
	if err != nil {
		no := false
		return loom.TaskResult{Status: 1, Message: err.Error(), Retryable: &no}, nil
	}
	return p.work(ctx, spec, func(cloud simcloud.Cloud) (loom.TaskResult, error) {
		if cloud != nil {
			machines, err := mine(ctx, cloud, spec)
			switch {
			case err != nil:
				return failed(err)
			case len(machines) == 0:
				return loom.TaskResult{Status: 1, Message: "the machine is not there"}, nil
			}
			if port == 0 && machines[0].Address != "" {
				address = machines[0].Address
			}
			if err := sleep(ctx, milliseconds(spec, "boot_ms")-time.Since(machines[0].Made)); err != nil {
				return failed(err)
			}
		}
		result := act(ctx, spec, sink)
		if result.Status == 0 {
			result.Addresses = map[string]string{loom.AccessV4: address, loom.BindV4: address}
			if port != 0 {
				result.Result = map[string]any{"ssh_port": port}
			}
		}
		return result, nil
	})
}

// Keys does as if public keys came onto the invented machine.
func (p Provider) Keys(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	return p.work(ctx, spec, func(simcloud.Cloud) (loom.TaskResult, error) { return act(ctx, spec, sink), nil })
}

// Reboot does as if the invented machine was rebooted.
func (p Provider) Reboot(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	return p.work(ctx, spec, func(cloud simcloud.Cloud) (loom.TaskResult, error) {
		if cloud != nil {
			machines, err := mine(ctx, cloud, spec)
			switch {
			case err != nil:
				return failed(err)
			case len(machines) == 0:
				return loom.TaskResult{Status: 1, Message: "the machine is not there; replace the node to make another one"}, nil
			}
		}
		return act(ctx, spec, sink), nil
	})
}

// Delete makes the invented machine cease to be and waits until it has.
func (p Provider) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	return p.work(ctx, spec, func(cloud simcloud.Cloud) (loom.TaskResult, error) {
		// Failing comes first: what failed has removed nothing.
		if result := act(ctx, spec, sink); result.Status != 0 {
			return result, nil
		}
		if cloud != nil {
			if err := remove(ctx, cloud, spec); err != nil {
				return failed(err)
			}
		}
		if decides(spec, "lie_percent") {
			return loom.TaskResult{Status: 1, Message: "the answer of the cloud was lost, as lie_percent asks for"}, nil
		}
		return loom.TaskResult{Result: map[string]any{"providerid": nil, "ssh-auth": nil, "ssh_host_keys": nil, "ssh_port": nil}}, nil
	})
}

// remove deletes all that CREATE may have made.
func remove(ctx context.Context, cloud simcloud.Cloud, spec *loom.TaskSpec) error {
	for {
		machines, err := mine(ctx, cloud, spec)
		if err != nil || len(machines) == 0 {
			return err
		}
		for _, m := range machines {
			if _, err := cloud.Delete(ctx, m.ID, milliseconds(spec, "linger_ms")); err != nil {
				return err
			}
		}
		if err := sleep(ctx, min(50*time.Millisecond, milliseconds(spec, "linger_ms"))); err != nil {
			return err
		}
	}
}

// mine finds the machines of the node: the one it knows, and whatever carries
// its key unless the known one goes alone.
func mine(ctx context.Context, cloud simcloud.Cloud, spec *loom.TaskSpec) ([]simcloud.Machine, error) {
	id, key := identify(spec)
	var found []simcloud.Machine
	if id != "" {
		var err error
		if found, err = cloud.Find(ctx, simcloud.Query{ID: id}); err != nil {
			return nil, err
		}
	}
	if key == "" || spec.Alone {
		return found, nil
	}
	keyed, err := cloud.Find(ctx, simcloud.Query{Key: key})
	for _, m := range keyed {
		if m.ID != id {
			found = append(found, m)
		}
	}
	return found, err
}

// identify returns the id of the machine that the node knows, and its key.
func identify(spec *loom.TaskSpec) (id, key string) {
	id, _ = spec.Results["providerid"].(string)
	if id == "" && spec.IdempotencyKey == "" {
		id = "mock-" + string(spec.Node)
	}
	return id, spec.IdempotencyKey
}

// work keeps the books of a simulator about what is done, and hangs where asked.
func (p Provider) work(ctx context.Context, spec *loom.TaskSpec, do func(simcloud.Cloud) (loom.TaskResult, error)) (result loom.TaskResult, err error) {
	cloud := simcloud.Of(spec.Provider, p.cloud)
	if cloud != nil && cloud != p.cloud {
		effect := simcloud.EffectOf(spec, os.Getpid())
		if err := cloud.Begin(ctx, effect); err != nil {
			return failed(err)
		}
		defer func() {
			if bookErr := cloud.End(ctx, effect, err == nil && result.Status == 0); bookErr != nil && err == nil {
				result, err = failed(bookErr)
			}
		}()
	}
	if decides(spec, "hang_percent") {
		if err := hang(ctx, milliseconds(spec, "hang_ms")); err != nil {
			return failed(err)
		}
	}
	return do(cloud)
}

// failed is trouble on the way to the cloud, or the end of the attempt.
func failed(err error) (loom.TaskResult, error) {
	return loom.TaskResult{Status: 1, Message: err.Error()}, nil
}

// act waits and decides.
func act(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
	if err := sleep(ctx, milliseconds(spec, "delay_ms")); err != nil {
		return loom.TaskResult{Status: 1, Message: err.Error()}
	}
	if listed(text(spec, "fail_tasks"), string(spec.Action)) {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s fails, as fail_tasks asks for", spec.Action)}
	}
	if decides(spec, "fail_percent") {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s fails, as fail_percent asks for", spec.Action)}
	}
	sink.Log("loom", fmt.Sprintf("mock: %s of node %d done", spec.Action, spec.NodeNumber))
	return loom.TaskResult{}
}
