package provisioner

import (
	"context"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/remote"
)

// reporter is an automator whose results are kept apart from all else that is known of a
// machine (loom.AutomatorResults). Whoever writes a service decides what they are called.
type reporter struct {
	automator.Automator
	name string
}

// Bootstrap prepares the machine.
func (r reporter) Bootstrap(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	return r.call(spec, sink, func(spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
		return r.Automator.Bootstrap(ctx, spec, conn, files, sink)
	})
}

// Run carries out an action of a service.
func (r reporter) Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink) (loom.TaskResult, error) {
	return r.call(spec, sink, func(spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
		return r.Automator.Run(ctx, spec, conn, files, sink)
	})
}

func (r reporter) call(spec *loom.TaskSpec, sink loom.Sink, do func(*loom.TaskSpec, loom.Sink) (loom.TaskResult, error)) (loom.TaskResult, error) {
	given := *spec
	given.Results = loom.ResultsFor(r.name, spec.Results)
	result, err := do(&given, reports{sink, r.name})
	keepFixed(&result, sink)
	result.Result = loom.AutomatorResults(r.name, result.Result)
	return result, err
}

// reports is where an automator stores results while it works.
type reports struct {
	loom.Sink
	name string
}

// Fact stores results.
func (r reports) Fact(results map[string]any) error {
	return r.Sink.Fact(loom.AutomatorResults(r.name, results))
}
