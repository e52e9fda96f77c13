package planner

import (
	"slices"

	"loom/app/loom"
)

// machine says what a node has when an operation is taken back.
type machine int

const (
	// lost is none, or one that is half made or half deleted.
	lost machine = iota
	there
)

// fate is what an operation left of a node, and what becomes of it.
type fate struct {
	at                int
	before, after, to *loom.Node
	machine           machine
	// fresh says that the machine was made by the operation, or by one it retries;
	// anew that this operation made it.
	fresh, anew bool
	// replacing says that the operation was to replace the machine, and did not begin.
	replacing bool
	// unprepared says that the machine misses its BOOTSTRAP.
	unprepared bool

	// what becomes of the node: none of these where it stays.
	makes, replaces, goes bool
	// serves says that the machine, which is replaced, has services that are up.
	serves bool
	places []place
	// now and later are what is done on a machine that stays, at once and with its
	// batch; removes on the way out.
	now, later, removes work
	boot, bootLater     bool
}

// state is what is on a machine of a service.
type state int

const (
	absent state = iota
	// whole: as its definition says.
	whole
	// down: whole, but stopped.
	down
	// partial: begun to be put on, in a definition that is not at its end.
	partial
)

// place is a service on a machine that is there.
type place struct {
	service int
	state   state
	// earlier says that it is there as Before defines it, else as After does.
	earlier bool
	// running says that something of it may run.
	running bool
	// remains are the actions between a partial place and After.
	remains []loom.TaskAction
	// again are the actions left of a restart that was to bring a config.
	again []loom.TaskAction
	// heard and unheard say how the place knows its nodes: it was configured in the
	// operation; it was to be and was not. Neither: it knows what After says.
	heard, unheard bool
	// informed says that all that the operation was to tell it was told.
	informed bool
	// misconfigured says that its config is that of another version.
	misconfigured bool
	// torn says that a CONFIGURE of it began and did not end.
	torn bool
	// left says that it was to be configured for the layout that To is.
	left bool
	// has is the catalog that defines what is there, where that is neither of Before nor
	// of After.
	has *catalog
}

var restartSteps = []loom.TaskAction{loom.ActionStop, loom.ActionConfigure, loom.ActionStart}

// find says what machine a node has.
func (k *back) find(f *fate) {
	deletes, creates := k.of(f.at, nodeTask, loom.ActionDelete), k.of(f.at, nodeTask, loom.ActionCreate)
	confirms, boots := k.of(f.at, nodeTask, loom.ActionConfirm), k.of(f.at, nodeTask, loom.ActionBootstrap)
	missing := boots.planned && !boots.done
	switch {
	case confirms.planned && !confirms.done && f.before == nil:
		f.machine = lost
	case !deletes.planned && !creates.planned:
		if f.after == nil || confirms.planned && !confirms.done {
			return // it is gone already, or half made
		}
		f.machine = there
		f.fresh = f.before == nil || retyped(f.before, f.after)
		f.unprepared = f.fresh && missing
	case f.before != nil && deletes.planned && !deletes.begun && !creates.begun:
		f.machine, f.replacing = there, f.after != nil
	case f.after != nil && creates.done && (deletes.done || !deletes.planned) && (confirms.done || !confirms.planned) && !missing:
		f.machine, f.fresh, f.anew = there, true, true
	}
}

func retyped(a, b *loom.Node) bool {
	return a.HardwareType != b.HardwareType || a.ImageType != b.ImageType
}

// mayExist reports whether there may be a machine to delete on a node that lost its own.
func (k *back) mayExist(f *fate) bool {
	deletes := k.of(f.at, nodeTask, loom.ActionDelete)
	return k.of(f.at, nodeTask, loom.ActionCreate).begun || deletes.planned && !deletes.done ||
		k.in.HasMachine != nil && k.in.HasMachine(k.nodes[f.at].id)
}

// course is how far the actions of a service on a node came, in their order.
type course struct {
	begun bool
	// left are those behind the last one that is done. One before that is not done
	// either only where it comes twice, such as the CONFIGURE of a follower.
	left []loom.TaskAction
}

// course takes actions that a service defines or has tasks for. One without a task is
// done: the operation that this one retries did it, or it was not needed.
func (k *back) course(f *fate, s int, defined *catalog, actions ...loom.TaskAction) course {
	var c course
	// The end of a whole cluster stops nothing, so nothing was stopped for it.
	never := len(k.in.After.Nodes) == 0
	for _, action := range actions {
		p := k.of(f.at, s, action)
		if !p.planned {
			if !defined.services[s].Defines(action) {
				continue
			}
			p.begun, p.some = !never, !never
		}
		c.begun = c.begun || p.begun
		switch {
		case !p.some:
			c.left = append(c.left, action)
		case p.planned:
			c.left = nil
		}
	}
	return c
}

// look finds what is on the machine of a node, by service.
func (k *back) look(f *fate) {
	var before, after []int
	if f.before != nil && !f.fresh {
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
		p := place{service: s}
		early, was := k.inherited(f, s), k.was
		if early != nil {
			was = k.first.catalogOf(early)
		}
		switch {
		case early != nil && !k.began(f, s):
			k.stayed(f, &p, early)
			if p.state != absent || len(p.remains) > 0 {
				f.places = append(f.places, p)
			}
			continue
		case early != nil && gets && (early.state == partial || early.state == absent):
			if k.added(f, &p); p.state == absent { // what was there was only stopped
				p = k.halted(f, early, was)
			} else if p.state == partial {
				p.running = p.running || k.halted(f, early, was).running
			}
		case had && (f.after == nil || f.replacing):
			k.outgoing(f, &p)
		case had && gets && (differ(&was.services[s], &k.will.services[s]) || k.putAgain(f, s)):
			k.upgraded(f, &p)
		case had && gets:
			k.same(f, &p)
		case had:
			k.removed(f, &p)
		case !f.replacing:
			k.added(f, &p)
		}
		if early != nil && early.state == partial && !gets && p.state != absent {
			p = k.halted(f, early, was) // what was to go was not complete before
		}
		if early != nil {
			k.inherit(f, &p, early, was)
		}
		if !k.runtime {
			configures := k.of(f.at, s, loom.ActionConfigure)
			// What is on its way out is not told of anything.
			p.heard, p.unheard = configures.begun, !configures.begun && (configures.planned || had && !gets || f.replacing)
			p.informed = configures.planned && configures.done && had && gets && !f.replacing
			p.left = k.onward && configures.planned && !configures.done
			p.torn = configures.begun && !configures.done
		}
		// What it heard of the nodes it follows may be of the operation before.
		p.left = p.left || early != nil && !p.informed && k.follower(s)
		if p.state != absent || len(p.remains) > 0 {
			f.places = append(f.places, p)
		}
	}
}

// putAgain reports whether a service was to be put on the machine of a node again because
// its files are others.
func (k *back) putAgain(f *fate, s int) bool {
	return k.in.Plan.Action == loom.ClusterUpgrade && k.of(f.at, s, loom.ActionInstall).planned
}

// outgoing is a service of a machine that was to go.
func (k *back) outgoing(f *fate, p *place) {
	p.state, p.earlier, p.running = whole, true, true
	p.misconfigured = k.of(f.at, p.service, loom.ActionConfigure).begun && differ(&k.was.services[p.service], &k.will.services[p.service])
	if f.replacing && !k.drains(f, p.service) {
		return // it goes with its machine
	}
	if c := k.course(f, p.service, k.was, drainSteps...); c.begun {
		p.state, p.running = down, len(c.left) > 0
		p.remains = c.left
	}
}

// drains reports whether the service of a machine that is replaced is drained before.
// Those of machines that are repaired are not.
func (k *back) drains(f *fate, s int) bool {
	if k.of(f.at, s, loom.ActionDrain).planned || k.of(f.at, s, loom.ActionStop).planned {
		return true
	}
	return retyped(f.before, f.after) && k.in.Plan.Action != loom.ClusterRepair && k.was.services[s].Defines(loom.ActionDrain)
}

// upgraded is a service that was to get another version.
func (k *back) upgraded(f *fate, p *place) {
	p.state, p.earlier, p.running = whole, true, true
	stop, put := k.course(f, p.service, k.was, stopSteps...), k.course(f, p.service, k.will, k.unstarted(f, p.service, upgradeSteps)...)
	// It may hear of other nodes, as the new version is configured, before its own turn.
	install := k.of(f.at, p.service, loom.ActionInstall)
	early := put.begun && (len(stop.left) > 0 || install.planned && !install.begun)
	if start := k.of(f.at, p.service, loom.ActionStart); !start.some {
		put.left = slices.DeleteFunc(slices.Clone(upgradeSteps), func(action loom.TaskAction) bool {
			t := k.of(f.at, p.service, action)
			return !t.planned || t.done || t.some && action != loom.ActionConfigure
		})
	}
	switch {
	case early:
		p.misconfigured = k.of(f.at, p.service, loom.ActionConfigure).begun
		if stop.begun {
			p.state = down
		}
	case put.begun && len(put.left) == 0:
		p.earlier = false
	case put.begun:
		p.state, p.earlier, p.remains = partial, false, put.left
		p.running = k.mayRun(f, p.service) || len(stop.left) > 0 || !stop.begun
	case stop.begun:
		p.state = down
	}
	if p.state == down {
		p.running = len(stop.left) > 0
	}
}

// mayRun reports whether a start began, or had begun before the operation.
func (k *back) mayRun(f *fate, s int) bool {
	start := k.of(f.at, s, loom.ActionStart)
	return start.begun || !start.planned && k.will.services[s].Defines(loom.ActionStart)
}

// same is a service that the operation was to leave as it was, apart from config.
func (k *back) same(f *fate, p *place) {
	p.state, p.running = whole, true
	if (k.runtime || k.in.Plan.Action == loom.AddServices) && !k.in.Mends {
		return // what it starts and stops is no part of a layout
	}
	if k.of(f.at, p.service, loom.ActionInstall).planned || k.of(f.at, p.service, loom.ActionInitialize).planned {
		// The operation that this one retries made the machine anew.
		p.state, p.running = absent, false
		k.added(f, p)
		return
	}
	starts, stops := k.of(f.at, p.service, loom.ActionStart), k.of(f.at, p.service, loom.ActionStop)
	if !starts.planned && !stops.planned && !(k.in.Mends && k.of(f.at, p.service, loom.ActionConfigure).planned) {
		return
	}
	planned := slices.DeleteFunc(slices.Clone(restartSteps), func(a loom.TaskAction) bool { return !k.of(f.at, p.service, a).planned })
	c := k.course(f, p.service, k.will, planned...)
	// Followers are configured once more; either may be missing.
	if t := k.of(f.at, p.service, loom.ActionConfigure); len(c.left) > 0 && t.planned && !t.done && !slices.Contains(c.left, loom.ActionConfigure) {
		c.left = slices.Insert(c.left, 0, loom.ActionConfigure)
	}
	if len(c.left) > 0 && (c.begun || k.settled) {
		p.again = c.left
	}
}

// removed is a service that was to be taken off a machine that stays.
func (k *back) removed(f *fate, p *place) {
	p.state, p.earlier, p.running = whole, true, true
	stop, remove := k.course(f, p.service, k.was, stopSteps...), k.course(f, p.service, k.was, loom.ActionRemove)
	switch {
	case remove.begun && (len(stop.left) == 0 || k.of(f.at, p.service, loom.ActionRemove).begun):
		p.state, p.remains = absent, remove.left
	case stop.begun:
		p.state, p.running = down, len(stop.left) > 0
	}
}

// added is a service that was to be put on a machine, new or not.
func (k *back) added(f *fate, p *place) {
	c := k.course(f, p.service, k.will, comeSteps...)
	switch {
	case len(c.left) == 0:
		p.state, p.running = whole, c.begun
	case c.begun:
		p.state, p.running, p.remains = partial, k.mayRun(f, p.service), c.left
	}
}

// defined is the catalog by which what is on a place is carried out, and whether it
// is the same as To has it.
func (k *back) defined(p *place) (*catalog, bool) {
	has := k.catalogOf(p)
	if !differ(&has.services[p.service], &k.new.services[p.service]) {
		return k.new, true
	}
	return k.old, false
}
