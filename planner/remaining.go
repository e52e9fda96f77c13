package planner

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// RemainingActions are actions to be done on machines that stay, because earlier operations left
// them open or because a repair asks for them: by node and service, those of the node itself under
// the service "".
type RemainingActions map[loom.NodeID]map[string][]loom.TaskAction

// remainingSteps are what can be left to do of a service: it is stopped where a restart was
// begun, or is asked for. stayingSteps are what can be left to do of a machine that stays.
var (
	remainingSteps = append([]loom.TaskAction{loom.ActionStop}, installSteps...)
	stayingSteps   = []loom.TaskAction{loom.ActionReboot, loom.ActionConfirm, loom.ActionBootstrap}
)

// applyRemaining takes in what is left to do on machines that stay. Invalid for a node that
// does not stay as it is, for a service that is not on it and for an action that is no
// part of putting it there.
func (d *delta) applyRemaining(rest RemainingActions) error {
	at := make(map[loom.NodeID]int, len(d.nodes))
	for i := range d.nodes {
		at[d.nodes[i].id] = i
	}
	for id, services := range rest {
		i, there := at[id]
		n := nodeDelta{at: i}
		if !there {
			return loom.NewError(loom.Invalid, "Node %s, on which something is left to do, is not among the nodes.", id)
		}
		place, found := slices.BinarySearchFunc(d.changed, i, func(n nodeDelta, i int) int { return n.at - i })
		if found {
			n = d.changed[place]
		}
		if n.created || n.deleted || n.repaired || n.roll != keeps {
			return loom.NewError(loom.Invalid, "Node %d changes, so it can have no remaining work.", d.nodes[i].number)
		}
		n.remaining = map[int][]loom.TaskAction{}
		for name, actions := range services {
			service, steps := nodeTask, stayingSteps
			if name != "" {
				service, steps = slices.Index(d.names, name), remainingSteps
			}
			if name != "" && (service < 0 || !slices.Contains(d.nodes[i].services, service)) {
				return loom.NewError(loom.Invalid, "Node %d lacks the service “%s”, which has remaining work.", d.nodes[i].number, name)
			}
			for _, action := range actions {
				if !slices.Contains(steps, action) {
					return loom.NewError(loom.Invalid, "What is left to do on node %d cannot be %s.", d.nodes[i].number, fmt.Sprint(action, " ", name))
				}
			}
			n.remaining[service] = actions
		}
		if found {
			d.changed[place] = n
		} else {
			d.changed = slices.Insert(d.changed, place, n)
		}
	}
	return nil
}

// remainingParts returns the parts of a node's chain that are left of earlier operations.
func (n *nodeDelta) remainingParts(d *delta) []part {
	var own []loom.TaskAction
	var services []int
	for _, action := range stayingSteps {
		if slices.Contains(n.remaining[nodeTask], action) || action == loom.ActionBootstrap && len(n.added) > 0 {
			own = append(own, action)
		}
	}
	for service := range n.remaining {
		if service != nodeTask {
			services = append(services, service)
		}
	}
	slices.Sort(services)
	return []part{{own: own}, {services: services, defined: d.new, actions: remainingSteps, waits: true, only: func(service int, action loom.TaskAction) bool {
		return slices.Contains(n.remaining[service], action)
	}}}
}
