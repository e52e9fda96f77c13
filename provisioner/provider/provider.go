// Package provider holds what all providers share: the interface, the registry
// of provider types and the steps of CONFIRM that do not depend on the cloud.
//
// A provider makes, confirms and deletes machines. It knows no database, no
// River and no configuration; what it must remember goes through the sink or
// into the result. Every action must be safe to repeat, also after a crash
// between asking the cloud and reporting.
package provider

import (
	"context"
	"net/netip"

	"loom/app/loom"
)

// Provider makes machines of one provider type.
//
// The methods return an error only for trouble of the provisioner itself (disk
// full, bad set-up), which does not count as a try; what went wrong with the
// machine is in the result's status and message.
type Provider interface {
	// Type describes the provider type for the catalog: fields and resources.
	Type() loom.PluginType
	// Create asks for a machine and returns at once. It first looks for a machine
	// with spec.IdempotencyKey and adopts it. It reports "providerid" through the
	// sink before anything else can fail, and returns it with "ssh-auth"; where
	// spec.Place says something, that is reported before a machine is asked for.
	Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error)
	// Confirm waits until the machine is usable over SSH and returns its addresses
	// and host keys.
	Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error)
	// Delete removes the machine and everything Create made, and waits until it is
	// gone. A machine that is not there is success.
	Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error)
}

// Rebooter is a Provider that can restart machines through its own interface: it starts a
// machine that is stopped and resets one that runs. Machines of other providers are
// rebooted over SSH.
type Rebooter interface {
	// Reboot asks for it and returns when the provider has begun; CONFIRM, which follows,
	// waits until the machine is usable again. A machine that is not there is a failure, and
	// none is made. It may run again after any outcome.
	Reboot(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error)
}

// LocalMachines is a Provider whose machines run on this host, in networks that Loom chose.
// Tasks of its machines may connect to them whatever the tenant may reach otherwise;
// nobody else may.
type LocalMachines interface {
	// Networks of the machines of all tenants.
	Networks() []netip.Prefix
	// Address of the machine of a task by this host's own record; the zero value when
	// there is none.
	Address(spec *loom.TaskSpec) netip.Addr
	// Load of the machine of a task, which cannot say it itself: it sees what the host has.
	Load(spec *loom.TaskSpec) loom.Load
	// Adopted returns when the machine of a task is in order after a start of this
	// process, whatever others there are; the error is that of the record or of ctx.
	Adopted(ctx context.Context, spec *loom.TaskSpec) error
}

// Machine is what a provider's own part of CONFIRM knows of a running machine;
// the shared steps need no more.
type Machine struct {
	// Addresses by kind; loom.AccessV4 and loom.BindV4 must be there.
	Addresses map[string]string
	// HostKeys, where the provider knows them from the machine's own record, by
	// short type ("ed25519") in base64 as in a known_hosts line. Empty: they are
	// learned on first use.
	HostKeys map[string]string
	// Port of SSH, 22 when 0.
	Port int
	// Hostname that the cloud gave and that replaces the node's; usually empty.
	Hostname string
	// Names by which a host certificate may speak of the machine besides its host name
	// and its address; usually empty.
	Names []string
}
