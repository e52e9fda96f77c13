// Package planner turns a change of a cluster into a plan: the graph of tasks
// that carries it out. It also decides what follows an attempt that ended
// badly, and how an operation ends.
//
// It is pure: no clock, file, network or random source, and the same input
// gives the same output byte for byte. It must not know how plans are stored or
// delivered. What a newcomer gets wrong: an order rule between services joins
// every node of the one with every node of the other, so the plan never holds
// these edges; it holds gates, and contracting them gives the rules.
package planner

import (
	"cmp"
	"slices"

	"loom/app/loom"
)

// Scope says what an operation covers. The zero Scope covers the whole cluster.
type Scope struct {
	// Services are the planned services; nil means all. For start, stop and
	// restart these are the services asked for, and Make adds those that
	// Coverage names.
	Services []string
	// Nodes are the planned nodes; nil means all.
	Nodes []loom.NodeID
	// Early lets the services of a new node begin before the other new nodes are
	// confirmed. Operations that run do not set it: their services are given the
	// addresses of the whole cluster, which are known from CONFIRM on.
	Early bool
}

// Make plans a cluster action. Nodes are all nodes of the cluster, planned or
// not; services holds at least every service on them, by name.
//
// Errors: Invalid for an action without fixed steps, for nodes or services that
// contradict each other, and for services that depend on each other in a
// circle; NotFound for a scope that names what is not on the cluster.
func Make(action loom.ClusterAction, nodes []loom.Node, services map[string]loom.Service, scope Scope) (loom.Plan, error) {
	steps := action.Steps()
	if steps == nil {
		return loom.Plan{}, loom.NewError(loom.Invalid,
			"“%s” has no fixed list of steps, so it cannot be planned from a cluster alone.", action.Verb())
	}
	b, err := newBuilder(steps, nodes, services)
	if err != nil {
		return loom.Plan{}, err
	}
	if err := b.relate(); err != nil {
		return loom.Plan{}, err
	}
	if err := b.narrow(action, scope); err != nil {
		return loom.Plan{}, err
	}
	b.addChains()
	b.joinStarts()
	var rounds []round
	if action == loom.AddServices {
		rounds = b.addFollowers()
	}
	b.addCrossEdges()
	if !scope.Early {
		b.addConfirmGate()
	}
	b.orderFollowers(rounds)
	return b.finish(action)
}

// rule is one row of the table of order rules: where X depends on Y, before of
// Y precedes after of X, or the other way round when reversed.
type rule struct {
	phase    phase
	before   loom.TaskAction
	after    loom.TaskAction
	reversed bool
}

var rules = []rule{
	{installPhase, loom.ActionInstall, loom.ActionInstall, false},
	{runtimePhase, loom.ActionStart, loom.ActionInitialize, false},
	{runtimePhase, loom.ActionStart, loom.ActionStart, false},
	{runtimePhase, loom.ActionStop, loom.ActionStop, true},
	// Only changes and undoing remove.
	{installPhase, loom.ActionRemove, loom.ActionRemove, true},
}

// newBuilder indexes nodes by number and services by name.
func newBuilder(steps []loom.TaskAction, nodes []loom.Node, services map[string]loom.Service) (*builder, error) {
	present, err := servicesOn(nodes, services)
	if err != nil {
		return nil, err
	}
	b := &builder{steps: steps, groups: map[groupKey][]int32{}, catalog: newCatalog(services, present)}
	b.names = b.catalog.names
	b.nodes = make([]planNode, len(nodes))
	for i := range nodes {
		b.nodes[i] = planNode{id: nodes[i].ID, number: nodes[i].Number, names: nodes[i].Services}
	}
	sortNodes(b.nodes)
	b.instances = make([][]int32, len(b.catalog.names))
	for i := range b.nodes {
		n := &b.nodes[i]
		for _, name := range n.names {
			n.services = append(n.services, b.catalog.index[name])
		}
		slices.Sort(n.services)
		n.services = slices.Compact(n.services)
		for _, s := range n.services {
			b.instances[s] = append(b.instances[s], int32(i))
		}
	}
	return b, nil
}

// servicesOn returns the names of all services on nodes. Invalid for a node that is
// there twice and for a service that is not defined.
func servicesOn(nodes []loom.Node, services map[string]loom.Service) (map[string]bool, error) {
	present := map[string]bool{}
	seen := make(map[loom.NodeID]bool, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if seen[n.ID] {
			return nil, loom.NewError(loom.Invalid, "Node %d is listed twice.", n.Number)
		}
		seen[n.ID] = true
		for _, name := range n.Services {
			if present[name] {
				continue
			}
			if _, ok := services[name]; !ok {
				return nil, loom.NewError(loom.Invalid,
					"Node %d has the service “%s”, which the cluster does not define; sync or repair its list of services.", n.Number, name)
			}
			present[name] = true
		}
	}
	return present, nil
}

func sortNodes(nodes []planNode) {
	slices.SortFunc(nodes, func(x, y planNode) int {
		return cmp.Or(cmp.Compare(x.number, y.number), cmp.Compare(x.id, y.id))
	})
}

// relate resolves the dependencies of the phases the steps need. A phase that
// no step needs may hold a circle: a cluster must always be deletable.
func (b *builder) relate() error {
	for _, r := range rules {
		if b.relations[r.phase] != nil || !slices.Contains(b.steps, r.after) {
			continue
		}
		if cycles := b.catalog.cycles(r.phase); len(cycles) > 0 {
			return cycleError(r.phase, cycles)
		}
		b.relations[r.phase] = b.catalog.relation(r.phase)
	}
	return nil
}

// narrow marks what the scope plans.
func (b *builder) narrow(action loom.ClusterAction, scope Scope) error {
	b.plannedNode = make([]bool, len(b.nodes))
	b.plannedService = make([]bool, len(b.catalog.names))
	if scope.Nodes == nil {
		setAll(b.plannedNode)
	} else {
		at := make(map[loom.NodeID]int, len(b.nodes))
		for i, n := range b.nodes {
			at[n.id] = i
		}
		for _, id := range scope.Nodes {
			i, ok := at[id]
			if !ok {
				return loom.NewError(loom.NotFound, "The cluster has no node %s.", id)
			}
			b.plannedNode[i] = true
		}
	}
	if scope.Services == nil {
		setAll(b.plannedService)
		return nil
	}
	for _, name := range scope.Services {
		s, ok := b.catalog.index[name]
		if !ok {
			return loom.NewError(loom.NotFound, "There is no service “%s” on this cluster.", name)
		}
		b.plannedService[s] = true
	}
	if rel := b.relations[runtimePhase]; rel != nil {
		rel.cover(action, b.plannedService)
	}
	return nil
}

func setAll(marks []bool) {
	for i := range marks {
		marks[i] = true
	}
}
