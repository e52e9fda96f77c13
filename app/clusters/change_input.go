package clusters

import "loom/app/loom"

// ChangeInput is what a request says of a change of the layout (changes.md 1), and of
// a rollback or a retry of an operation. Each kind of preview reads its own part.
type ChangeInput struct {
	// Machines is the total number of nodes that an expand or a shrink leads to; 0
	// where a shrink names nodes.
	Machines int
	// Nodes are those that leave, or that a repair makes anew.
	Nodes []loom.NodeID
	// Dead are those of Nodes whose machines do not answer: nothing is stopped on them.
	Dead []loom.NodeID
	// Services are those to remove or to upgrade, or whose nodes get other hardware;
	// none means all where that is allowed.
	Services []string
	// HardwareType is the one that a resize leads to.
	HardwareType string
	// Batch is how many nodes are changed at a time; 0 counts as 1.
	Batch int
	// MinHealthy is how many nodes of each service must be up at any time; nil leaves
	// that to the planner.
	MinHealthy *int
	// OnFailure is loom.OnFailureKeep, loom.OnFailureUndo or "" for what the template says.
	OnFailure string
	// Operation is the number of the one that is rolled back or retried.
	Operation int
	// Skip are numbers of tasks of that operation which a retry leaves out, Reason why.
	Skip   []int
	Reason string
	// RemoveServices and ConfigPatch are what a retry changes beside the versions of
	// Services.
	RemoveServices []string
	ConfigPatch    map[string]any
}

// mends reports whether a retry asks for something else than the operation it is about.
func (in *ChangeInput) mends() bool {
	return len(in.Services)+len(in.RemoveServices) > 0 || in.ConfigPatch != nil
}

func (in *ChangeInput) patch() *ConfigureInput {
	if in.ConfigPatch == nil {
		return nil
	}
	return &ConfigureInput{ConfigPatch: in.ConfigPatch}
}
