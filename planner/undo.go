package planner

import (
	"slices"

	"loom/app/loom"
)

// UndoInput is an operation that failed, when nothing of it runs any more.
type UndoInput struct {
	// Plan of the operation: a create, an expand or services that were added.
	Plan loom.Plan
	// Done reports whether the task of a number is complete.
	Done func(number int) bool
	// HasMachine reports whether a node may have a machine although its CREATE is
	// not complete; nil means that none has.
	HasMachine func(loom.NodeID) bool
	// Before are the nodes as they were before the operation, none for a create;
	// After as it would have left them. What was there before is never undone.
	Before, After []loom.Node
	// Services are those of the nodes, by name.
	Services map[string]loom.Service
}

// Undo plans what takes a failed operation back (planner.md 10): DELETE for each
// CREATE, STOP for each START, REMOVE for each INSTALL, where services define
// them, in the reverse of the order in which things were done. Followers that had
// been told are told again, before anything stops. The plan's action is that of
// the operation.
//
// Errors: Invalid for an operation that cannot be taken back in this way, such as
// an upgrade (its reverse is planned by MakeChange), and for services that depend
// on each other in a circle.
func Undo(in UndoInput) (loom.Plan, error) {
	if !Undoable(in.Plan.Action) {
		return loom.Plan{}, loom.NewError(loom.Invalid,
			"“%s” is not undone task by task; roll back to the layout before it instead.", in.Plan.Action.Verb())
	}
	d, err := newDelta(Change{Action: in.Plan.Action, Before: State{Nodes: in.Before, Services: in.Services}, After: State{Nodes: in.After, Services: in.Services}})
	if err != nil {
		return loom.Plan{}, err
	}
	d.old = d.new
	at := make(map[loom.NodeID]int, len(d.nodes))
	for i, n := range d.nodes {
		at[n.id] = i
	}
	done := map[draftTask]bool{}
	for _, t := range in.Plan.Tasks {
		node, there := at[t.Node]
		if !there {
			return loom.Plan{}, loom.NewError(loom.Invalid, "Node %s of task %d is not among the nodes after the operation.", t.Node, t.Number)
		}
		service := nodeTask
		if t.Service != "" {
			s, defined := d.new.index[t.Service]
			if !defined {
				return loom.Plan{}, loom.NewError(loom.Invalid, "The service “%s” of task %d is not on the nodes of the operation.", t.Service, t.Number)
			}
			service = s
		}
		if in.Done(t.Number) {
			done[draftTask{int32(node), int32(service), int8(t.Action.Order())}] = true
		}
	}
	was := func(node, service int, action loom.TaskAction) bool {
		return done[draftTask{int32(node), int32(service), int8(action.Order())}]
	}
	if err := d.untell(was); err != nil {
		return loom.Plan{}, err
	}
	return d.takeBack(in, was)
}

// untell adds the stage that configures again the followers that had heard.
func (d *delta) untell(was func(int, int, loom.TaskAction) bool) error {
	rounds := d.new.rounds(d.old, func(int) bool { return true }, func(f int) []int32 {
		return slices.DeleteFunc(slices.Clone(d.kept[f]), func(n int32) bool { return !was(int(n), f, loom.ActionConfigure) })
	})
	if len(rounds) == 0 {
		return nil
	}
	return d.follow(rounds)
}

// takeBack adds the stage that stops, removes and deletes.
func (d *delta) takeBack(in UndoInput, was func(int, int, loom.TaskAction) bool) (loom.Plan, error) {
	s := newSection()
	for i := range d.changed {
		n := &d.changed[i]
		services := n.added
		var own []loom.TaskAction
		if n.comes {
			services = n.after
			if was(n.at, nodeTask, loom.ActionCreate) || in.HasMachine != nil && in.HasMachine(d.nodes[n.at].id) {
				own = []loom.TaskAction{loom.ActionDelete}
			}
		}
		d.chain(s, n.at, part{services: services, defined: d.new, actions: removeSteps, only: func(service int, action loom.TaskAction) bool {
			if action == loom.ActionStop {
				return was(n.at, service, loom.ActionStart)
			}
			return was(n.at, service, loom.ActionInstall)
		}}, part{own: own})
	}
	if err := d.close(s); err != nil {
		return loom.Plan{}, err
	}
	return d.plan(in.Plan.Action)
}
