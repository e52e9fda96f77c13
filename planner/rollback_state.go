package planner

import (
	"slices"

	"loom/app/loom"
)

// machine says what a node has when an operation is taken back.
type machine int

const (
	// missing is none, or one that is half made or half deleted.
	missing machine = iota
	present
)

// nodeOutcome is what an operation left of a node, and what becomes of it.
type nodeOutcome struct {
	at                int
	before, after, to *loom.Node
	machine           machine
	// created says that the machine was made by the operation, or by one it retries;
	// createdHere that this operation created it.
	created, createdHere bool
	// replacing says that the operation was to replace the machine, and did not begin.
	replacing bool
	// needsBootstrap says that the machine misses its BOOTSTRAP.
	needsBootstrap bool

	// what becomes of the node: none of these where it stays.
	creates, replaces, deletes bool
	// serves says that the machine, which is replaced, has services that are up.
	serves   bool
	services []placedService
	// now and later are what is done on a machine that stays, at once and with its
	// batch; removes on the way out.
	now, later, removes serviceWork
	boot, bootLater     bool
}

// state is what is on a machine of a service.
type state int

const (
	absent state = iota
	// intact: as its definition says.
	intact
	// stopped: whole, but stopped.
	stopped
	// partial: begun to be put on, in a definition that is not at its end.
	partial
)

// placedService is a service on a machine that is there.
type placedService struct {
	service int
	state   state
	// earlier says that it is there as Before defines it, else as After does.
	earlier bool
	// running says that something of it may run.
	running bool
	// remaining are the actions between a partial place and After.
	remaining []loom.TaskAction
	// restart are the actions left of a restart that was to bring a config.
	restart []loom.TaskAction
	// notified and unnotified say what the service knows of its nodes: it was configured in the
	// operation; it was to be and was not. Neither: it knows what After says.
	notified, unnotified bool
	// fullyNotified says that it was configured for all changes of the operation.
	fullyNotified bool
	// misconfigured says that its config is that of another version.
	misconfigured bool
	// interrupted says that a CONFIGURE of it began and did not end.
	interrupted bool
	// stale says that it was to be configured for the layout that To is.
	stale bool
	// definedBy is the catalog that defines what is there, where that is neither of Before nor
	// of After.
	definedBy *catalog
}

// repairActions are those that repair machines which stay: they create and delete none.
var repairActions = []loom.ClusterAction{loom.RepairRestart, loom.RepairConfigure, loom.RepairReboot}

var restartSteps = []loom.TaskAction{loom.ActionStop, loom.ActionConfigure, loom.ActionStart}

// findMachine says what machine a node has.
func (k *rollback) findMachine(f *nodeOutcome) {
	deletes, creates := k.taskProgress(f.at, nodeTask, loom.ActionDelete), k.taskProgress(f.at, nodeTask, loom.ActionCreate)
	confirms, boots := k.taskProgress(f.at, nodeTask, loom.ActionConfirm), k.taskProgress(f.at, nodeTask, loom.ActionBootstrap)
	unprepared := boots.planned && !boots.done
	switch {
	case slices.Contains(repairActions, k.in.Plan.Action) && f.before != nil && f.after != nil:
		f.machine, f.needsBootstrap = present, unprepared // a failed CONFIRM says nothing against a machine that was there
	case confirms.planned && !confirms.done && f.before == nil:
		f.machine = missing
	case !deletes.planned && !creates.planned:
		if f.after == nil || confirms.planned && !confirms.done {
			return // it is gone already, or half made
		}
		f.machine = present
		f.created = f.before == nil || retyped(f.before, f.after)
		f.needsBootstrap = f.created && unprepared
	case f.before != nil && deletes.planned && !deletes.begun && !creates.begun:
		f.machine, f.replacing = present, f.after != nil
	case f.after != nil && creates.done && (deletes.done || !deletes.planned) && (confirms.done || !confirms.planned) && !unprepared:
		f.machine, f.created, f.createdHere = present, true, true
	}
}

// retyped reports whether nodes need machines of different kinds.
func retyped(a, b *loom.Node) bool {
	return a.HardwareType != b.HardwareType || a.ImageType != b.ImageType || a.Flavor != b.Flavor || a.Image != b.Image
}

// mayExist reports whether there may be a machine to delete on a node that lost its own.
func (k *rollback) mayExist(f *nodeOutcome) bool {
	deletes := k.taskProgress(f.at, nodeTask, loom.ActionDelete)
	return k.taskProgress(f.at, nodeTask, loom.ActionCreate).begun || deletes.planned && !deletes.done ||
		k.in.HasMachine != nil && k.in.HasMachine(k.nodes[f.at].id)
}

// serviceProgress is how far the actions of a service on a node came, in their order.
type serviceProgress struct {
	begun bool
	// remaining are those behind the last one that is done. One before that is not done
	// either only where it comes twice, such as the CONFIGURE of a follower.
	remaining []loom.TaskAction
}

// serviceProgress takes actions that a service defines or has tasks for. One without a task is
// done: the operation that this one retries did it, or it was not needed.
func (k *rollback) serviceProgress(f *nodeOutcome, s int, defined *catalog, actions ...loom.TaskAction) serviceProgress {
	var c serviceProgress
	// The end of a whole cluster stops nothing, so nothing was stopped for it.
	never := len(k.in.After.Nodes) == 0
	for _, action := range actions {
		p := k.taskProgress(f.at, s, action)
		if !p.planned {
			if !defined.services[s].Defines(action) {
				continue
			}
			p.begun, p.some = !never, !never
		}
		c.begun = c.begun || p.begun
		switch {
		case !p.some:
			c.remaining = append(c.remaining, action)
		case p.planned:
			c.remaining = nil
		}
	}
	return c
}

// findServices finds what is on the machine of a node, by service.
func (k *rollback) findServices(f *nodeOutcome) {
	var before, after []int
	if f.before != nil && !f.created {
		before = k.indices(f.before.Services)
	}
	if f.after != nil {
		after = k.indices(f.after.Services)
	}
	all := slices.Concat(before, after)
	slices.Sort(all)
	for _, s := range slices.Compact(all) {
		_, had := slices.BinarySearch(before, s)
		_, gets := slices.BinarySearch(after, s)
		p := placedService{service: s}
		early, was := k.inheritedService(f, s), k.servicesBefore
		if early != nil {
			was = k.first.catalogOf(early)
		}
		switch {
		case early != nil && !k.touched(f, s):
			k.markUntouched(f, &p, early)
			if p.state != absent || len(p.remaining) > 0 {
				f.services = append(f.services, p)
			}
			continue
		case early != nil && gets && (early.state == partial || early.state == absent):
			if k.markAdded(f, &p); p.state == absent { // what was there was only stopped
				p = k.interruptedService(f, early, was)
			} else if p.state == partial {
				p.running = p.running || k.interruptedService(f, early, was).running
			}
		case had && (f.after == nil || f.replacing):
			k.markOutgoing(f, &p)
		case had && gets && (differ(&was.services[s], &k.servicesAfter.services[s]) || k.reinstalls(f, s)):
			k.markUpgraded(f, &p)
		case had && gets:
			k.markUnchanged(f, &p)
		case had:
			k.markRemoved(f, &p)
		case !f.replacing:
			k.markAdded(f, &p)
		}
		if early != nil && early.state == partial && !gets && p.state != absent {
			p = k.interruptedService(f, early, was) // what was to go was not complete before
		}
		if early != nil {
			k.inherit(f, &p, early, was)
		}
		if !k.runtime {
			configures := k.taskProgress(f.at, s, loom.ActionConfigure)
			// What is removed is not configured.
			p.notified, p.unnotified = configures.begun, !configures.begun && (configures.planned || had && !gets || f.replacing)
			p.fullyNotified = configures.planned && configures.done && had && gets && !f.replacing
			p.stale = k.sameTarget && configures.planned && !configures.done
			p.interrupted = configures.begun && !configures.done
		}
		// It may have been configured for the nodes of the operation before.
		p.stale = p.stale || early != nil && !p.fullyNotified && k.follower(s)
		if p.state != absent || len(p.remaining) > 0 {
			f.services = append(f.services, p)
		}
	}
}

// reinstalls reports whether a service was to be reinstalled on the machine of a node because
// its files are others.
func (k *rollback) reinstalls(f *nodeOutcome, s int) bool {
	return k.in.Plan.Action == loom.ClusterUpgrade && k.taskProgress(f.at, s, loom.ActionInstall).planned
}

// markOutgoing is a service of a machine that was to go.
func (k *rollback) markOutgoing(f *nodeOutcome, p *placedService) {
	p.state, p.earlier, p.running = intact, true, true
	p.misconfigured = k.taskProgress(f.at, p.service, loom.ActionConfigure).begun && differ(&k.servicesBefore.services[p.service], &k.servicesAfter.services[p.service])
	if f.replacing && !k.drains(f, p.service) {
		return // it goes with its machine
	}
	if c := k.serviceProgress(f, p.service, k.servicesBefore, drainSteps...); c.begun {
		p.state, p.running = stopped, len(c.remaining) > 0
		p.remaining = c.remaining
	}
}

// drains reports whether the service of a machine that is replaced is drained before.
// Those of machines that are repaired are not.
func (k *rollback) drains(f *nodeOutcome, s int) bool {
	if k.taskProgress(f.at, s, loom.ActionDrain).planned || k.taskProgress(f.at, s, loom.ActionStop).planned {
		return true
	}
	return retyped(f.before, f.after) && k.in.Plan.Action != loom.ClusterRepair && k.servicesBefore.services[s].Defines(loom.ActionDrain)
}

// markUpgraded is a service that was to get another version.
func (k *rollback) markUpgraded(f *nodeOutcome, p *placedService) {
	p.state, p.earlier, p.running = intact, true, true
	stop, put := k.serviceProgress(f, p.service, k.servicesBefore, stopSteps...), k.serviceProgress(f, p.service, k.servicesAfter, k.withoutStart(f, p.service, upgradeSteps)...)
	// As a follower it may be configured, in the new version, before its own batch.
	install := k.taskProgress(f.at, p.service, loom.ActionInstall)
	early := put.begun && (len(stop.remaining) > 0 || install.planned && !install.begun)
	if start := k.taskProgress(f.at, p.service, loom.ActionStart); !start.some {
		put.remaining = slices.DeleteFunc(slices.Clone(upgradeSteps), func(action loom.TaskAction) bool {
			t := k.taskProgress(f.at, p.service, action)
			return !t.planned || t.done || t.some && action != loom.ActionConfigure
		})
	}
	switch {
	case early:
		p.misconfigured = k.taskProgress(f.at, p.service, loom.ActionConfigure).begun
		if stop.begun {
			p.state = stopped
		}
	case put.begun && len(put.remaining) == 0:
		p.earlier = false
	case put.begun:
		p.state, p.earlier, p.remaining = partial, false, put.remaining
		p.running = k.mayRun(f, p.service) || len(stop.remaining) > 0 || !stop.begun
	case stop.begun:
		p.state = stopped
	}
	if p.state == stopped {
		p.running = len(stop.remaining) > 0
	}
}

// mayRun reports whether a start began, or had begun before the operation.
func (k *rollback) mayRun(f *nodeOutcome, s int) bool {
	start := k.taskProgress(f.at, s, loom.ActionStart)
	return start.begun || !start.planned && k.servicesAfter.services[s].Defines(loom.ActionStart)
}

// markUnchanged is a service that the operation was to leave as it was, apart from config.
func (k *rollback) markUnchanged(f *nodeOutcome, p *placedService) {
	p.state, p.running = intact, true
	if (k.runtime || k.in.Plan.Action == loom.AddServices) && !k.in.Mends {
		return // what it starts and stops is no part of a layout
	}
	if k.taskProgress(f.at, p.service, loom.ActionInstall).planned || k.taskProgress(f.at, p.service, loom.ActionInitialize).planned {
		// The operation that this one retries recreated the machine.
		p.state, p.running = absent, false
		k.markAdded(f, p)
		return
	}
	starts, stops := k.taskProgress(f.at, p.service, loom.ActionStart), k.taskProgress(f.at, p.service, loom.ActionStop)
	if !starts.planned && !stops.planned && !(k.in.Mends && k.taskProgress(f.at, p.service, loom.ActionConfigure).planned) {
		return
	}
	planned := slices.DeleteFunc(slices.Clone(restartSteps), func(a loom.TaskAction) bool { return !k.taskProgress(f.at, p.service, a).planned })
	c := k.serviceProgress(f, p.service, k.servicesAfter, planned...)
	// Followers are configured once more; either may be missing.
	if t := k.taskProgress(f.at, p.service, loom.ActionConfigure); len(c.remaining) > 0 && t.planned && !t.done && !slices.Contains(c.remaining, loom.ActionConfigure) {
		c.remaining = slices.Insert(c.remaining, 0, loom.ActionConfigure)
	}
	if len(c.remaining) > 0 && (c.begun || k.configDone) {
		p.restart = c.remaining
	}
}

// markRemoved is a service that was to be taken off a machine that stays.
func (k *rollback) markRemoved(f *nodeOutcome, p *placedService) {
	p.state, p.earlier, p.running = intact, true, true
	stop, remove := k.serviceProgress(f, p.service, k.servicesBefore, stopSteps...), k.serviceProgress(f, p.service, k.servicesBefore, loom.ActionRemove)
	switch {
	case remove.begun && (len(stop.remaining) == 0 || k.taskProgress(f.at, p.service, loom.ActionRemove).begun):
		p.state, p.remaining = absent, remove.remaining
	case stop.begun:
		p.state, p.running = stopped, len(stop.remaining) > 0
	}
}

// markAdded is a service that was to be put on a machine, new or not.
func (k *rollback) markAdded(f *nodeOutcome, p *placedService) {
	c := k.serviceProgress(f, p.service, k.servicesAfter, installSteps...)
	switch {
	case len(c.remaining) == 0:
		p.state, p.running = intact, c.begun
	case c.begun:
		p.state, p.running, p.remaining = partial, k.mayRun(f, p.service), c.remaining
	}
}

// definition is the catalog by which what is on a place is carried out, and whether it
// is the same as To has it.
func (k *rollback) definition(p *placedService) (*catalog, bool) {
	has := k.catalogOf(p)
	if !differ(&has.services[p.service], &k.new.services[p.service]) {
		return k.new, true
	}
	return k.old, false
}
