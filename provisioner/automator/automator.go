// Package automator holds what all automators share: the interface and the
// registry of automator types.
//
// An automator carries out service actions on a machine over SSH. It knows no
// database, no River and no configuration. Every action must be safe to repeat.
package automator

import (
	"context"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// Automator carries out the service actions of one automator type.
//
// The methods return an error only for trouble of the provisioner itself, which
// does not count as a try; what went wrong on the machine is in the result.
type Automator interface {
	// Type describes the automator type for the catalog: fields and resources.
	Type() loom.PluginType
	// Bootstrap prepares the machine: tool, helper files, resources. files is the
	// directory "<set>/automatortypes/<type>" holding the tenant's live resources,
	// laid out as <resource type>/<name>; it may not exist when there are none.
	Bootstrap(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error)
	// Run carries out spec.Action of spec.Service.
	Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error)
}
