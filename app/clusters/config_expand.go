package clusters

import (
	"slices"

	"loom/app/loom"
	"loom/planner/macro"
)

// ConfigProblem is a macro of a config that cannot be filled in.
type ConfigProblem struct {
	// Pointer is the JSON pointer of the value that holds it, Macro the macro as written,
	// "" where the problem is with the value as a whole.
	Pointer, Macro string
	// Reason is a sentence for people.
	Reason string
}

// ExpandedConfig is the config of the cluster with its macros filled in as a task on a
// node would read it, "" for none; what cannot be filled in yet stays as written, and
// the sentences say why. Secrets are not masked.
func (v *ClusterView) ExpandedConfig(self loom.NodeID) (config map[string]any, problems []ConfigProblem) {
	told := slices.DeleteFunc(slices.Clone(v.Nodes), func(n loom.Node) bool { return n.Leaving || n.State == loom.NodeDeleted })
	expanded, found := macro.NewFacts(string(v.Owner.User), properties(told)).Expand(v.Config, self)
	if expanded == nil {
		expanded = v.Config
	}
	for _, p := range found {
		problems = append(problems, ConfigProblem{Pointer: p.Pointer, Macro: p.Macro, Reason: p.Reason})
	}
	return expanded, problems
}
