package planner

import (
	"slices"

	"loom/app/loom"
)

// sequence builds a plan stage by stage: a stage begins when the one before it is
// done. Within a stage services are ordered by the rules, among the tasks of the
// stage only: what is there already, or comes in another stage, is no part of it.
type sequence struct {
	draft
	// old and new are the services before and after.
	old, new *catalog
	// outdated marks the services whose definition before is not the one after, or
	// that have none after: what is done by the earlier one is marked in the plan.
	outdated []bool
	// relations by phase, of old and of new; made when first asked for.
	oldRelations, newRelations [phases]*relation
	// last is the newest stage that has tasks.
	last *section
	// early leaves out the gates that hold services for addresses.
	early bool
}

// section is a stage in the making. The word stage means a level elsewhere.
type section struct {
	groups map[groupKey][]instance
	// sources are the vertices that stand for all of a group.
	sources map[groupKey]int32
	// firsts wait for the stage before, the next stage waits for lasts.
	firsts, lasts []int32
	// confirms are the CONFIRM tasks, held the service tasks right behind a node's own.
	confirms, held []int32
	// waiting are service tasks of machines that are there, which wait for CONFIRM all
	// the same.
	waiting []int32
}

// instance is one task of a group.
type instance struct{ node, task int32 }

func newSection() *section {
	return &section{groups: map[groupKey][]instance{}, sources: map[groupKey]int32{}}
}

// part is a piece of a node's chain: actions of the node, or actions of services
// as defined by a catalog. Only, if set, picks some of the latter.
type part struct {
	own      []loom.TaskAction
	services []int
	defined  *catalog
	actions  []loom.TaskAction
	only     func(service int, action loom.TaskAction) bool
	// waits says that the services need the addresses of new machines.
	waits bool
}

// chain adds the tasks of a node, part after part. Services go side by side; an
// action of the node waits for all of them.
func (q *sequence) chain(s *section, node int, parts ...part) {
	base, confirmed := int32(none), false
	ends := map[int]int32{}
	var order []int // keys of ends, as they came
	follow := func(last, task int32) {
		if last == none {
			s.firsts = append(s.firsts, task)
		} else {
			q.addEdge(last, task)
		}
	}
	for _, p := range parts {
		for _, action := range p.own {
			task := q.addTask(node, nodeTask, action)
			if len(order) == 0 {
				follow(base, task)
			}
			for _, service := range order {
				q.addEdge(ends[service], task)
			}
			clear(ends)
			order, base = order[:0], task
			if action == loom.ActionConfirm {
				confirmed = true
				s.confirms = append(s.confirms, task)
			}
		}
		for _, service := range p.services {
			for _, action := range p.actions {
				if !p.defined.services[service].Defines(action) || p.only != nil && !p.only(service, action) {
					continue
				}
				task := q.addTask(node, service, action)
				q.tasks[task].old = p.defined == q.old && q.outdated[service]
				last, begun := ends[service]
				if !begun {
					last = base
					order = append(order, service)
					if confirmed {
						s.held = append(s.held, task)
					} else if p.waits {
						s.waiting = append(s.waiting, task)
					}
				}
				follow(last, task)
				ends[service] = task
				key := groupKey{service, action}
				s.groups[key] = append(s.groups[key], instance{int32(node), task})
			}
		}
	}
	for _, service := range order {
		s.lasts = append(s.lasts, ends[service])
	}
	if len(order) == 0 && base != none {
		s.lasts = append(s.lasts, base)
	}
}

// gates get numbers below none until all tasks are there.
func gateVertex(gate int) int32 { return int32(-2 - gate) }

// gateBehind returns a vertex that is reached when all of the tasks are done: the task
// itself where there is one, else a new gate.
func (q *sequence) gateBehind(key groupKey, tasks []int32) int32 {
	if len(tasks) == 1 {
		return tasks[0]
	}
	v := gateVertex(len(q.gates))
	q.gates = append(q.gates, key)
	for _, task := range tasks {
		q.addEdge(task, v)
	}
	return v
}

// source is behind for a group of a stage.
func (q *sequence) source(s *section, key groupKey) int32 {
	v, ok := s.sources[key]
	if !ok {
		tasks := make([]int32, len(s.groups[key]))
		for i, g := range s.groups[key] {
			tasks[i] = g.task
		}
		v = q.gateBehind(key, tasks)
		s.sources[key] = v
	}
	return v
}

// closeStage orders the services of a stage and puts it behind the one before.
func (q *sequence) closeStage(s *section) error {
	if len(s.lasts) == 0 {
		return nil
	}
	for _, r := range rules {
		if err := q.apply(s, r); err != nil {
			return err
		}
	}
	// On the only new machine its own chain says that its services wait.
	if held := slices.Concat(s.held, s.waiting); !q.early && len(s.confirms) > 0 && (len(s.confirms) > 1 && len(held) > 0 || len(s.waiting) > 0) {
		if len(s.confirms) == 1 {
			held = s.waiting
		}
		gate := q.gateBehind(groupKey{nodeTask, loom.ActionConfirm}, s.confirms)
		for _, task := range held {
			q.addEdge(gate, task)
		}
	}
	if q.last != nil {
		from := q.gateBehind(q.common(q.last.lasts), q.last.lasts)
		for _, task := range s.firsts {
			q.addEdge(from, task)
		}
	}
	q.last = s
	return nil
}

// common names what the tasks at the end of a stage are: their service if it and the
// action are the same, and the action that comes last.
func (q *sequence) common(tasks []int32) groupKey {
	first := q.tasks[tasks[0]]
	service, order := first.service, int8(0)
	for _, task := range tasks {
		t := q.tasks[task]
		if t.service != service || t.order != first.order {
			service = nodeTask
		}
		order = max(order, t.order)
	}
	return groupKey{int(service), loom.TaskActions[order]}
}

// apply adds the edges of a rule within a stage.
func (q *sequence) apply(s *section, r rule) error {
	waiting := s.servicesWith(r.after)
	if len(waiting) == 0 || len(waiting) == 1 && (r.before == r.after || len(s.servicesWith(r.before)) == 0) {
		return nil // nothing to order
	}
	defined := q.new
	if r.reversed {
		defined = q.old
	}
	rel, err := q.relation(r.phase, r.reversed)
	if err != nil {
		return err
	}
	for _, x := range waiting {
		for _, y := range rel.nearest(x, func(y int) bool { return s.groups[groupKey{y, r.before}] != nil }) {
			earlier, later := groupKey{y, r.before}, groupKey{x, r.after}
			if r.reversed {
				earlier, later = groupKey{x, r.before}, groupKey{y, r.after}
			}
			if r.phase == installPhase && !r.reversed && defined.nodeScope(x) {
				q.orderOnNodes(s, earlier, later)
				continue
			}
			from := q.source(s, earlier)
			for _, g := range s.groups[later] {
				q.addEdge(from, g.task)
			}
		}
	}
	return nil
}

// servicesWith lists the services that have tasks of an action.
func (s *section) servicesWith(action loom.TaskAction) []int {
	var all []int
	for key := range s.groups {
		if key.action == action {
			all = append(all, key.service)
		}
	}
	slices.Sort(all)
	return all
}

// orderOnNodes is for an INSTALL of scope "node": where the earlier service is on
// the same node, only that node counts.
func (q *sequence) orderOnNodes(s *section, earlier, later groupKey) {
	at := map[int32]int32{}
	for _, g := range s.groups[earlier] {
		at[g.node] = g.task
	}
	for _, g := range s.groups[later] {
		if task, same := at[g.node]; same {
			q.addEdge(task, g.task)
		} else if !slices.Contains(q.nodes[g.node].services, earlier.service) {
			q.addEdge(q.source(s, earlier), g.task)
		}
	}
}

// relation returns the dependencies of a phase before or after, refusing circles.
func (q *sequence) relation(p phase, before bool) (*relation, error) {
	c, at := q.new, &q.newRelations[p]
	if before {
		c, at = q.old, &q.oldRelations[p]
	}
	if *at == nil {
		if cycles := c.cycles(p); len(cycles) > 0 {
			return nil, cycleError(p, cycles)
		}
		*at = c.relation(p)
	}
	return *at, nil
}

// addRoundsStage adds a stage in which followers are configured again.
func (q *sequence) addRoundsStage(rounds []round) error {
	q.addRounds(rounds)
	s := newSection()
	for _, r := range rounds {
		s.firsts = append(s.firsts, r.halves[0]...)
		if len(r.halves[1]) == 0 {
			s.lasts = append(s.lasts, r.halves[0]...)
			continue
		}
		from := q.gateBehind(groupKey{r.service, loom.ActionConfigure}, r.halves[0])
		for _, task := range r.halves[1] {
			q.addEdge(from, task)
		}
		s.lasts = append(s.lasts, r.halves[1]...)
	}
	return q.closeStage(s)
}

// plan numbers what was built.
func (q *sequence) plan(action loom.ClusterAction) (loom.Plan, error) {
	n := int32(len(q.tasks))
	final := func(v int32) int32 {
		if v < none {
			return n - 2 - v
		}
		return v
	}
	for i, e := range q.edges {
		q.edges[i] = edge{final(e.from), final(e.to)}
	}
	return q.finish(action)
}
