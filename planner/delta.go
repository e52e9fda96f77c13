package planner

import (
	"maps"
	"reflect"
	"slices"

	"loom/app/loom"
)

// delta is what differs between two states, and the plan that is made of it.
type delta struct {
	sequence
	// changed are the nodes with any difference, by number.
	changed []nodeDelta
	// retained are, for each service, the nodes that have it before and after, ascending.
	retained [][]int32
	// up is, for each service, on how many nodes it is while batches roll.
	up []int
}

// rollKind says how a node that stays is changed batch by batch.
type rollKind int

const (
	keeps rollKind = iota
	upgrades
	replaces
)

// nodeDelta is what becomes of a node; at is its index among the nodes of both states.
type nodeDelta struct {
	at                         int
	created, deleted, repaired bool
	roll                       rollKind
	// before and after are its services, ascending.
	before, after []int
	// added, removed and upgraded are services of a machine that stays.
	added, removed, upgraded []int
	// prepare says that an upgrade brings an automator that is new to the machine.
	prepare bool
	// dead says that nothing can be done on its machine.
	dead bool
	// remaining are actions left of earlier operations, by service.
	remaining map[int][]loom.TaskAction
}

// servicesIn returns the names of all services on nodes of the states, sorted, and which
// of them each state has.
func servicesIn(states ...State) (names []string, present []map[string]bool, err error) {
	for _, state := range states {
		here, err := servicesOn(state.Nodes, state.Services)
		if err != nil {
			return nil, nil, err
		}
		present = append(present, here)
		for name := range here {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), present, nil
}

func newDelta(change Change) (*delta, error) {
	names, present, err := servicesIn(change.Before, change.After)
	if err != nil {
		return nil, err
	}
	d := &delta{}
	d.names = names
	d.old, d.new = union(d.names, change.Before.Services, present[0]), union(d.names, change.After.Services, present[1])
	differs := make([]bool, len(d.names))
	d.outdated = make([]bool, len(d.names))
	for i, name := range d.names {
		differs[i] = present[0][name] && present[1][name] && (differ(&d.old.services[i], &d.new.services[i]) || slices.Contains(change.Reinstall, name))
		d.outdated[i] = differs[i] || !present[1][name]
	}
	d.retained, d.up = make([][]int32, len(d.names)), make([]int, len(d.names))
	before, after := byID(change.Before.Nodes), byID(change.After.Nodes)
	if err := d.number(before, after); err != nil {
		return nil, err
	}
	for i := range d.nodes {
		n := nodeDelta{at: i}
		n.dead = slices.Contains(change.Dead, d.nodes[i].id)
		d.compare(&n, before[d.nodes[i].id], after[d.nodes[i].id], differs, change.Action)
		d.nodes[i].services = n.after
		if n.deleted {
			d.nodes[i].services = n.before
		}
		if n.created || n.deleted || n.repaired || n.roll != keeps || len(n.added)+len(n.removed) > 0 {
			d.changed = append(d.changed, n)
		}
	}
	return d, nil
}

// differ reports whether another version of a service has to be put on machines.
// What is only shown to people does not count.
func differ(before, after *loom.Service) bool {
	return before.Version != after.Version ||
		!reflect.DeepEqual(before.Provisioner, after.Provisioner) || !reflect.DeepEqual(before.Dependencies, after.Dependencies)
}

func byID(nodes []loom.Node) map[loom.NodeID]*loom.Node {
	m := make(map[loom.NodeID]*loom.Node, len(nodes))
	for i := range nodes {
		m[nodes[i].ID] = &nodes[i]
	}
	return m
}

// number lists the nodes of all states, which are in the order of time. Invalid for
// a number that two nodes have or that changes.
func (d *delta) number(states ...map[loom.NodeID]*loom.Node) error {
	numbers := map[loom.NodeID]int{}
	for _, state := range states {
		for _, id := range slices.Sorted(maps.Keys(state)) {
			n := state[id]
			if number, known := numbers[id]; known && number != n.Number {
				return loom.NewError(loom.Invalid, "Node %s has the number %d before and %d after; the number of a node never changes.", id, number, n.Number)
			}
			numbers[id] = n.Number
		}
	}
	for id, number := range numbers {
		d.nodes = append(d.nodes, planNode{id: id, number: number})
	}
	sortNodes(d.nodes)
	for i := 1; i < len(d.nodes); i++ {
		if a, b := d.nodes[i-1], d.nodes[i]; a.number == b.number {
			return loom.NewError(loom.Invalid, "Nodes %s and %s both have the number %d; a node that stays keeps its id, and numbers are not used again.", a.id, b.id, a.number)
		}
	}
	return nil
}

// compare finds what becomes of a node.
func (d *delta) compare(n *nodeDelta, before, after *loom.Node, differs []bool, action loom.ClusterAction) {
	defer func() {
		for _, s := range n.before {
			d.up[s]++
		}
		for _, s := range n.after {
			if _, had := slices.BinarySearch(n.before, s); !had && n.roll != replaces {
				d.up[s]++ // new ones come before batches roll
			}
		}
	}()
	n.created, n.deleted = before == nil, after == nil
	if before != nil {
		n.before = d.indices(before.Services)
	}
	if after != nil {
		n.after = d.indices(after.Services)
	}
	if n.created || n.deleted {
		return
	}
	for _, s := range n.after {
		if _, had := slices.BinarySearch(n.before, s); had {
			d.retained[s] = append(d.retained[s], int32(n.at))
		}
	}
	switch other := retyped(before, after); {
	case other && action != loom.ClusterRepair:
		n.roll = replaces
		return
	case other || before.Incarnation != after.Incarnation:
		n.repaired = true
		return
	}
	for _, s := range n.after {
		if _, had := slices.BinarySearch(n.before, s); !had {
			n.added = append(n.added, s)
		} else if differs[s] {
			n.upgraded = append(n.upgraded, s)
		}
	}
	for _, s := range n.before {
		if _, has := slices.BinarySearch(n.after, s); !has {
			n.removed = append(n.removed, s)
		}
	}
	if len(n.upgraded) > 0 {
		n.roll = upgrades
		n.prepare = !containsAll(d.old.automators(n.before), d.new.automators(n.upgraded))
	}
}

func (d *delta) indices(names []string) []int {
	all := make([]int, len(names))
	for i, name := range names {
		all[i] = d.old.index[name]
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// automators returns the types that carry out the actions of services.
func (c *catalog) automators(services []int) map[string]bool {
	used := map[string]bool{}
	for _, s := range services {
		for _, action := range c.services[s].Provisioner.Actions {
			used[action.Type] = true
		}
	}
	return used
}

func containsAll(set, part map[string]bool) bool {
	for name := range part {
		if !set[name] {
			return false
		}
	}
	return true
}

// action finds the operation that a difference amounts to; a mixture is a rollback.
func (d *delta) action() loom.ClusterAction {
	kinds := map[loom.ClusterAction]bool{}
	gone := 0
	for i := range d.changed {
		n := &d.changed[i]
		for kind, is := range map[loom.ClusterAction]bool{
			loom.ClusterExpand: n.created, loom.ClusterShrink: n.deleted, loom.ClusterRepair: n.repaired, loom.ClusterResize: n.roll == replaces,
			loom.ClusterUpgrade: n.roll == upgrades, loom.AddServices: len(n.added) > 0, loom.RemoveServices: len(n.removed) > 0,
		} {
			if is {
				kinds[kind] = true
			}
		}
		if n.deleted {
			gone++
		}
	}
	switch {
	case len(d.nodes) > 0 && gone == len(d.nodes):
		return loom.ClusterDelete
	case len(kinds) != 1:
		return loom.Rollback
	}
	for kind := range kinds {
		if kind == loom.ClusterExpand && len(d.changed) == len(d.nodes) {
			return loom.ClusterCreate
		}
		return kind
	}
	return loom.Rollback
}
