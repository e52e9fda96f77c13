package planner

import (
	"slices"

	"loom/app/loom"
)

// draft is a plan before it is numbered: tasks are its vertices from 0, gates
// those after all tasks.
type draft struct {
	nodes []planNode
	// names of the services, by their numbers.
	names []string
	tasks []draftTask
	gates []groupKey
	edges []edge
}

// builder makes the draft of an action with fixed steps.
type builder struct {
	draft
	steps     []loom.TaskAction
	catalog   *catalog
	relations [phases]*relation
	// instances are the nodes of each service, ascending.
	instances [][]int32

	plannedNode    []bool
	plannedService []bool

	// groups hold, for each service and action with a task, the task of each
	// instance of the service, or none.
	groups map[groupKey][]int32
	// confirms are the CONFIRM tasks, firsts the service tasks that come first on
	// their node.
	confirms, firsts []int32
	gateOf           map[groupKey]int32
}

type planNode struct {
	id       loom.NodeID
	number   int
	names    []string
	services []int
}

// draftTask is a task before it is numbered; service is nodeTask for a node's own.
type draftTask struct {
	node    int32
	service int32
	order   int8
	// old and undo are as in loom.PlanTask.
	old, undo bool
}

type groupKey struct {
	service int
	action  loom.TaskAction
}

type edge struct{ from, to int32 }

const (
	nodeTask = -1
	none     = -1
)

func (d *draft) addTask(node, service int, action loom.TaskAction) int32 {
	d.tasks = append(d.tasks, draftTask{node: int32(node), service: int32(service), order: int8(action.Order())})
	return int32(len(d.tasks) - 1)
}

func (d *draft) addEdge(from, to int32) { d.edges = append(d.edges, edge{from, to}) }

// setInGroup notes the task of a service's action on a node.
func (b *builder) setInGroup(node, service int, action loom.TaskAction, task int32) {
	key := groupKey{service, action}
	group := b.groups[key]
	if group == nil {
		group = make([]int32, len(b.instances[service]))
		for i := range group {
			group[i] = none
		}
		b.groups[key] = group
	}
	at, _ := slices.BinarySearch(b.instances[service], int32(node))
	group[at] = task
}

// inGroup returns the task of a service's action on a node, or none.
func (b *builder) inGroup(node int32, service int, action loom.TaskAction) int32 {
	group := b.groups[groupKey{service, action}]
	at, found := slices.BinarySearch(b.instances[service], node)
	if group == nil || !found {
		return none
	}
	return group[at]
}

func (b *builder) hasTasks(service int, action loom.TaskAction) bool {
	return b.groups[groupKey{service, action}] != nil
}

// addChains adds, for each planned node, its own tasks in order, and behind
// them those of each planned service. Node tasks are shared by the services; an
// action that a service lacks is bridged.
func (b *builder) addChains() {
	own := make([]int32, len(b.steps))
	for n := range b.nodes {
		if !b.plannedNode[n] {
			continue
		}
		last := int32(none)
		for i, action := range b.steps {
			if !action.OfNode() {
				continue
			}
			own[i] = b.addTask(n, nodeTask, action)
			if action == loom.ActionConfirm {
				b.confirms = append(b.confirms, own[i])
			}
			if last != none {
				b.addEdge(last, own[i])
			}
			last = own[i]
		}
		for _, s := range b.nodes[n].services {
			if b.plannedService[s] {
				b.addServiceChain(n, s, own)
			}
		}
	}
}

func (b *builder) addServiceChain(n, s int, own []int32) {
	last, lastOfNode := int32(none), false
	for i, action := range b.steps {
		task := own[i]
		if !action.OfNode() {
			if !b.catalog.services[s].Defines(action) {
				continue
			}
			task = b.addTask(n, s, action)
			b.setInGroup(n, s, action, task)
		}
		if last != none && !(lastOfNode && action.OfNode()) {
			b.addEdge(last, task)
		}
		if lastOfNode && !action.OfNode() {
			b.firsts = append(b.firsts, task)
		}
		last, lastOfNode = task, action.OfNode()
	}
}

// joinStarts adds the START of services and nodes outside the scope that
// planned tasks rely on at runtime. They are only waited for: START is
// idempotent, and a service that was down would fail the ones behind it.
func (b *builder) joinStarts() {
	join := newBitset(len(b.catalog.names))
	for _, r := range rules {
		rel := b.relations[r.phase]
		if r.before != loom.ActionStart || rel == nil {
			continue
		}
		for x := range b.catalog.names {
			if !b.hasTasks(x, r.after) {
				continue
			}
			for _, y := range rel.nearest(x, func(y int) bool { return b.catalog.services[y].Defines(loom.ActionStart) }) {
				join.add(y)
			}
		}
	}
	for y := range b.catalog.names {
		if !join.has(y) {
			continue
		}
		for _, n := range b.instances[y] {
			if b.inGroup(n, y, loom.ActionStart) == none {
				b.setInGroup(int(n), y, loom.ActionStart, b.addTask(int(n), y, loom.ActionStart))
			}
		}
	}
}

// addCrossEdges orders services by the rules. A service whose action is not in
// the plan, because it does not define it or is outside the scope, is bridged
// like an undefined one: otherwise the order between two planned services
// could get lost at one between them that was installed long ago.
func (b *builder) addCrossEdges() {
	b.gateOf = map[groupKey]int32{}
	for _, r := range rules {
		rel := b.relations[r.phase]
		if rel == nil {
			continue
		}
		for x := range b.catalog.names {
			if !b.hasTasks(x, r.after) {
				continue
			}
			for _, y := range rel.nearest(x, func(y int) bool { return b.hasTasks(y, r.before) }) {
				switch {
				case r.reversed:
					b.waitForAll(y, r.after, x, r.before)
				case r.phase == installPhase && b.catalog.nodeScope(x):
					b.waitOnNode(x, y)
				default:
					b.waitForAll(x, r.after, y, r.before)
				}
			}
		}
	}
}

// addConfirmGate lets the services of every node wait for the CONFIRM of all
// nodes. A service task is given the addresses of the whole cluster, in macros
// and in its payload, and these are known from CONFIRM on.
func (b *builder) addConfirmGate() {
	if len(b.confirms) < 2 {
		return // on a single node its own chain says it
	}
	key := groupKey{nodeTask, loom.ActionConfirm}
	b.groups[key] = b.confirms
	gate := int32(none)
	for _, task := range b.firsts {
		if gate == none {
			gate = b.gate(key.service, key.action)
		}
		b.addEdge(gate, task)
	}
}

// waitForAll lets every task of (x, after) wait for every one of (y, before).
func (b *builder) waitForAll(x int, after loom.TaskAction, y int, before loom.TaskAction) {
	gate := b.gate(y, before)
	for _, task := range b.groups[groupKey{x, after}] {
		if task != none {
			b.addEdge(gate, task)
		}
	}
}

// waitOnNode is waitForAll for an INSTALL of scope "node": where y is on the
// same node, only its installation there counts.
func (b *builder) waitOnNode(x, y int) {
	for i, task := range b.groups[groupKey{x, loom.ActionInstall}] {
		if task == none {
			continue
		}
		node := b.instances[x][i]
		if _, same := slices.BinarySearch(b.instances[y], node); !same {
			b.addEdge(b.gate(y, loom.ActionInstall), task)
		} else if before := b.inGroup(node, y, loom.ActionInstall); before != none {
			b.addEdge(before, task)
		}
	}
}

// gate returns the gate behind all tasks of a service's action, made when first
// asked for. No task may be added after it.
func (b *builder) gate(service int, action loom.TaskAction) int32 {
	key := groupKey{service, action}
	if v, ok := b.gateOf[key]; ok {
		return v
	}
	v := int32(len(b.tasks) + len(b.gates))
	b.gates = append(b.gates, key)
	b.gateOf[key] = v
	for _, task := range b.groups[key] {
		if task != none {
			b.addEdge(task, v)
		}
	}
	return v
}
