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
