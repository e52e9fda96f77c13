package planner

import (
	"slices"

	"loom/app/loom"
)

// serviceWork is what is done to services of a machine, in parts of one service each.
type serviceWork []part

func (w *serviceWork) add(s int, defined *catalog, waits bool, actions ...loom.TaskAction) {
	*w = append(*w, part{services: []int{s}, defined: defined, actions: actions, waits: waits})
}

func (w serviceWork) has(s int) bool {
	return slices.ContainsFunc(w, func(p part) bool { return p.services[0] == s })
}

// decide says what becomes of a node.
func (k *rollback) decide(f *nodeOutcome) {
	k.findMachine(f)
	if f.machine == present {
		k.findServices(f)
	}
	f.deletes, f.creates = f.to == nil, f.to != nil && f.machine == missing
	switch {
	case f.machine == missing:
	case f.deletes:
		k.removeAll(f)
	case f.isRepair():
		f.replaces = true
	case f.hasOtherType():
		f.replaces = true
		f.serves = slices.ContainsFunc(f.services, func(p placedService) bool { return p.state == intact })
	default:
		k.updateServices(f)
	}
}

// hasOtherType reports whether the machine that is there is of another type than To wants.
func (f *nodeOutcome) hasOtherType() bool {
	if f.created {
		return retyped(f.after, f.to)
	}
	return retyped(f.before, f.to)
}

// isRepair reports whether the operation was to make another machine of the same type
// and did not begin, and To wants that one.
func (f *nodeOutcome) isRepair() bool {
	return f.replacing && !retyped(f.before, f.after) && !retyped(f.after, f.to) &&
		f.to.Incarnation == f.after.Incarnation && f.to.Incarnation != f.before.Incarnation
}

// removeAll takes leave of the services of a machine that goes. Of one that the operation
// made only what is complete is taken off: it goes anyway.
func (k *rollback) removeAll(f *nodeOutcome) {
	for i := range f.services {
		p := &f.services[i]
		defined, _ := k.definition(p)
		var actions []loom.TaskAction
		switch {
		case f.before == nil:
			if _, stays := k.new.providers[k.names[p.service]]; stays && p.state == intact {
				actions = append(actions, loom.ActionDrain)
			}
			if k.did(f, p.service, loom.ActionStart).some {
				actions = append(actions, loom.ActionStop)
			}
			if k.did(f, p.service, loom.ActionInstall).some {
				actions = append(actions, loom.ActionRemove)
			}
		case len(k.in.After.Nodes) == 0:
			// The whole cluster was to go: what the operation did not mean to stop is not up.
			for _, action := range slices.Concat(drainSteps, removeSteps[1:]) {
				if t := k.taskProgress(f.at, p.service, action); t.planned && !t.done {
					actions = append(actions, action)
				}
			}
		case p.state == intact:
			actions = drainSteps
		case p.state == stopped:
			actions = p.remaining
		case p.running:
			actions = stopSteps
		}
		f.removes.add(p.service, defined, false, actions...)
	}
}

// did is the progress of an action of a service that came; without a task it is done.
func (k *rollback) did(f *nodeOutcome, s int, action loom.TaskAction) taskProgress {
	p := k.taskProgress(f.at, s, action)
	if !p.planned {
		p.begun = k.servicesAfter.services[s].Defines(action)
		p.some = p.begun
	}
	return p
}

// updateServices brings the services of a machine that stays to what To says.
func (k *rollback) updateServices(f *nodeOutcome) {
	wanted := k.indices(f.to.Services)
	for i := range f.services {
		p := &f.services[i]
		if _, stays := slices.BinarySearch(wanted, p.service); !stays {
			k.removeService(f, p)
		} else if p.state != absent {
			k.updateService(f, p)
		}
	}
	for _, s := range wanted {
		if !slices.ContainsFunc(f.services, func(p placedService) bool { return p.service == s && p.state != absent }) {
			f.now.add(s, k.new, true, installSteps...)
			f.boot = true
		}
	}
	f.boot = f.boot || f.needsBootstrap && len(f.now) > 0
	f.bootLater = f.bootLater || f.needsBootstrap && len(f.now) == 0
}

// removeService removes what is on a machine, as far as it came.
func (k *rollback) removeService(f *nodeOutcome, p *placedService) {
	defined, _ := k.definition(p)
	actions := p.remaining // of a removal that began
	if p.state != absent {
		actions = nil
		if p.running {
			actions = append(actions, loom.ActionStop)
		}
		if _, had := k.hadBefore(f, p.service); had || k.did(f, p.service, loom.ActionInstall).begun {
			actions = append(actions, loom.ActionRemove)
		}
	}
	f.removes.add(p.service, defined, false, actions...)
}

func (k *rollback) hadBefore(f *nodeOutcome, s int) (int, bool) {
	if f.before == nil || f.created {
		return 0, false
	}
	return slices.BinarySearch(k.indices(f.before.Services), s)
}

// updateService makes of what is on a machine what To defines.
func (k *rollback) updateService(f *nodeOutcome, p *placedService) {
	defined, fits := k.definition(p)
	if fits && k.in.Mends && slices.Equal(p.restart, startSteps) {
		p.state = stopped // others may need it before they begin
	}
	switch {
	case fits && p.state == intact && (p.stale || p.misconfigured) && !k.follower(p.service):
		f.now.add(p.service, k.new, true, loom.ActionConfigure)
	case fits && p.state == intact:
	case fits:
		actions := k.finalSteps(f, p.service, startSteps)
		if p.state == partial {
			actions = p.remaining
		}
		if (k.configures || p.misconfigured) && !slices.Contains(actions, loom.ActionConfigure) {
			actions = slices.Insert(slices.Clone(actions), 0, loom.ActionConfigure)
		}
		f.now.add(p.service, k.new, slices.Contains(actions, loom.ActionConfigure), actions...)
	default:
		at, boot := &f.now, &f.boot
		if p.state == intact {
			at, boot = &f.later, &f.bootLater
		}
		if p.running {
			if k.in.Mends && k.stopFailed(f, p.service) {
				defined = k.new
			}
			at.add(p.service, defined, false, loom.ActionStop)
		}
		steps := upgradeSteps
		if slices.Contains(p.remaining, loom.ActionInitialize) {
			steps = installSteps
		}
		at.add(p.service, k.new, true, k.finalSteps(f, p.service, steps)...)
		*boot = *boot || !containsAll(k.prepared(f), k.new.automators([]int{p.service}))
	}
}

// follower reports whether a service follows one that is there, so that it is configured when those change.
func (k *rollback) follower(s int) bool {
	return slices.ContainsFunc(k.new.services[s].Follows, func(name string) bool {
		return len(k.new.providers[name])+len(k.old.providers[name]) > 0
	})
}

// prepared are the automators that a machine is ready for.
func (k *rollback) prepared(f *nodeOutcome) map[string]bool {
	if f.created {
		return k.servicesAfter.automators(k.indices(f.after.Services))
	}
	return k.servicesBefore.automators(k.indices(f.before.Services))
}

// countChanges puts what is found into the terms of a change: for what may be refused, and
// for batches.
func (k *rollback) countChanges() {
	for i := range k.outcomes {
		f := &k.outcomes[i]
		n := nodeDelta{at: f.at, deleted: f.deletes && f.machine == present && k.existedBefore(f.at)}
		up := []int{}
		switch {
		case n.deleted:
			n.before = k.indices(f.before.Services)
		case f.replaces && f.serves:
			n.roll = replaces
			for _, p := range f.services {
				if p.state == intact {
					n.before = append(n.before, p.service)
				}
			}
			up = n.before
		case f.to != nil:
			up = k.indices(f.to.Services)
		}
		for _, s := range up {
			k.up[s]++
		}
		for _, p := range f.now {
			if slices.Contains(p.actions, loom.ActionInstall) {
				n.added = append(n.added, p.services[0])
			}
		}
		for _, p := range f.removes {
			n.removed = append(n.removed, p.services[0])
		}
		for _, p := range f.later {
			n.roll = upgrades
			n.upgraded = append(n.upgraded, p.services[0])
		}
		n.upgraded = slices.Compact(n.upgraded) // STOP and what follows it
		k.changed = append(k.changed, n)
	}
}

// markMoved marks the services whose nodes or machines are others in the end.
func (k *rollback) markMoved() {
	k.movedBefore, k.movedAfter, k.movedSince = make([]bool, len(k.names)), make([]bool, len(k.names)), make([]bool, len(k.names))
	for i := range k.outcomes {
		f := &k.outcomes[i]
		has := make(map[int][3]bool)
		for j, n := range []*loom.Node{f.before, f.after, f.to} {
			if n == nil {
				continue
			}
			for _, name := range n.Services {
				h := has[k.new.index[name]]
				h[j] = true
				has[k.new.index[name]] = h
			}
		}
		made := f.creates || f.replaces
		other := f.created || f.machine == present && !f.replacing && f.before != nil && f.after != nil && f.before.Incarnation != f.after.Incarnation
		for s, h := range has {
			k.movedBefore[s] = k.movedBefore[s] || h[0] != h[2] || h[2] && (made || other)
			k.movedSince[s] = k.movedSince[s] || h[1] != h[2] || h[2] && made
			k.movedAfter[s] = k.movedAfter[s] || h[1] != h[2] || h[2] && (made || f.createdHere)
		}
	}
}

// An operation that failed may be mended: another one, of the same kind, goes on from
// where it stopped to what it was to lead to, with other versions, another config or
// fewer services. When that fails as well, what the first one left still counts where
// the second did not get to.

// readOutcome finds what the operation left of a node.
func (k *rollback) readOutcome(f *nodeOutcome) {
	k.findMachine(f)
	if f.machine == present {
		k.findServices(f)
	}
}

// catalogBefore are the services as they were when an operation began that mends this one.
func (k *rollback) catalogBefore() *catalog {
	services, there, after := map[string]loom.Service{}, map[string]bool{}, k.in.After.servicesOnNodes()
	for i, name := range k.names {
		services[name], there[name] = k.servicesAfter.services[i], true
		if _, on := after[name]; !on {
			services[name] = k.servicesBefore.services[i]
		}
	}
	return union(k.names, services, there)
}

// currentNode is a node as the operation left it, with what is on its machine; nil without
// a machine.
func (k *rollback) currentNode(at int) *loom.Node {
	f := &k.outcomes[at]
	if f.machine == missing {
		return nil
	}
	node := f.before
	if f.created || node == nil {
		node = f.after
	}
	n := *node
	n.Services = nil
	for _, p := range f.services {
		n.Services = append(n.Services, k.names[p.service])
	}
	return &n
}

// existedBefore reports whether a node was there before all of it.
func (k *rollback) existedBefore(at int) bool {
	if k.first != nil {
		return k.first.existedBefore(at)
	}
	return k.outcomes[at].before != nil
}

// inheritedService is a service on the machine of a node as the operation found it that this
// one mends; nil for none.
func (k *rollback) inheritedService(f *nodeOutcome, s int) *placedService {
	if k.first == nil || f.created {
		return nil
	}
	places := k.first.outcomes[f.at].services
	if i := slices.IndexFunc(places, func(p placedService) bool { return p.service == s }); i >= 0 {
		return &places[i]
	}
	return nil
}

// touched reports whether the operation did anything to a service on a node.
func (k *rollback) touched(f *nodeOutcome, s int) bool {
	return slices.ContainsFunc(loom.TaskActions, func(action loom.TaskAction) bool { return k.taskProgress(f.at, s, action).begun })
}

// markUntouched is for a service that is as the operation found it. It was not configured, so
// followers are configured again.
func (k *rollback) markUntouched(f *nodeOutcome, p *placedService, early *placedService) {
	*p = *early
	p.definedBy = k.first.catalogOf(early)
	p.misconfigured = p.misconfigured || p.interrupted
	p.stale = p.stale || k.follower(p.service)
	configures := k.taskProgress(f.at, p.service, loom.ActionConfigure)
	if p.state == absent || !configures.planned || !k.configDone || f.replacing || f.after == nil {
		return
	}
	if p.state != intact {
		p.misconfigured = true
		return
	}
	restart := slices.DeleteFunc(slices.Clone(restartSteps), func(a loom.TaskAction) bool { return !k.taskProgress(f.at, p.service, a).planned })
	if len(restart) > 1 || !k.follower(p.service) {
		p.restart = restart
	}
}

// interruptedService is a service that the operation found half done and at most stopped.
func (k *rollback) interruptedService(f *nodeOutcome, early *placedService, was *catalog) placedService {
	p := *early
	p.definedBy, p.running = was, early.running && !k.taskProgress(f.at, early.service, loom.ActionStop).done
	return p
}

// inherit returns a service that the operation began with what it still has of before.
func (k *rollback) inherit(f *nodeOutcome, p *placedService, early *placedService, was *catalog) {
	if p.earlier {
		p.definedBy = was
	}
	unconfigured := early.misconfigured || early.interrupted || slices.Contains(early.restart, loom.ActionConfigure)
	if unconfigured && !k.taskProgress(f.at, p.service, loom.ActionConfigure).done && !slices.Contains(slices.Concat(p.restart, p.remaining), loom.ActionConfigure) {
		p.misconfigured = true
	}
}

// catalogOf is the catalog that defines what is on a place.
func (k *rollback) catalogOf(p *placedService) *catalog {
	switch {
	case p.definedBy != nil:
		return p.definedBy
	case p.earlier:
		return k.servicesBefore
	}
	return k.servicesAfter
}

// stopFailed reports whether a STOP was tried and failed: the one of another version
// may do better.
func (k *rollback) stopFailed(f *nodeOutcome, s int) bool {
	stop := k.taskProgress(f.at, s, loom.ActionStop)
	return stop.begun && !stop.done && k.new.services[s].Defines(loom.ActionStop)
}

// finalSteps gives steps without a start where the operation was to leave a service stopped.
func (k *rollback) finalSteps(f *nodeOutcome, s int, steps []loom.TaskAction) []loom.TaskAction {
	if !k.in.Mends {
		return steps
	}
	return k.withoutStart(f, s, steps)
}

// withoutStart gives steps without a start where the operation stops a service.
func (k *rollback) withoutStart(f *nodeOutcome, s int, steps []loom.TaskAction) []loom.TaskAction {
	if !k.stops(f.at, s) {
		return steps
	}
	return slices.DeleteFunc(slices.Clone(steps), func(a loom.TaskAction) bool { return a == loom.ActionStart })
}

// stops reports whether the operation, which stops services, stops one on a node.
func (k *rollback) stops(at, s int) bool {
	if k.in.Plan.Action != loom.StopServices {
		return false
	}
	return k.taskProgress(at, s, loom.ActionStop).planned || k.first != nil && k.first.stops(at, s)
}
