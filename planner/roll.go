package planner

import (
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
)

var (
	machineSteps = []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap}
	comeSteps    = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart}
	upgradeSteps = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionStart}
	startSteps   = []loom.TaskAction{loom.ActionStart}
	stopSteps    = []loom.TaskAction{loom.ActionStop}
	drainSteps   = []loom.TaskAction{loom.ActionDrain, loom.ActionStop}
	removeSteps  = []loom.TaskAction{loom.ActionStop, loom.ActionRemove}
)

// come adds the stage of what is new: nodes, services, machines that are repaired.
func (d *delta) come() error {
	s := newSection()
	for i := range d.changed {
		n := &d.changed[i]
		switch {
		case n.comes:
			d.chain(s, n.at, part{own: machineSteps}, part{services: n.after, defined: d.new, actions: comeSteps})
		case n.repaired:
			d.replace(s, n, nil)
		case len(n.rest) > 0:
			d.chain(s, n.at, append(n.remains(d), part{services: n.added, defined: d.new, actions: comeSteps})...)
		case len(n.added) > 0:
			d.chain(s, n.at, part{own: machineSteps[2:]}, part{services: n.added, defined: d.new, actions: comeSteps})
		}
	}
	return d.close(s)
}

// replace gives a node another machine. What the old one holds of services in
// drained is moved away before.
func (d *delta) replace(s *section, n *nodeDelta, drained []int) {
	d.chain(s, n.at,
		part{services: drained, defined: d.old, actions: drainSteps},
		part{own: append([]loom.TaskAction{loom.ActionDelete}, machineSteps...)},
		part{services: n.after, defined: d.new, actions: comeSteps})
}

// roll adds the stage of a batch, and, where machines were replaced, that of the
// followers.
func (d *delta) roll(batch []*nodeDelta) error {
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
	if err := d.close(s); err != nil || len(replaced) == 0 {
		return err
	}
	return d.tell(func(n *nodeDelta) bool { return replaced[n] })
}

// tell adds the stage in which followers are configured again for the sake of
// some of the changed nodes. Machines that are new by then know already.
func (d *delta) tell(of func(*nodeDelta) bool) error {
	changed := make([]bool, len(d.names))
	know := map[int32]bool{}
	for i := range d.changed {
		n := &d.changed[i]
		if !of(n) {
			continue
		}
		moved := slices.Concat(n.added, n.removed)
		if n.comes || n.leaves || n.repaired || n.roll == replaces {
			moved = slices.Concat(n.before, n.after)
			know[int32(n.at)] = true
		}
		for _, s := range moved {
			changed[s] = true
		}
	}
	rounds := d.new.rounds(d.old, func(s int) bool { return changed[s] }, func(f int) []int32 {
		return slices.DeleteFunc(slices.Clone(d.kept[f]), func(n int32) bool { return know[n] })
	})
	if len(rounds) == 0 {
		return nil
	}
	return d.follow(rounds)
}

// leave adds the stage of what goes: services that are taken off, nodes.
func (d *delta) leave() error {
	s := newSection()
	for i := range d.changed {
		n := &d.changed[i]
		if n.leaves && n.dead {
			d.chain(s, n.at, part{own: []loom.TaskAction{loom.ActionDelete}})
		} else if n.leaves {
			d.chain(s, n.at, part{services: n.before, defined: d.old, actions: drainSteps}, part{own: []loom.TaskAction{loom.ActionDelete}})
		} else if len(n.removed) > 0 {
			d.chain(s, n.at, part{services: n.removed, defined: d.old, actions: removeSteps})
		}
	}
	return d.close(s)
}

// refuse finds what no order of tasks can make right.
func (d *delta) refuse() error {
	var errs []loom.FieldError
	came, went := map[int]bool{}, map[int]bool{}
	for i := range d.changed {
		n := &d.changed[i]
		for _, s := range n.before {
			if n.leaves && d.old.services[s].Shrink == "refuse" {
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

// batches cuts the nodes that roll into batches and holds them against the
// healthy minimum.
func (d *delta) batches(change Change) ([][]*nodeDelta, error) {
	size := change.Batch
	if size == 0 {
		size = 1
	}
	if size < 0 {
		return nil, loom.InvalidFields([]loom.FieldError{{Field: "batch", Message: fmt.Sprintf("The batch is %d; it is at least 1 node.", size)}})
	}
	if m := change.MinHealthy; m != nil && *m < 0 {
		return nil, loom.InvalidFields([]loom.FieldError{{Field: "minHealthy", Message: fmt.Sprintf("The healthy minimum is %d; it is 0 or more.", *m)}})
	}
	var rolling []*nodeDelta
	for i := range d.changed {
		if d.changed[i].roll != keeps {
			rolling = append(rolling, &d.changed[i])
		}
	}
	var batches [][]*nodeDelta
	var errs []loom.FieldError
	refused := map[int]bool{}
	for batch := range slices.Chunk(rolling, size) {
		batches = append(batches, batch)
		errs = append(errs, d.tooFew(batch, len(batches), size, change.MinHealthy, refused)...)
	}
	if len(errs) == 0 {
		return batches, nil
	}
	messages := make([]string, len(errs))
	for i, e := range errs {
		messages[i] = e.Message
	}
	return nil, &loom.Error{Kind: loom.Invalid, Message: strings.Join(messages, " "), Fields: errs}
}

// tooFew names the services of which a batch would leave too few nodes up, each
// once: its first batch. Services that neither start nor stop are never up.
func (d *delta) tooFew(batch []*nodeDelta, number, size int, minimum *int, refused map[int]bool) []loom.FieldError {
	down := map[int]int{}
	for _, n := range batch {
		services := n.upgraded
		if n.roll == replaces {
			services = n.before
		}
		for _, s := range services {
			if d.old.services[s].Defines(loom.ActionStart) || d.old.services[s].Defines(loom.ActionStop) {
				down[s]++
			}
		}
	}
	var errs []loom.FieldError
	for s := range d.names {
		if down[s] == 0 || refused[s] {
			continue
		}
		have := d.up[s]
		need := max(have-size, 0)
		if have >= 2 {
			need = max(need, 1)
		}
		if minimum != nil {
			need = *minimum
		}
		if up := have - down[s]; up < need {
			refused[s] = true
			errs = append(errs, loom.FieldError{Field: "minHealthy", Message: fmt.Sprintf(
				"Batch %d takes down %d of the %d nodes with “%s” and leaves %d up; at least %d must be. Use a smaller batch than %d, or a lower minimum.",
				number, down[s], have, d.names[s], up, need, size)})
		}
	}
	return errs
}
