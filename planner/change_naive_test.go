package planner

import (
	"maps"
	"slices"

	"loom/app/loom"
)

// expected is a change planned by the letter: stages of tasks, one after the
// other, and the order within each, written out pair by pair.
type expected struct {
	change        Change
	before, after *naive
	stages        []*naiveStage
}

type naiveStage struct {
	tasks map[string]bool
	edges map[[2]string]bool
	// services of the tasks by action and node.
	on map[string][]loom.NodeID
}

func newExpected(change Change) *expected {
	e := &expected{change: change}
	there := func(s State) *naive {
		p := &naive{nodes: s.Nodes, services: map[string]loom.Service{}}
		for _, n := range s.Nodes {
			for _, name := range n.Services {
				p.services[name] = s.Services[name]
			}
		}
		return p
	}
	e.before, e.after = there(change.Before), there(change.After)
	return e
}

func (e *expected) node(s State, id loom.NodeID) *loom.Node { return node(s, id) }

func node(s State, id loom.NodeID) *loom.Node {
	for i := range s.Nodes {
		if s.Nodes[i].ID == id {
			return &s.Nodes[i]
		}
	}
	return nil
}

func (e *expected) ids() []loom.NodeID {
	number := map[loom.NodeID]int{}
	for _, n := range slices.Concat(e.change.Before.Nodes, e.change.After.Nodes) {
		number[n.ID] = n.Number
	}
	return slices.SortedFunc(maps.Keys(number), func(a, b loom.NodeID) int { return number[a] - number[b] })
}

func (s *naiveStage) chain(p *naive, node loom.NodeID, last []string, services []string, actions ...loom.TaskAction) []string {
	if len(services) == 0 {
		for _, a := range actions {
			name := taskName(node, "", a)
			s.tasks[name] = true
			for _, l := range last {
				s.edges[[2]string{l, name}] = true
			}
			last = []string{name}
		}
		return last
	}
	var ends []string
	for _, service := range services {
		from, mine := last, false
		for _, a := range actions {
			if d := p.services[service]; !d.Defines(a) {
				continue
			}
			name := taskName(node, service, a)
			s.tasks[name] = true
			s.on[string(a)+" "+service] = append(s.on[string(a)+" "+service], node)
			for _, l := range from {
				s.edges[[2]string{l, name}] = true
			}
			from, mine = []string{name}, true
		}
		if mine {
			ends = append(ends, from...)
		}
	}
	if len(ends) == 0 {
		return last
	}
	return ends
}

var comes = []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart}

// has lists services, or one that does not exist where there is none, so that an
// empty list does not mean the node's own tasks.
func has(services []string) []string {
	if len(services) == 0 {
		return []string{"-"}
	}
	return services
}

func (e *expected) stage(build func(s *naiveStage)) {
	s := &naiveStage{tasks: map[string]bool{}, edges: map[[2]string]bool{}, on: map[string][]loom.NodeID{}}
	build(s)
	for _, r := range []struct {
		p             *naive
		install       bool
		before, after loom.TaskAction
		reversed      bool
	}{
		{e.after, true, loom.ActionInstall, loom.ActionInstall, false},
		{e.after, false, loom.ActionStart, loom.ActionInitialize, false},
		{e.after, false, loom.ActionStart, loom.ActionStart, false},
		{e.before, false, loom.ActionStop, loom.ActionStop, true},
		{e.before, true, loom.ActionRemove, loom.ActionRemove, true},
	} {
		for x := range r.p.services {
			xs := s.on[string(r.after)+" "+x]
			if len(xs) == 0 {
				continue
			}
			for _, y := range r.p.nearest(x, r.install, func(y string) bool { return len(s.on[string(r.before)+" "+y]) > 0 }) {
				for _, nx := range xs {
					for _, ny := range s.on[string(r.before)+" "+y] {
						same := slices.Contains(r.p.on(y), nx)
						if r.install && !r.reversed && r.p.services[x].Dependencies.Install.Scope == "node" && same && nx != ny {
							continue
						}
						from, to := taskName(ny, y, r.before), taskName(nx, x, r.after)
						if r.reversed {
							from, to = to, from
						}
						s.edges[[2]string{from, to}] = true
					}
				}
			}
		}
	}
	if len(s.tasks) > 0 {
		e.stages = append(e.stages, s)
	}
}

// tell is the stage of the followers of services whose nodes changed.
func (e *expected) tell(moved map[string]bool, know map[loom.NodeID]bool) {
	e.stage(func(s *naiveStage) {
		for f, d := range e.after.services {
			follows := slices.ContainsFunc(d.Follows, func(name string) bool {
				for m := range moved {
					for _, p := range []*naive{e.before, e.after} {
						if v, there := p.services[m]; there && (m == name || slices.Contains(v.Dependencies.Provides, name)) {
							return true
						}
					}
				}
				return false
			})
			if !follows || !d.Defines(loom.ActionConfigure) {
				continue
			}
			var nodes []string
			for _, id := range e.ids() {
				b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
				if b != nil && a != nil && !know[id] && slices.Contains(b.Services, f) && slices.Contains(a.Services, f) {
					nodes = append(nodes, taskName(id, f, loom.ActionConfigure))
				}
			}
			half := (len(nodes) + 1) / 2
			for i, name := range nodes {
				s.tasks[name] = true
				for _, first := range nodes[:half] {
					if i >= half {
						s.edges[[2]string{first, name}] = true
					}
				}
			}
		}
	})
}

func (e *expected) replaced(id loom.NodeID) (repaired, resized bool) {
	b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
	if b == nil || a == nil {
		return false, false
	}
	resized = b.HardwareType != a.HardwareType
	return !resized && b.Incarnation != a.Incarnation, resized
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

func (e *expected) upgraded(id loom.NodeID) []string {
	b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
	repaired, resized := e.replaced(id)
	if b == nil || a == nil || repaired || resized {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(a.Services), func(s string) bool {
		return !slices.Contains(b.Services, s) || e.before.services[s].Version == e.after.services[s].Version
	})
}

func (e *expected) build() {
	var rolling []loom.NodeID
	moved, know := map[string]bool{}, map[loom.NodeID]bool{}
	note := func(to map[string]bool, lists ...[]string) {
		for _, name := range slices.Concat(lists...) {
			to[name] = true
		}
	}
	fresh := func(s *naiveStage, id loom.NodeID, last []string, n *loom.Node) {
		last = s.chain(e.after, id, last, nil, loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap)
		s.chain(e.after, id, last, has(n.Services), comes...)
	}
	e.stage(func(s *naiveStage) {
		for _, id := range e.ids() {
			b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
			repaired, resized := e.replaced(id)
			switch {
			case b == nil:
				fresh(s, id, nil, a)
				note(moved, a.Services)
			case a == nil:
				note(moved, b.Services)
			case repaired:
				fresh(s, id, s.chain(e.before, id, nil, nil, loom.ActionDelete), a)
				note(moved, b.Services, a.Services)
				know[id] = true
			case resized:
				rolling = append(rolling, id)
			default:
				added, rest := without(a.Services, b.Services), e.change.Remaining[id]
				var last []string
				for _, action := range []loom.TaskAction{loom.ActionReboot, loom.ActionConfirm, loom.ActionBootstrap} {
					if slices.Contains(rest[""], action) || action == loom.ActionBootstrap && len(added) > 0 {
						last = s.chain(e.after, id, last, nil, action)
					}
				}
				s.chain(e.after, id, last, has(added), comes...)
				for service, actions := range rest {
					s.chain(e.after, id, last, has([]string{service}), slices.DeleteFunc(slices.Clone(remainingSteps), func(a loom.TaskAction) bool { return !slices.Contains(actions, a) })...)
				}
				note(moved, without(a.Services, b.Services), without(b.Services, a.Services))
				if len(e.upgraded(id)) > 0 {
					rolling = append(rolling, id)
				}
			}
		}
	})
	for batch := range slices.Chunk(rolling, max(e.change.Batch, 1)) {
		batchMoved, batchKnow := map[string]bool{}, map[loom.NodeID]bool{}
		e.stage(func(s *naiveStage) {
			for _, id := range batch {
				b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
				if _, resized := e.replaced(id); resized {
					drained := slices.DeleteFunc(slices.Clone(b.Services), func(name string) bool {
						d := e.before.services[name]
						return !d.Defines(loom.ActionDrain)
					})
					last := s.chain(e.before, id, nil, has(drained), loom.ActionDrain, loom.ActionStop)
					fresh(s, id, s.chain(e.before, id, last, nil, loom.ActionDelete), a)
					note(batchMoved, b.Services, a.Services)
					batchKnow[id] = true
					continue
				}
				for _, name := range e.upgraded(id) {
					last := s.chain(e.before, id, nil, []string{name}, loom.ActionStop)
					s.chain(e.after, id, last, []string{name}, loom.ActionInstall, loom.ActionConfigure, loom.ActionStart)
				}
			}
		})
		e.tell(batchMoved, batchKnow)
	}
	e.tell(moved, know)
	e.stage(func(s *naiveStage) {
		for _, id := range e.ids() {
			b, a := e.node(e.change.Before, id), e.node(e.change.After, id)
			repaired, resized := e.replaced(id)
			switch {
			case b == nil || repaired || resized:
			case a == nil:
				s.chain(e.before, id, s.chain(e.before, id, nil, has(b.Services), loom.ActionDrain, loom.ActionStop), nil, loom.ActionDelete)
			default:
				s.chain(e.before, id, nil, has(without(b.Services, a.Services)), loom.ActionStop, loom.ActionRemove)
			}
		}
	})
}
