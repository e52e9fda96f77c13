package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

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
	result, err := do(&given, reports{sink, spec, r.name})
	keepFixed(&result, sink)
	result.Result = loom.AutomatorResults(r.name, result.Result)
	if size := reportedSize(spec, result.Result); size > maxReported {
		never := false
		result.Result = nil
		if result.Status == 0 {
			result.Status, result.Retryable = 1, &never
			result.Message = tooMuch(size)
		} else {
			sink.Log("loom", "warning: "+tooMuch(size))
		}
	}
	return result, err
}

// maxReported bounds what the services of a node report, in bytes of JSON: it is read with
// the node.
const maxReported = 256 << 10

func tooMuch(size int) string {
	return fmt.Sprintf("the results of all services of this node would be %d bytes of JSON; at most %d are kept, so these were not; report less", size, maxReported)
}

// reportedSize measures what a node has of automators once results are merged into it.
func reportedSize(spec *loom.TaskSpec, results map[string]any) int {
	if len(results) == 0 {
		return 0
	}
	all := map[string]any{}
	for name, value := range spec.Results {
		if loom.ReportedByAutomator(name) {
			all[name] = value
		}
	}
	maps.Copy(all, results)
	text, err := json.Marshal(all)
	if err != nil {
		return 0 // what is no JSON is not stored
	}
	return len(text)
}

// reports is where an automator stores results while it works.
type reports struct {
	loom.Sink
	spec *loom.TaskSpec
	name string
}

// Fact stores results.
func (r reports) Fact(results map[string]any) error {
	results = loom.AutomatorResults(r.name, results)
	if size := reportedSize(r.spec, results); size > maxReported {
		r.Log("loom", "warning: "+tooMuch(size))
		return nil
	}
	return r.Sink.Fact(results)
}
