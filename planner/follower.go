package planner

import (
	"slices"

	"loom/app/loom"
)

// round is how a following service hears of a change: its CONFIGURE on half of
// its nodes, rounded up, and then on the rest.
type round struct {
	service int
	// follows are the services it follows whose nodes changed, ascending.
	follows []int
	halves  [2][]int32
}

// rounds finds the services that follow one whose nodes changed; before is what
// was provided before. Changed and holds are asked by service; holds gives the
// nodes on which the follower is to be configured again.
func (c *catalog) rounds(before *catalog, changed func(int) bool, holds func(int) []int32) []round {
	var all []round
	for f := range c.services {
		if !c.services[f].Defines(loom.ActionConfigure) {
			continue
		}
		var follows []int
		for _, name := range c.services[f].Follows {
			for _, s := range slices.Concat(c.providers[name], before.providers[name]) {
				if changed(s) {
					follows = append(follows, s)
				}
			}
		}
		if len(follows) == 0 {
			continue
		}
		slices.Sort(follows)
		nodes := holds(f)
		if len(nodes) == 0 {
			continue
		}
		half := (len(nodes) + 1) / 2
		all = append(all, round{f, slices.Compact(follows), [2][]int32{nodes[:half], nodes[half:]}})
	}
	return all
}

// addRounds replaces the nodes of rounds by tasks.
func (d *draft) addRounds(rounds []round) {
	for i := range rounds {
		for h, nodes := range rounds[i].halves {
			tasks := make([]int32, len(nodes))
			for j, n := range nodes {
				tasks[j] = d.addTask(int(n), rounds[i].service, loom.ActionConfigure)
			}
			rounds[i].halves[h] = tasks
		}
	}
}

// addFollowers adds the tasks by which followers outside the plan learn of the
// services that it adds.
func (b *builder) addFollowers() []round {
	rounds := b.catalog.rounds(b.catalog, b.adds, func(f int) []int32 {
		var nodes []int32
		for _, n := range b.instances[f] {
			if !b.plannedService[f] || !b.plannedNode[n] {
				nodes = append(nodes, n)
			}
		}
		return nodes
	})
	b.addRounds(rounds)
	return rounds
}

// adds reports whether a service comes to any node.
func (b *builder) adds(s int) bool {
	return b.plannedService[s] && slices.ContainsFunc(b.instances[s], func(n int32) bool { return b.plannedNode[n] })
}

// orderFollowers lets followers wait for what they follow to run, and the second
// half of each for the first. All tasks are there by now.
func (b *builder) orderFollowers(rounds []round) {
	for _, r := range rounds {
		for _, s := range r.follows {
			if last, ok := b.lastAction(s); ok {
				gate := b.gate(s, last)
				for _, task := range r.halves[0] {
					b.addEdge(gate, task)
				}
			}
		}
		if len(r.halves[1]) == 0 {
			continue
		}
		gate := int32(len(b.tasks) + len(b.gates))
		b.gates = append(b.gates, groupKey{r.service, loom.ActionConfigure})
		for _, task := range r.halves[0] {
			b.addEdge(task, gate)
		}
		for _, task := range r.halves[1] {
			b.addEdge(gate, task)
		}
	}
}

// lastAction is the last step of the plan that a service defines.
func (b *builder) lastAction(s int) (loom.TaskAction, bool) {
	for _, action := range slices.Backward(b.steps) {
		if !action.OfNode() && b.hasTasks(s, action) {
			return action, true
		}
	}
	return "", false
}
