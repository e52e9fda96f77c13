package planner

import (
	"slices"

	"loom/app/loom"
)

// RollbackInput is an operation that failed, or that is to be rolled back, when nothing of
// it runs any longer.
type RollbackInput struct {
	// Plan of the operation as it is stored: with tasks that were added for machines
	// recreated, without tasks that undo (see ProgressOf). That of a retry is the plan of
	// the operation that it retries. What the operation leads to and no task of it does
	// counts as done already.
	Plan loom.Plan
	// Begun reports whether any attempt of the task of a number began, Done whether it
	// is complete or skipped, which implies that it began. A nil Begun is Done. Where an
	// operation was retried, what either of the two did counts (see ProgressOf).
	Begun, Done func(number int) bool
	// HasMachine reports whether a node may have a machine now, whatever the tasks
	// say; nil means that only the tasks tell.
	HasMachine func(loom.NodeID) bool
	// Before and After are the layout around the operation; a create has none before.
	Before, After State
	// To is where to go; the zero State means Before. A cluster that is to end without
	// nodes although it had some has Nodes that are empty and not nil.
	To State
	// Batch is as in Change.
	Batch int
	// MinHealthy is as in Change, but nil lets any number of nodes be down: nothing
	// should keep people from taking back what failed.
	MinHealthy *int
	// Mends says that To is what the operation led to, changed: what it left undone is
	// done, also where it only started, stopped or configured services.
	Mends bool
	// First is the operation that this one mends, nil for others. Its After is Before.
	First *RollbackInput
}

// RollbackInputOf begins the input of PlanRollback about an operation.
func RollbackInputOf(l *loom.Lineage) RollbackInput {
	course := ProgressOf(l.Plans)
	in := RollbackInput{Plan: course.Plan, Begun: course.Begun, Done: course.Done, Before: StateOf(l.Before), After: StateOf(l.After)}
	in.After.Nodes = countIncarnations(course.Plan, l.Before.Nodes, l.After.Nodes)
	if l.First != nil {
		first := RollbackInputOf(l.First)
		in.First = &first
	}
	return in
}

// PlanRollback plans what leads from what an operation really left, After as far as its tasks
// got and Before elsewhere, to another layout, which is that before it unless To says
// otherwise. Places that were never touched and that are
// as they should be get no task; a machine that was there before the operation, and
// still is, is deleted only where the layout to go to lacks it or wants another type.
//
//   - A node that came goes: STOP for START, REMOVE for INSTALL, DELETE for CREATE.
//   - A node whose machine is gone, or half made, gets another one, behind a DELETE
//     where there may be one.
//   - A service that was only stopped is started, one that was removed installed; one
//     that was added is stopped and removed as far as it came.
//   - A service in another version is put back: STOP, INSTALL, CONFIGURE, START. What
//     is down already goes first and at once, the rest batch by batch, as do machines of
//     another type.
//   - Followers are configured again where they were configured for what is undone, and where
//     the nodes they follow are others in the end.
//   - Where the config differs from that after the operation, all other services
//     are configured and restarted.
//
// In the plan, whose action is that of the operation, Old tasks carry out services as
// Definitions gives them, the others as To does. A PlanRollback that was interrupted is taken
// up by one with its plan, Before and After changed over and To where both lead.
//
// Errors: Invalid for a plan with other nodes or services than the layouts, for layouts
// that contradict each other, for services that depend on each other in a circle, for
// a batch below 1 and for one that leaves fewer nodes up than a MinHealthy that is
// given; with a To that is given also for a service that must not shrink and for one
// that comes in conflict with one that goes.
func PlanRollback(in RollbackInput) (loom.Plan, error) {
	k, err := newRollback(in)
	if err != nil {
		return loom.Plan{}, err
	}
	for i := range k.outcomes {
		k.decide(&k.outcomes[i])
	}
	k.countChanges()
	if k.hasTarget {
		if err := k.checkConflicts(); err != nil {
			return loom.Plan{}, err
		}
	}
	minimum := in.MinHealthy
	if minimum == nil {
		minimum = new(int)
	}
	batches, err := k.batches(Change{Batch: in.Batch, MinHealthy: minimum})
	if err != nil {
		return loom.Plan{}, err
	}
	k.markMoved()
	if err := k.addRestoreStage(); err != nil {
		return loom.Plan{}, err
	}
	for _, batch := range batches {
		if err := k.addBatchStage(batch); err != nil {
			return loom.Plan{}, err
		}
	}
	if err := k.addRestartStage(); err != nil {
		return loom.Plan{}, err
	}
	if err := k.addStaleFollowerStage(); err != nil {
		return loom.Plan{}, err
	}
	if err := k.addCleanupStage(); err != nil {
		return loom.Plan{}, err
	}
	return k.plan(in.Plan.Action)
}

// rollback is what PlanRollback knows: the delta leads from what is there to To. Its old catalog
// holds what Definitions gives.
type rollback struct {
	delta
	in RollbackInput
	// servicesBefore are the services of Before, will those of After.
	servicesBefore, servicesAfter *catalog
	// hasTarget says that To was given.
	hasTarget bool
	// configures says that the config has to be brought to machines.
	configures bool
	// configDone says that the config is the one that the operation led to.
	configDone bool
	// sameTarget says that the operation led to what To is.
	sameTarget bool
	// runtime says that the operation only started, stopped or configured services.
	runtime bool
	// progress of the tasks by node, service and action; old are those before the level
	// in made, at which the operation makes a machine for the node.
	progress map[draftTask]taskProgress
	made     []int
	outcomes []nodeOutcome
	// movedBefore, movedAfter and movedSince mark the services whose nodes or machines
	// are others in the end than before the operation, than After has them with the
	// machines of then, and than After has them with all machines made.
	movedBefore, movedAfter, movedSince []bool
	// notified are the placements that were configured in the stage of a batch.
	notified map[placement]bool
	// first is what is known of the operation that this one mends, nil for none.
	first *rollback
}

// taskProgress is how far the tasks of one action on one place came.
type taskProgress struct{ planned, begun, some, done bool }

// placement is a service on a node.
type placement struct{ node, service int }

var runtimeActions = []loom.ClusterAction{
	loom.ClusterConfigure, loom.ClusterConfigureWithRestart, loom.StartServices, loom.StopServices, loom.RestartServices,
}

func (in *RollbackInput) hasTarget() bool {
	return in.To.Nodes != nil || in.To.Services != nil || in.To.Config != nil
}

func (in *RollbackInput) target() State {
	if in.hasTarget() {
		return in.To
	}
	return in.Before
}

// Definitions are the services as the Old tasks of the plan carry them out: as After
// defines them, for that is the state that is left; or as Before does, which a machine
// that the operation did not get to still has, where After lacks them or is as To.
func (in *RollbackInput) Definitions() map[string]loom.Service {
	return in.definitions(in.target().servicesOnNodes())
}

// servicesOnNodes returns those of the services that are on a node.
func (s State) servicesOnNodes() map[string]loom.Service {
	all := map[string]loom.Service{}
	for i := range s.Nodes {
		for _, name := range s.Nodes[i].Services {
			all[name] = s.Services[name]
		}
	}
	return all
}

func (in *RollbackInput) definitions(to map[string]loom.Service) map[string]loom.Service {
	all := in.Before.servicesOnNodes()
	if in.First != nil {
		all = in.First.definitions(to)
	}
	for name, s := range in.After.servicesOnNodes() {
		end, ends := to[name]
		if _, had := all[name]; !had || !ends || differ(&s, &end) {
			all[name] = s
		}
	}
	return all
}

// newRollback reads an operation; what else is known of its cluster are states around
// others that go with it.
func newRollback(in RollbackInput, known ...State) (*rollback, error) {
	k := &rollback{in: in, hasTarget: in.hasTarget(), runtime: slices.Contains(runtimeActions, in.Plan.Action), notified: map[placement]bool{}}
	k.in.To = in.target()
	states := append([]State{in.Before, in.After, k.in.To}, known...)
	if in.First != nil {
		first := *in.First
		first.To, first.Mends = first.After, true
		if first.To.Nodes == nil {
			first.To.Nodes = []loom.Node{}
		}
		for f := &first; f != nil; f = f.First {
			states = append(states, f.Before, f.After)
		}
		var err error
		if k.first, err = newRollback(first, states...); err != nil {
			return nil, err
		}
		for i := range k.first.outcomes {
			k.first.readOutcome(&k.first.outcomes[i])
		}
	}
	names, present, err := servicesIn(states...)
	if err != nil {
		return nil, err
	}
	k.names = names
	k.servicesBefore, k.servicesAfter = union(k.names, in.Before.Services, present[0]), union(k.names, in.After.Services, present[1])
	if k.first != nil {
		k.servicesBefore = k.first.catalogBefore()
	}
	k.new = union(k.names, k.in.To.Services, present[2])
	k.old = k.oldCatalog(present[1])
	k.outdated = make([]bool, len(k.names))
	for i, name := range k.names {
		k.outdated[i] = !present[2][name] || differ(&k.old.services[i], &k.new.services[i])
	}
	before, after, to := byID(in.Before.Nodes), byID(in.After.Nodes), byID(k.in.To.Nodes)
	all := []map[loom.NodeID]*loom.Node{before, after, to}
	for _, s := range states[3:] {
		all = append(all, byID(s.Nodes))
	}
	if err := k.number(all...); err != nil {
		return nil, err
	}
	k.retained, k.up = make([][]int32, len(k.names)), make([]int, len(k.names))
	if err := k.readProgress(); err != nil {
		return nil, err
	}
	k.outcomes = make([]nodeOutcome, len(k.nodes))
	for i := range k.nodes {
		id := k.nodes[i].id
		f := nodeOutcome{at: i, before: before[id], after: after[id], to: to[id]}
		if k.first != nil {
			f.before = k.first.currentNode(i)
		}
		if f.to != nil {
			k.nodes[i].services = k.indices(f.to.Services)
		} else if f.after != nil {
			k.nodes[i].services = k.indices(f.after.Services)
		} else if f.before != nil {
			k.nodes[i].services = k.indices(f.before.Services)
		}
		k.outcomes[i] = f
	}
	k.sameTarget = !slices.ContainsFunc(k.outcomes, k.hasOtherTarget)
	return k, nil
}

// hasOtherTarget reports whether To wants something else of a node than the operation did.
func (k *rollback) hasOtherTarget(f nodeOutcome) bool {
	if f.after == nil || f.to == nil {
		return f.after != f.to
	}
	to := k.indices(f.to.Services)
	return retyped(f.after, f.to) || f.after.Incarnation != f.to.Incarnation || !slices.Equal(k.indices(f.after.Services), to) ||
		slices.ContainsFunc(to, func(s int) bool { return differ(&k.servicesAfter.services[s], &k.new.services[s]) })
}

// oldCatalog indexes what Old tasks carry out. What is not as After has it orders nothing
// where that would close a circle.
func (k *rollback) oldCatalog(after map[string]bool) *catalog {
	services, there := k.in.Definitions(), map[string]bool{}
	for name := range services {
		there[name] = true
	}
	c := union(k.names, services, there)
	if len(c.cycles(installPhase))+len(c.cycles(runtimePhase)) > 0 {
		for i, name := range k.names {
			if !after[name] || differ(&c.services[i], &k.servicesAfter.services[i]) {
				c.services[i].Dependencies = loom.Dependencies{}
			}
		}
	}
	return c
}

// readProgress notes how far the tasks of the operation came, and whether its config has to be
// taken back.
func (k *rollback) readProgress() error {
	at := make(map[loom.NodeID]int, len(k.nodes))
	for i, n := range k.nodes {
		at[n.id] = i
	}
	// What was done to a machine that another took the place of is kept apart.
	k.made = make([]int, len(k.nodes))
	for _, t := range k.in.Plan.Tasks {
		if i, there := at[t.Node]; there && t.Action == loom.ActionCreate && (k.made[i] == 0 || t.Level < k.made[i]) {
			k.made[i] = t.Level
		}
	}
	any := false
	k.progress = make(map[draftTask]taskProgress, len(k.in.Plan.Tasks))
	for _, t := range k.in.Plan.Tasks {
		node, there := at[t.Node]
		if !there {
			return loom.NewError(loom.Invalid, "Node %s of task %d is not among the nodes before and after the operation.", t.Node, t.Number)
		}
		service := nodeTask
		if t.Service != "" {
			s, defined := k.new.index[t.Service]
			if !defined {
				return loom.NewError(loom.Invalid, "The service “%s” of task %d is not on the nodes of the operation.", t.Service, t.Number)
			}
			service = s
		}
		done := k.in.Done != nil && k.in.Done(t.Number)
		begun := done || k.in.Begun != nil && k.in.Begun(t.Number)
		key := draftTask{node: int32(node), service: int32(service), order: int8(t.Action.Order()), old: service != nodeTask && t.Level < k.made[node]}
		p := k.progress[key]
		k.progress[key] = taskProgress{true, p.begun || begun, p.some || done, done && (p.done || !p.planned)}
		any = any || begun
	}
	k.configDone = !configDiffers(k.in.After.Config, k.in.To.Config)
	k.configures = !k.configDone && (any || k.hasTarget)
	return nil
}

// taskProgress returns the progress on the machine that is there.
func (k *rollback) taskProgress(node, service int, action loom.TaskAction) taskProgress {
	old := service != nodeTask && k.made[node] > 0 && !k.outcomes[node].createdHere
	return k.progress[draftTask{node: int32(node), service: int32(service), order: int8(action.Order()), old: old}]
}
