package planner

import (
	"cmp"

	"loom/app/loom"
)

// State is a cluster at one time.
type State struct {
	// Nodes are all its nodes. A node is the same before and after when its id is;
	// its machine is another one when its incarnation or one of its types is.
	Nodes []loom.Node
	// Services holds at least every service on the nodes, by name, in the version
	// that is on them.
	Services map[string]loom.Service
	// Config is looked at by Compare only.
	Config map[string]any
}

// Change is a cluster before and after (changes.md).
type Change struct {
	// Action names the operation; "" finds it by what differs.
	Action        loom.ClusterAction
	Before, After State
	// Again are services of both that are put on machines again though their definition may
	// be the same, because their files are others.
	Again []string
	// Batch is how many nodes are upgraded or replaced at a time; 0 means 1.
	Batch int
	// MinHealthy is how many nodes of each service must be up at any time; nil
	// means all but one batch, and at least 1 where there are 2.
	MinHealthy *int
	// Dead are nodes that leave whose machines do not answer: nothing is drained or stopped
	// there.
	Dead []loom.NodeID
	// Rest runs with what is new. It is not looked at where a cluster comes or goes.
	Rest Rest
	// Early is as in Scope.
	Early bool
}

// MakeChange plans what leads from one state of a cluster to another: first what
// is new comes, with nodes that are repaired, then services are upgraded and
// nodes replaced batch by batch, then those who follow hear of it, then what is
// to go goes. What is on the cluster already counts as done, so that the plan is
// as large as the change.
//
// Errors: Invalid for states that contradict themselves, for a batch that leaves
// too few nodes of a service up, for a service that must not shrink, for one that
// comes in conflict with one that goes, and for services that depend on each
// other in a circle.
func MakeChange(change Change) (loom.Plan, error) {
	d, err := newDelta(change)
	if err != nil {
		return loom.Plan{}, err
	}
	action := cmp.Or(change.Action, d.action())
	if len(change.After.Nodes) == 0 || len(change.Before.Nodes) == 0 {
		state, fixed := change.After, loom.ClusterCreate
		if len(state.Nodes) == 0 {
			state, fixed = change.Before, loom.ClusterDelete
		}
		plan, err := Make(fixed, state.Nodes, state.Services, Scope{Early: change.Early})
		if err != nil {
			return loom.Plan{}, err
		}
		plan.Action = action
		return plan, nil
	}
	if err := d.refuse(); err != nil {
		return loom.Plan{}, err
	}
	if err := d.finish(change.Rest); err != nil {
		return loom.Plan{}, err
	}
	batches, err := d.batches(change)
	if err != nil {
		return loom.Plan{}, err
	}
	d.early = change.Early
	if err := d.come(); err != nil {
		return loom.Plan{}, err
	}
	for _, batch := range batches {
		if err := d.roll(batch); err != nil {
			return loom.Plan{}, err
		}
	}
	if err := d.tell(func(n *nodeDelta) bool { return n.roll != replaces }); err != nil {
		return loom.Plan{}, err
	}
	if err := d.leave(); err != nil {
		return loom.Plan{}, err
	}
	return d.plan(action)
}
