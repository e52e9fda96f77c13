package web

import (
	"fmt"
	"slices"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/views/ui"
)

// nodeStanding is how a node stands: the state of its machine, and of a ready one
// whether its services serve. A node is ready only when they do.
type nodeStanding string

const (
	standingReady   = nodeStanding(loom.NodeReady)
	standingSettles = nodeStanding("setting-up")
	standingUnready = nodeStanding("not-ready")
)

// nodeStandings in the order of a node's life.
var nodeStandings = []nodeStanding{
	nodeStanding(loom.NodePlanned), nodeStanding(loom.NodeCreating), standingSettles, standingReady, standingUnready,
	nodeStanding(loom.NodeFailed), nodeStanding(loom.NodeDeleting), nodeStanding(loom.NodeDeleted),
}

func (s nodeStanding) state() ui.State {
	switch s {
	case standingSettles:
		return ui.State{Word: "Setting up", Icon: "ring", Tone: ui.ToneRun}
	case standingUnready:
		return ui.State{Word: "Not ready", Icon: "error", Tone: ui.ToneBad}
	}
	return ui.NodeState(loom.NodeState(s))
}

func standingOf(v lifecycle.ClusterView, n *loom.Node) nodeStanding {
	switch {
	case n.State != loom.NodeReady || !v.Unmet[n.ID].Wanted:
		return nodeStanding(n.State)
	case v.Latest != nil && !v.Latest.Status.Final():
		return standingSettles
	}
	return standingUnready
}

// nodeState shows how a node stands, and which of its services do not serve.
func nodeState(v lifecycle.ClusterView, n *loom.Node) ui.State {
	unmet := v.Unmet[n.ID].Services
	standing := standingOf(v, n)
	state := standing.state()
	switch {
	case len(unmet) == 0, n.State == loom.NodeFailed && !serviceFailed(n):
		return state // of a machine that failed itself, nothing can be expected
	case standing == standingSettles:
		return state.With(fmt.Sprintf("· %d of %s", len(n.Services)-len(unmet), ui.Count(len(n.Services), "service", "services")))
	case standing == standingReady:
		state.Icon, state.Tone = "square", ui.ToneIdle
	}
	return state.With("· " + unmetText(n, unmet))
}

func serviceFailed(n *loom.Node) bool {
	return slices.ContainsFunc(n.Services, func(name string) bool { return n.ServiceStates[name] == loom.ServiceFailed })
}

// unmetText names the first service that does not serve, one that failed before others.
func unmetText(n *loom.Node, unmet []string) string {
	name := unmet[0]
	for _, s := range unmet {
		if n.ServiceStates[s] == loom.ServiceFailed {
			name = s
			break
		}
	}
	text := name + " "
	switch n.ServiceStates[name] {
	case loom.ServiceFailed:
		text += "failed"
	case loom.ServiceStopped:
		text += "stopped"
	case loom.ServiceInstalled:
		text += "not started"
	default:
		text += "not installed"
	}
	if more := len(unmet) - 1; more > 0 {
		text += fmt.Sprintf(", %d more", more)
	}
	return text
}
