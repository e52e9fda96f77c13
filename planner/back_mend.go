package planner

import (
	"slices"

	"loom/app/loom"
)

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
