package planner

import (
	"slices"

	"loom/app/loom"
)

// work is what is done to services of a machine, in parts of one service each.
type work []part

func (w *work) add(s int, defined *catalog, waits bool, actions ...loom.TaskAction) {
	*w = append(*w, part{services: []int{s}, defined: defined, actions: actions, waits: waits})
}

func (w work) has(s int) bool {
	return slices.ContainsFunc(w, func(p part) bool { return p.services[0] == s })
}

// decide says what becomes of a node.
func (k *back) decide(f *fate) {
	k.find(f)
	if f.machine == there {
		k.look(f)
	}
	f.goes, f.makes = f.to == nil, f.to != nil && f.machine == lost
	switch {
	case f.machine == lost:
	case f.goes:
		k.part(f)
	case f.repairs():
		f.replaces = true
	case f.misfits():
		f.replaces = true
		f.serves = slices.ContainsFunc(f.places, func(p place) bool { return p.state == whole })
	default:
		k.mend(f)
	}
}

// misfits reports whether the machine that is there is of another type than To wants.
func (f *fate) misfits() bool {
	if f.fresh {
		return retyped(f.after, f.to)
	}
	return retyped(f.before, f.to)
}

// repairs reports whether the operation was to make another machine of the same type
// and did not begin, and To wants that one.
func (f *fate) repairs() bool {
	return f.replacing && !retyped(f.before, f.after) && !retyped(f.after, f.to) &&
		f.to.Incarnation == f.after.Incarnation && f.to.Incarnation != f.before.Incarnation
}

// part takes leave of the services of a machine that goes. Of one that the operation
// made only what is complete is taken off: it goes anyway.
func (k *back) part(f *fate) {
	for i := range f.places {
		p := &f.places[i]
		defined, _ := k.defined(p)
		var actions []loom.TaskAction
		switch {
		case f.before == nil:
			if _, stays := k.new.providers[k.names[p.service]]; stays && p.state == whole {
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
				if t := k.of(f.at, p.service, action); t.planned && !t.done {
					actions = append(actions, action)
				}
			}
		case p.state == whole:
			actions = drainSteps
		case p.state == down:
			actions = p.remains
		case p.running:
			actions = stopSteps
		}
		f.removes.add(p.service, defined, false, actions...)
	}
}

// did is the progress of an action of a service that came; without a task it is done.
func (k *back) did(f *fate, s int, action loom.TaskAction) progress {
	p := k.of(f.at, s, action)
	if !p.planned {
		p.begun = k.will.services[s].Defines(action)
		p.some = p.begun
	}
	return p
}

// mend brings the services of a machine that stays to what To says.
func (k *back) mend(f *fate) {
	wanted := k.indices(f.to.Services)
	for i := range f.places {
		p := &f.places[i]
		if _, stays := slices.BinarySearch(wanted, p.service); !stays {
			k.takeOff(f, p)
		} else if p.state != absent {
			k.putRight(f, p)
		}
	}
	for _, s := range wanted {
		if !slices.ContainsFunc(f.places, func(p place) bool { return p.service == s && p.state != absent }) {
			f.now.add(s, k.new, true, comeSteps...)
			f.boot = true
		}
	}
	f.boot = f.boot || f.unprepared && len(f.now) > 0
	f.bootLater = f.bootLater || f.unprepared && len(f.now) == 0
}

// takeOff removes what is on a machine, as far as it came.
func (k *back) takeOff(f *fate, p *place) {
	defined, _ := k.defined(p)
	actions := p.remains // of a removal that began
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

func (k *back) hadBefore(f *fate, s int) (int, bool) {
	if f.before == nil || f.fresh {
		return 0, false
	}
	return slices.BinarySearch(k.indices(f.before.Services), s)
}

// putRight makes of what is on a machine what To defines.
func (k *back) putRight(f *fate, p *place) {
	defined, fits := k.defined(p)
	if fits && k.in.Mends && slices.Equal(p.again, startSteps) {
		p.state = down // others may need it before they begin
	}
	switch {
	case fits && p.state == whole && (p.left || p.misconfigured) && !k.follower(p.service):
		f.now.add(p.service, k.new, true, loom.ActionConfigure)
	case fits && p.state == whole:
	case fits:
		actions := k.ending(f, p.service, startSteps)
		if p.state == partial {
			actions = p.remains
		}
		if (k.config || p.misconfigured) && !slices.Contains(actions, loom.ActionConfigure) {
			actions = slices.Insert(slices.Clone(actions), 0, loom.ActionConfigure)
		}
		f.now.add(p.service, k.new, slices.Contains(actions, loom.ActionConfigure), actions...)
	default:
		at, boot := &f.now, &f.boot
		if p.state == whole {
			at, boot = &f.later, &f.bootLater
		}
		if p.running {
			if k.in.Mends && k.unstoppable(f, p.service) {
				defined = k.new
			}
			at.add(p.service, defined, false, loom.ActionStop)
		}
		steps := upgradeSteps
		if slices.Contains(p.remains, loom.ActionInitialize) {
			steps = comeSteps
		}
		at.add(p.service, k.new, true, k.ending(f, p.service, steps)...)
		*boot = *boot || !covers(k.prepared(f), k.new.automators([]int{p.service}))
	}
}

// follower reports whether a service follows one that is there, so that it is told.
func (k *back) follower(s int) bool {
	return slices.ContainsFunc(k.new.services[s].Follows, func(name string) bool {
		return len(k.new.providers[name])+len(k.old.providers[name]) > 0
	})
}

// prepared are the automators that a machine is ready for.
func (k *back) prepared(f *fate) map[string]bool {
	if f.fresh {
		return k.will.automators(k.indices(f.after.Services))
	}
	return k.was.automators(k.indices(f.before.Services))
}

// amount puts what is found into the terms of a change: for what may be refused, and
// for batches.
func (k *back) amount() {
	for i := range k.fates {
		f := &k.fates[i]
		n := nodeDelta{at: f.at, leaves: f.goes && f.machine == there && k.stood(f.at)}
		up := []int{}
		switch {
		case n.leaves:
			n.before = k.indices(f.before.Services)
		case f.replaces && f.serves:
			n.roll = replaces
			for _, p := range f.places {
				if p.state == whole {
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

// survey marks the services whose nodes or machines are others in the end.
func (k *back) survey() {
	k.movedBefore, k.movedAfter, k.movedSince = make([]bool, len(k.names)), make([]bool, len(k.names)), make([]bool, len(k.names))
	for i := range k.fates {
		f := &k.fates[i]
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
		made := f.makes || f.replaces
		other := f.fresh || f.machine == there && !f.replacing && f.before != nil && f.after != nil && f.before.Incarnation != f.after.Incarnation
		for s, h := range has {
			k.movedBefore[s] = k.movedBefore[s] || h[0] != h[2] || h[2] && (made || other)
			k.movedSince[s] = k.movedSince[s] || h[1] != h[2] || h[2] && made
			k.movedAfter[s] = k.movedAfter[s] || h[1] != h[2] || h[2] && (made || f.anew)
		}
	}
}

// An operation that failed may be mended: another one, of the same kind, goes on from
// where it stopped to what it was to lead to, with other versions, another config or
// fewer services. When that fails as well, what the first one left still counts where
// the second did not get to.

// recall finds what the operation left of a node.
func (k *back) recall(f *fate) {
	k.find(f)
	if f.machine == there {
		k.look(f)
	}
}

// last are the services as they were when an operation began that mends this one.
func (k *back) last() *catalog {
	services, there, after := map[string]loom.Service{}, map[string]bool{}, k.in.After.on()
	for i, name := range k.names {
		services[name], there[name] = k.will.services[i], true
		if _, on := after[name]; !on {
			services[name] = k.was.services[i]
		}
	}
	return union(k.names, services, there)
}

// actual is a node as the operation left it, with what is on its machine; nil without
// a machine.
func (k *back) actual(at int) *loom.Node {
	f := &k.fates[at]
	if f.machine == lost {
		return nil
	}
	node := f.before
	if f.fresh || node == nil {
		node = f.after
	}
	n := *node
	n.Services = nil
	for _, p := range f.places {
		n.Services = append(n.Services, k.names[p.service])
	}
	return &n
}

// stood reports whether a node was there before all of it.
func (k *back) stood(at int) bool {
	if k.first != nil {
		return k.first.stood(at)
	}
	return k.fates[at].before != nil
}

// inherited is a service on the machine of a node as the operation found it that this
// one mends; nil for none.
func (k *back) inherited(f *fate, s int) *place {
	if k.first == nil || f.fresh {
		return nil
	}
	places := k.first.fates[f.at].places
	if i := slices.IndexFunc(places, func(p place) bool { return p.service == s }); i >= 0 {
		return &places[i]
	}
	return nil
}

// began reports whether the operation did anything to a service on a node.
func (k *back) began(f *fate, s int) bool {
	return slices.ContainsFunc(loom.TaskActions, func(action loom.TaskAction) bool { return k.of(f.at, s, action).begun })
}

// stayed is a service that is as the operation found it. What it was to be told it was
// not, so that followers hear of everything again.
func (k *back) stayed(f *fate, p *place, early *place) {
	*p = *early
	p.has = k.first.catalogOf(early)
	p.misconfigured = p.misconfigured || p.torn
	p.left = p.left || k.follower(p.service)
	configures := k.of(f.at, p.service, loom.ActionConfigure)
	if p.state == absent || !configures.planned || !k.settled || f.replacing || f.after == nil {
		return
	}
	if p.state != whole {
		p.misconfigured = true
		return
	}
	again := slices.DeleteFunc(slices.Clone(restartSteps), func(a loom.TaskAction) bool { return !k.of(f.at, p.service, a).planned })
	if len(again) > 1 || !k.follower(p.service) {
		p.again = again
	}
}

// halted is a service that the operation found half done and at most stopped.
func (k *back) halted(f *fate, early *place, was *catalog) place {
	p := *early
	p.has, p.running = was, early.running && !k.of(f.at, early.service, loom.ActionStop).done
	return p
}

// inherit gives a service that the operation began with what it still has of before.
func (k *back) inherit(f *fate, p *place, early *place, was *catalog) {
	if p.earlier {
		p.has = was
	}
	unconfigured := early.misconfigured || early.torn || slices.Contains(early.again, loom.ActionConfigure)
	if unconfigured && !k.of(f.at, p.service, loom.ActionConfigure).done && !slices.Contains(slices.Concat(p.again, p.remains), loom.ActionConfigure) {
		p.misconfigured = true
	}
}

// catalogOf is the catalog that defines what is on a place.
func (k *back) catalogOf(p *place) *catalog {
	switch {
	case p.has != nil:
		return p.has
	case p.earlier:
		return k.was
	}
	return k.will
}

// unstoppable reports whether a STOP was tried and failed: the one of another version
// may do better.
func (k *back) unstoppable(f *fate, s int) bool {
	stop := k.of(f.at, s, loom.ActionStop)
	return stop.begun && !stop.done && k.new.services[s].Defines(loom.ActionStop)
}

// ending gives steps without a start where the operation was to leave a service stopped.
func (k *back) ending(f *fate, s int, steps []loom.TaskAction) []loom.TaskAction {
	if !k.in.Mends {
		return steps
	}
	return k.unstarted(f, s, steps)
}

// unstarted gives steps without a start where the operation stops a service.
func (k *back) unstarted(f *fate, s int, steps []loom.TaskAction) []loom.TaskAction {
	if !k.stops(f.at, s) {
		return steps
	}
	return slices.DeleteFunc(slices.Clone(steps), func(a loom.TaskAction) bool { return a == loom.ActionStart })
}

// stops reports whether the operation, which stops services, stops one on a node.
func (k *back) stops(at, s int) bool {
	if k.in.Plan.Action != loom.StopServices {
		return false
	}
	return k.of(at, s, loom.ActionStop).planned || k.first != nil && k.first.stops(at, s)
}
