package planner

import (
	"slices"

	"loom/app/loom"
)

// bring adds the stage of what comes: machines, services that are missing or down.
func (k *back) bring() error {
	s := newSection()
	for i := range k.fates {
		f := &k.fates[i]
		switch {
		case f.makes, f.replaces && !f.serves:
			k.make(s, f, nil)
		case len(f.now) > 0:
			k.chain(s, f.at, slices.Concat(bootstrap(f.boot), f.now)...)
		}
	}
	return k.close(s)
}

func bootstrap(boot bool) []part {
	if !boot {
		return nil
	}
	return []part{{own: machineSteps[2:]}}
}

// make gives a node a machine, in place of the one it may have, behind what is done to
// the services of that.
func (k *back) make(s *section, f *fate, first []part) {
	own := machineSteps
	if f.machine == there || k.mayExist(f) {
		own = append([]loom.TaskAction{loom.ActionDelete}, machineSteps...)
	}
	k.chain(s, f.at, append(first, part{own: own}, part{services: k.indices(f.to.Services), defined: k.new, actions: comeSteps})...)
}

// turn adds the stage of a batch, and, where machines were replaced, that of the
// followers.
func (k *back) turn(batch []*nodeDelta) error {
	s := newSection()
	changed := make([]bool, len(k.names))
	replaced, turned := map[int]bool{}, map[int]bool{}
	for _, n := range batch {
		f := &k.fates[n.at]
		if n.roll != replaces {
			turned[n.at] = true
			k.chain(s, n.at, slices.Concat(bootstrap(f.bootLater), f.later)...)
			f.later = nil
			continue
		}
		replaced[n.at] = true
		var drained []part
		for i := range f.places {
			p := &f.places[i]
			changed[p.service] = true
			defined, _ := k.defined(p)
			if p.state == whole && defined.services[p.service].Defines(loom.ActionDrain) {
				drained = append(drained, part{services: []int{p.service}, defined: defined, actions: drainSteps})
			}
		}
		for _, service := range k.indices(f.to.Services) {
			changed[service] = true
		}
		k.make(s, f, drained)
		f.serves, f.places = false, nil
	}
	if err := k.close(s); err != nil || len(replaced) == 0 {
		return err
	}
	return k.tellAll(func(s int) bool { return changed[s] }, func(f *fate, s int) bool {
		if replaced[f.at] || f.later.has(s) {
			return false
		}
		// A machine that is replaced later serves until then, as far as is known.
		if i := slices.IndexFunc(f.places, func(p place) bool { return p.service == s }); f.replaces && f.serves {
			if i < 0 || f.places[i].state != whole || f.replacing {
				return false
			}
			_, fits := k.defined(&f.places[i])
			return fits
		}
		k.told[spot{f.at, s}] = true
		return true
	})
}

// tellAll adds the stage in which followers of changed services are configured again,
// on the nodes of To that are picked.
func (k *back) tellAll(changed func(int) bool, pick func(*fate, int) bool) error {
	rounds := k.new.rounds(k.old, changed, func(follower int) []int32 {
		var nodes []int32
		for i := range k.fates {
			f := &k.fates[i]
			if f.to != nil && slices.Contains(f.to.Services, k.names[follower]) && pick(f, follower) {
				nodes = append(nodes, int32(f.at))
			}
		}
		return nodes
	})
	if len(rounds) == 0 {
		return nil
	}
	return k.follow(rounds)
}

// restart adds the stage that brings another config to what nothing else configures.
func (k *back) restart() error {
	s := newSection()
	for i := range k.fates {
		f := &k.fates[i]
		if f.makes || f.replaces || f.goes {
			continue
		}
		wanted := k.indices(f.to.Services)
		var parts []part
		boots := k.of(f.at, nodeTask, loom.ActionBootstrap)
		boot := k.config || boots.planned && !boots.done
		for _, p := range f.places {
			_, stays := slices.BinarySearch(wanted, p.service)
			_, fits := k.defined(&p)
			if !stays || !fits || p.state != whole || !k.config && len(p.again) == 0 {
				continue
			}
			actions := p.again
			if k.config {
				actions = k.ending(f, p.service, restartSteps)
			}
			parts = append(parts, part{services: []int{p.service}, defined: k.new, actions: actions})
			if slices.Contains(actions, loom.ActionConfigure) {
				k.told[spot{f.at, p.service}] = true
			}
		}
		if len(parts) > 0 {
			k.chain(s, f.at, slices.Concat(bootstrap(boot), parts)...)
		}
	}
	return k.close(s)
}

// inform adds the stage of the followers that know what is not so in the end. What came
// in this plan knows already.
func (k *back) inform() error {
	return k.tellAll(func(int) bool { return true }, func(f *fate, s int) bool {
		if f.makes || f.replaces || k.told[spot{f.at, s}] {
			return false
		}
		i := slices.IndexFunc(f.places, func(p place) bool { return p.service == s && p.state != absent })
		return i >= 0 && k.misled(&f.places[i])
	})
}

// misled reports whether what a place follows is not as it heard.
func (k *back) misled(p *place) bool {
	if p.misconfigured || p.left {
		return true
	}
	for _, name := range k.new.services[p.service].Follows {
		for _, s := range slices.Concat(k.was.providers[name], k.will.providers[name], k.new.providers[name]) {
			// Told half of the operation, a place may know either side of it.
			if p.informed {
				if k.movedSince[s] {
					return true
				}
			} else if !p.unheard && k.movedAfter[s] || (p.heard || p.unheard) && k.movedBefore[s] {
				return true
			}
		}
	}
	return false
}

// clear adds the stage of what goes.
func (k *back) clear() error {
	s := newSection()
	for i := range k.fates {
		f := &k.fates[i]
		parts := f.removes
		if f.goes && (f.machine == there || k.mayExist(f)) {
			parts = append(parts, part{own: []loom.TaskAction{loom.ActionDelete}})
		}
		if len(parts) > 0 {
			k.chain(s, f.at, parts...)
		}
	}
	return k.close(s)
}
