package planner

import (
	"cmp"
	"fmt"
	"slices"

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

// Change is a cluster before and after.
type Change struct {
	// Action names the operation; "" finds it by what differs.
	Action        loom.ClusterAction
	Before, After State
	// Reinstall are services of both that are installed again although their definition may
	// be the same, because their files are others.
	Reinstall []string
	// Batch is how many nodes are upgraded or replaced at a time; 0 means 1.
	Batch int
	// MinHealthy is how many nodes of each service must be up at any time; nil
	// means all but one batch, and at least 1 where there are 2.
	MinHealthy *int
	// Dead are nodes that leave whose machines do not answer: nothing is drained or stopped
	// there.
	Dead []loom.NodeID
	// Remaining runs with what is new. It is not looked at where a cluster comes or goes.
	Remaining RemainingActions
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
	if err := d.checkConflicts(); err != nil {
		return loom.Plan{}, err
	}
	if err := d.applyRemaining(change.Remaining); err != nil {
		return loom.Plan{}, err
	}
	batches, err := d.batches(change)
	if err != nil {
		return loom.Plan{}, err
	}
	d.early = change.Early
	if err := d.addCreateStage(); err != nil {
		return loom.Plan{}, err
	}
	for _, batch := range batches {
		if err := d.addBatchStage(batch); err != nil {
			return loom.Plan{}, err
		}
	}
	if err := d.addFollowerStage(func(n *nodeDelta) bool { return n.roll != replaces }); err != nil {
		return loom.Plan{}, err
	}
	if err := d.addDeleteStage(); err != nil {
		return loom.Plan{}, err
	}
	return d.plan(action)
}

var (
	machineSteps = []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap}
	installSteps = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart}
	upgradeSteps = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionStart}
	startSteps   = []loom.TaskAction{loom.ActionStart}
	stopSteps    = []loom.TaskAction{loom.ActionStop}
	drainSteps   = []loom.TaskAction{loom.ActionDrain, loom.ActionStop}
	removeSteps  = []loom.TaskAction{loom.ActionStop, loom.ActionRemove}
)

// addCreateStage adds the stage of what is new: nodes, services, machines that are repaired.
func (d *delta) addCreateStage() error {
	s := newSection()
	for i := range d.changed {
		n := &d.changed[i]
		switch {
		case n.created:
			d.chain(s, n.at, part{own: machineSteps}, part{services: n.after, defined: d.new, actions: installSteps})
		case n.repaired:
			d.replace(s, n, nil)
		case len(n.remaining) > 0:
			d.chain(s, n.at, append(n.remainingParts(d), part{services: n.added, defined: d.new, actions: installSteps})...)
		case len(n.added) > 0:
			d.chain(s, n.at, part{own: machineSteps[2:]}, part{services: n.added, defined: d.new, actions: installSteps})
		}
	}
	return d.closeStage(s)
}

// replace returns a node another machine. What the old one holds of services in
// drained is moved away before.
func (d *delta) replace(s *section, n *nodeDelta, drained []int) {
	d.chain(s, n.at,
		part{services: drained, defined: d.old, actions: drainSteps},
		part{own: append([]loom.TaskAction{loom.ActionDelete}, machineSteps...)},
		part{services: n.after, defined: d.new, actions: installSteps})
}

// addBatchStage adds the stage of a batch, and, where machines were replaced, that of the
// followers.
func (d *delta) addBatchStage(batch []*nodeDelta) error {
	s := newSection()
	replaced := map[*nodeDelta]bool{}
	for _, n := range batch {
		if n.roll == replaces {
			var drained []int
			for _, service := range n.before {
				if d.old.services[service].Defines(loom.ActionDrain) {
					drained = append(drained, service)
				}
			}
			d.replace(s, n, drained)
			replaced[n] = true
			continue
		}
		parts := []part{{services: n.upgraded, defined: d.old, actions: stopSteps}, {services: n.upgraded, defined: d.new, actions: upgradeSteps}}
		if n.prepare {
			parts = append([]part{{own: machineSteps[2:]}}, parts...)
		}
		d.chain(s, n.at, parts...)
	}
	if err := d.closeStage(s); err != nil || len(replaced) == 0 {
		return err
	}
	return d.addFollowerStage(func(n *nodeDelta) bool { return replaced[n] })
}

// addFollowerStage adds the stage in which followers are configured again for the sake of
// some of the changed nodes. Machines that are new by then know already.
func (d *delta) addFollowerStage(of func(*nodeDelta) bool) error {
	changed := make([]bool, len(d.names))
	know := map[int32]bool{}
	for i := range d.changed {
		n := &d.changed[i]
		if !of(n) {
			continue
		}
		moved := slices.Concat(n.added, n.removed)
		if n.created || n.deleted || n.repaired || n.roll == replaces {
			moved = slices.Concat(n.before, n.after)
			know[int32(n.at)] = true
		}
		for _, s := range moved {
			changed[s] = true
		}
	}
	rounds := d.new.rounds(d.old, func(s int) bool { return changed[s] }, func(f int) []int32 {
		return slices.DeleteFunc(slices.Clone(d.retained[f]), func(n int32) bool { return know[n] })
	})
	if len(rounds) == 0 {
		return nil
	}
	return d.addRoundsStage(rounds)
}

// addDeleteStage adds the stage of what goes: services that are taken off, nodes.
func (d *delta) addDeleteStage() error {
	s := newSection()
	for i := range d.changed {
		n := &d.changed[i]
		if n.deleted && n.dead {
			d.chain(s, n.at, part{own: []loom.TaskAction{loom.ActionDelete}})
		} else if n.deleted {
			d.chain(s, n.at, part{services: n.before, defined: d.old, actions: drainSteps}, part{own: []loom.TaskAction{loom.ActionDelete}})
		} else if len(n.removed) > 0 {
			d.chain(s, n.at, part{services: n.removed, defined: d.old, actions: removeSteps})
		}
	}
	return d.closeStage(s)
}

// checkConflicts finds what no order of tasks can make right.
func (d *delta) checkConflicts() error {
	var errs []loom.FieldError
	came, went := map[int]bool{}, map[int]bool{}
	for i := range d.changed {
		n := &d.changed[i]
		for _, s := range n.before {
			if n.deleted && d.old.services[s].Shrink == "refuse" {
				errs = append(errs, loom.FieldError{Field: fmt.Sprintf("nodes.%d", d.nodes[n.at].number),
					Message: fmt.Sprintf("Node %d has the service “%s”, which says that its nodes must not leave (shrink: refuse); keep the node.", d.nodes[n.at].number, d.names[s])})
			}
		}
		for _, s := range n.added {
			came[s] = true
		}
		for _, s := range n.removed {
			went[s] = true
		}
	}
	for x := range d.names {
		for y := range d.names {
			if came[x] && went[y] && (d.conflicts(x, y) || d.conflicts(y, x)) {
				errs = append(errs, loom.FieldError{Field: "services." + d.names[x],
					Message: fmt.Sprintf("“%s” conflicts with “%s”, which is removed only after new services run; remove it in an operation of its own first.", d.names[x], d.names[y])})
			}
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &loom.Error{Kind: loom.Invalid, Message: errs[0].Message, Fields: errs}
}

// conflicts reports whether a service names another, or what it provides, among
// its conflicts.
func (d *delta) conflicts(x, y int) bool {
	for _, c := range []*catalog{d.old, d.new} {
		for _, name := range c.services[x].Dependencies.Conflicts {
			if slices.Contains(d.old.providers[name], y) || slices.Contains(d.new.providers[name], y) {
				return true
			}
		}
	}
	return false
}

// StateOf is the layout of a snapshot.
func StateOf(s loom.Snapshot) State {
	return State{Nodes: s.Nodes, Services: s.Services, Config: s.Config}
}

// Snapshot is the state as it is stored, without the cluster's copies.
func (s State) Snapshot() loom.Snapshot {
	return loom.Snapshot{Nodes: s.Nodes, Services: s.Services, Config: s.Config}
}
