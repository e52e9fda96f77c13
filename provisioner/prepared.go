package provisioner

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/remote"
)

// preparedFact is the fact of a node that says with which set of plugin resources each
// automator prepared the machine last: {"shell": 4}.
const preparedFact = "resource_sets"

// upToDate calls an automator. Files of the tenant get to a machine when it is
// prepared, so before a service's action it is prepared again when there has been a
// sync since: a mended script is the one that a retry runs.
func upToDate(ctx context.Context, a automator.Automator, name string, spec *loom.TaskSpec, conn *remote.Conn, files string, sink loom.Sink, call automatorCall) (loom.TaskResult, error) {
	if spec.Action == loom.ActionBootstrap {
		result, err := call(a, ctx, spec, conn, files, sink)
		return preparedNow(spec, name, result, err), err
	}
	had, known := preparedWith(spec, name)
	if !known || had == strconv.Itoa(spec.ResourceSet) {
		return call(a, ctx, spec, conn, files, sink)
	}
	sink.Log("loom", fmt.Sprintf("plugin resources were synced since this machine was prepared (set %s, now %d): it is prepared again first", had, spec.ResourceSet))
	node := *spec // as the task that prepares has it
	node.Action, node.Service = loom.ActionBootstrap, nil
	before, err := a.Bootstrap(ctx, &node, conn, files, sink)
	before = preparedNow(spec, name, before, err)
	if err != nil || before.Status != 0 {
		return before, err
	}
	after := *spec
	after.Results = maps.Clone(spec.Results)
	maps.Copy(after.Results, before.Result)
	result, err := call(a, ctx, &after, conn, files, sink)
	facts := before.Result
	maps.Copy(facts, result.Result)
	result.Result = facts
	return result, err
}

// preparedWith returns the set with which the machine was prepared for an automator;
// not known where an older release did it, or nobody.
func preparedWith(spec *loom.TaskSpec, name string) (set string, known bool) {
	sets, _ := spec.Results[preparedFact].(map[string]any)
	value, known := sets[name]
	return fmt.Sprint(value), known
}

// preparedNow adds the fact to the result of a preparation that succeeded.
func preparedNow(spec *loom.TaskSpec, name string, result loom.TaskResult, err error) loom.TaskResult {
	if err != nil || result.Status != 0 || spec.ResourceSet == 0 {
		return result
	}
	// Facts replace each other by name, so what other automators did is kept by hand.
	sets := map[string]any{}
	if before, ok := spec.Results[preparedFact].(map[string]any); ok {
		maps.Copy(sets, before)
	}
	sets[name] = spec.ResourceSet
	facts := maps.Clone(result.Result)
	if facts == nil {
		facts = map[string]any{}
	}
	facts[preparedFact] = sets
	result.Result = facts
	return result
}
