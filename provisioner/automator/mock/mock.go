// Package mock is an automator that pretends, for load and fault tests: the twin
// of the mock provider. It connects to nothing; where the provider names a
// simulator, that is told what was done to which machine. It must be registered
// on request only.
package mock

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"time"

	"loom/app/loom"
	"loom/provisioner/remote"
	"loom/provisioner/simcloud"
)

// Automator is the mock; the zero value is ready to use.
type Automator struct{}

// New returns the mock automator.
func New() Automator { return Automator{} }

// Type describes the automator type.
func (Automator) Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: "mock", Label: "Mock", Description: "Pretends to carry out actions, for load and fault tests."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: map[string]loom.FieldSchema{
				"delay_ms":     {Label: "Delay in milliseconds", Type: "number", Default: 0},
				"fail_percent": {Label: "Percentage of attempts that fail", Type: "number", Default: 0},
				"hang_percent": {Label: "Percentage of attempts that hang", Type: "number", Default: 0},
				"hang_ms":      {Label: "Longest hang in milliseconds", Type: "number", Default: 0, Tip: "0: until the attempt is asked to end."},
				"lie_percent":  {Label: "Percentage of attempts that do their work and say that they failed", Type: "number", Default: 0},
				"output_lines": {Label: "Lines of output", Type: "number", Default: 0},
				"give_up":      {Label: "What fails is not tried again", Type: "checkbox", Default: false},
				"release":      {Label: "Release that an install puts there", Type: "text", Tip: "For a simulator's books."},
			}, Required: [][]string{}},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{},
	}
}

// Offline says that no connection is needed.
func (Automator) Offline() bool { return true }

// Bootstrap does nothing to the machine.
func (Automator) Bootstrap(ctx context.Context, spec *loom.TaskSpec, _ *remote.Conn, _ string, _ loom.Sink) (loom.TaskResult, error) {
	return booked(ctx, spec, func() loom.TaskResult { return loom.TaskResult{} }), nil
}

// Run waits, writes its lines, and hangs, fails and lies as often as asked, by
// node id, action, service and attempt.
func (Automator) Run(ctx context.Context, spec *loom.TaskSpec, _ *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	lied := false
	result := booked(ctx, spec, func() loom.TaskResult {
		fields := spec.Service.Action.Fields
		if strikes(spec, "hang_percent") {
			if err := wait(ctx, number(fields["hang_ms"]), true); err != nil {
				return loom.TaskResult{Status: 1, Message: err.Error()}
			}
		}
		if err := wait(ctx, number(fields["delay_ms"]), false); err != nil {
			return loom.TaskResult{Status: 1, Message: err.Error()}
		}
		for i := range number(fields["output_lines"]) {
			sink.Log("stdout", fmt.Sprintf("mock: line %d of %s %s", i+1, spec.Service.Name, spec.Action))
		}
		if strikes(spec, "fail_percent") {
			result := loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s %s fails, as fail_percent asks for", spec.Service.Name, spec.Action)}
			if never := false; fields["give_up"] == "true" {
				result.Retryable = &never
			}
			return result
		}
		lied = strikes(spec, "lie_percent")
		return loom.TaskResult{}
	})
	if lied && result.Status == 0 {
		result = loom.TaskResult{Status: 1, Message: fmt.Sprintf("the answer of %s %s was lost, as lie_percent asks for", spec.Service.Name, spec.Action)}
	}
	return result, nil
}

// booked does something and tells the simulator of it, if there is one.
func booked(ctx context.Context, spec *loom.TaskSpec, do func() loom.TaskResult) loom.TaskResult {
	cloud := simcloud.Of(spec.Provider, nil)
	if cloud == nil {
		return do()
	}
	effect := simcloud.EffectOf(spec, os.Getpid())
	if err := cloud.Begin(ctx, effect); err != nil {
		return loom.TaskResult{Status: 1, Message: err.Error()}
	}
	result := do()
	if err := cloud.End(ctx, effect, result.Status == 0); err != nil && result.Status == 0 {
		return loom.TaskResult{Status: 1, Message: err.Error()}
	}
	return result
}

// wait waits so long; 0 is no time at all, or for a hang until ctx ends.
func wait(ctx context.Context, milliseconds int, hang bool) error {
	if milliseconds == 0 && !hang {
		return nil
	}
	var over <-chan time.Time
	if milliseconds > 0 {
		timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// strikes says whether a field that is a percentage does.
func strikes(spec *loom.TaskSpec, field string) bool {
	percent := number(spec.Service.Action.Fields[field])
	if percent == 0 {
		return false
	}
	h := fnv.New64a()
	if field != "fail_percent" { // whose outcomes are those of old runs
		_, _ = h.Write([]byte(field + "/"))
	}
	_, _ = fmt.Fprintf(h, "%s/%s/%s/%d", spec.Node, spec.Action, spec.Service.Name, spec.Attempt)
	return int(h.Sum64()>>20%100) < percent
}

// number reads a field; anything but a sensible number is 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1e9 {
		return 0
	}
	return n
}
