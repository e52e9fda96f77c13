package planner

import (
	"slices"

	"loom/app/loom"
)

// addRestoreStage adds the stage of what comes: machines, services that are missing or down.
func (k *rollback) addRestoreStage() error {
	s := newSection()
	for i := range k.outcomes {
		f := &k.outcomes[i]
		switch {
		case f.creates, f.replaces && !f.serves:
			k.replaceMachine(s, f, nil)
		case len(f.now) > 0:
			k.chain(s, f.at, slices.Concat(bootstrap(f.boot), f.now)...)
		}
	}
	return k.closeStage(s)
}

func bootstrap(boot bool) []part {
	if !boot {
		return nil
	}
	return []part{{own: machineSteps[2:]}}
}

// replaceMachine returns a node a machine, in place of the one it may have, behind what is done to
// the services of that.
func (k *rollback) replaceMachine(s *section, f *nodeOutcome, first []part) {
	own := machineSteps
	if f.machine == present || k.mayExist(f) {
		own = append([]loom.TaskAction{loom.ActionDelete}, machineSteps...)
	}
	k.chain(s, f.at, append(first, part{own: own}, part{services: k.indices(f.to.Services), defined: k.new, actions: installSteps})...)
}

// addBatchStage adds the stage of a batch, and, where machines were replaced, that of the
// followers.
func (k *rollback) addBatchStage(batch []*nodeDelta) error {
	s := newSection()
	changed := make([]bool, len(k.names))
	replaced, turned := map[int]bool{}, map[int]bool{}
	for _, n := range batch {
		f := &k.outcomes[n.at]
		if n.roll != replaces {
			turned[n.at] = true
			k.chain(s, n.at, slices.Concat(bootstrap(f.bootLater), f.later)...)
			f.later = nil
			continue
		}
		replaced[n.at] = true
		var drained []part
		for i := range f.services {
			p := &f.services[i]
			changed[p.service] = true
			defined, _ := k.definition(p)
			if p.state == intact && defined.services[p.service].Defines(loom.ActionDrain) {
				drained = append(drained, part{services: []int{p.service}, defined: defined, actions: drainSteps})
			}
		}
		for _, service := range k.indices(f.to.Services) {
			changed[service] = true
		}
		k.replaceMachine(s, f, drained)
		f.serves, f.services = false, nil
	}
	if err := k.closeStage(s); err != nil || len(replaced) == 0 {
		return err
	}
	return k.addFollowerStage(func(s int) bool { return changed[s] }, func(f *nodeOutcome, s int) bool {
		if replaced[f.at] || f.later.has(s) {
			return false
		}
		// A machine that is replaced later serves until then, as far as is known.
		if i := slices.IndexFunc(f.services, func(p placedService) bool { return p.service == s }); f.replaces && f.serves {
			if i < 0 || f.services[i].state != intact || f.replacing {
				return false
			}
			_, fits := k.definition(&f.services[i])
			return fits
		}
		k.notified[placement{f.at, s}] = true
		return true
	})
}

// addFollowerStage adds the stage in which followers of changed services are configured again,
// on the nodes of To that are picked.
func (k *rollback) addFollowerStage(changed func(int) bool, pick func(*nodeOutcome, int) bool) error {
	rounds := k.new.rounds(k.old, changed, func(follower int) []int32 {
		var nodes []int32
		for i := range k.outcomes {
			f := &k.outcomes[i]
			if f.to != nil && slices.Contains(f.to.Services, k.names[follower]) && pick(f, follower) {
				nodes = append(nodes, int32(f.at))
			}
		}
		return nodes
	})
	if len(rounds) == 0 {
		return nil
	}
	return k.addRoundsStage(rounds)
}

// addRestartStage adds the stage that brings another config to what nothing else configures.
func (k *rollback) addRestartStage() error {
	s := newSection()
	for i := range k.outcomes {
		f := &k.outcomes[i]
		if f.creates || f.replaces || f.deletes {
			continue
		}
		wanted := k.indices(f.to.Services)
		var parts []part
		boots := k.taskProgress(f.at, nodeTask, loom.ActionBootstrap)
		boot := k.configures || boots.planned && !boots.done
		for _, p := range f.services {
			_, stays := slices.BinarySearch(wanted, p.service)
			_, fits := k.definition(&p)
			if !stays || !fits || p.state != intact || !k.configures && len(p.restart) == 0 {
				continue
			}
			actions := p.restart
			if k.configures {
				actions = k.finalSteps(f, p.service, restartSteps)
			}
			parts = append(parts, part{services: []int{p.service}, defined: k.new, actions: actions})
			if slices.Contains(actions, loom.ActionConfigure) {
				k.notified[placement{f.at, p.service}] = true
			}
		}
		if len(parts) > 0 {
			k.chain(s, f.at, slices.Concat(bootstrap(boot), parts)...)
		}
	}
	return k.closeStage(s)
}

// addStaleFollowerStage adds the stage of the followers that know what is not so in the end. What came
// in this plan knows already.
func (k *rollback) addStaleFollowerStage() error {
	return k.addFollowerStage(func(int) bool { return true }, func(f *nodeOutcome, s int) bool {
		if f.creates || f.replaces || k.notified[placement{f.at, s}] {
			return false
		}
		i := slices.IndexFunc(f.services, func(p placedService) bool { return p.service == s && p.state != absent })
		return i >= 0 && k.isStale(&f.services[i])
	})
}

// isStale reports whether what a service follows differs from what it was configured
// with.
func (k *rollback) isStale(p *placedService) bool {
	if p.misconfigured || p.stale {
		return true
	}
	for _, name := range k.new.services[p.service].Follows {
		for _, s := range slices.Concat(k.servicesBefore.providers[name], k.servicesAfter.providers[name], k.new.providers[name]) {
			// Told half of the operation, a place may know either side of it.
			if p.fullyNotified {
				if k.movedSince[s] {
					return true
				}
			} else if !p.unnotified && k.movedAfter[s] || (p.notified || p.unnotified) && k.movedBefore[s] {
				return true
			}
		}
	}
	return false
}

// addCleanupStage adds the stage of what goes.
func (k *rollback) addCleanupStage() error {
	s := newSection()
	for i := range k.outcomes {
		f := &k.outcomes[i]
		parts := f.removes
		if f.deletes && (f.machine == present || k.mayExist(f)) {
			parts = append(parts, part{own: []loom.TaskAction{loom.ActionDelete}})
		}
		if len(parts) > 0 {
			k.chain(s, f.at, parts...)
		}
	}
	return k.closeStage(s)
}
