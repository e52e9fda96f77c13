// Package mock is an automator that pretends, for load and fault tests: the twin
// of the mock provider. It connects to nothing. It must be registered on request
// only.
package mock

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// Automator is the mock; the zero value is ready to use.
type Automator struct{}

// New gives the mock automator.
func New() Automator { return Automator{} }

// Type describes the automator type.
func (Automator) Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: "mock", Label: "Mock", Description: "Pretends to carry out actions, for load and fault tests."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: map[string]loom.FieldSchema{
				"delay_ms":     {Label: "Delay in milliseconds", Type: "number", Default: 0},
				"fail_percent": {Label: "Percentage of attempts that fail", Type: "number", Default: 0},
				"output_lines": {Label: "Lines of output", Type: "number", Default: 0},
			}, Required: [][]string{}},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{},
	}
}

// Offline says that no connection is needed.
func (Automator) Offline() bool { return true }

// Bootstrap does nothing.
func (Automator) Bootstrap(context.Context, *loom.TaskSpec, *remote.Conn, string, loom.Sink) (loom.TaskResult, error) {
	return loom.TaskResult{}, nil
}

// Run waits, writes its lines and fails as often as asked, by node id, action,
// service and attempt.
func (Automator) Run(ctx context.Context, spec *loom.TaskSpec, _ *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	fields := spec.Service.Action.Fields
	timer := time.NewTimer(time.Duration(number(fields["delay_ms"])) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return loom.TaskResult{Status: 1, Message: context.Cause(ctx).Error()}, nil
	}
	for i := range number(fields["output_lines"]) {
		sink.Log("stdout", fmt.Sprintf("mock: line %d of %s %s", i+1, spec.Service.Name, spec.Action))
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s/%s/%s/%d", spec.Node, spec.Action, spec.Service.Name, spec.Attempt)
	if int(h.Sum64()>>20%100) < number(fields["fail_percent"]) {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s %s fails, as fail_percent asks for", spec.Service.Name, spec.Action)}, nil
	}
	return loom.TaskResult{}, nil
}

// number reads a field; anything but a sensible number is 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1e9 {
		return 0
	}
	return n
}
