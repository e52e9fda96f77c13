package clusterview

import (
	"time"

	"loom/app/loom"
	"loom/views/ui"
)

// NodeModel is the page of a node.
type NodeModel struct {
	// Leaving says that the node is on its way out.
	Leaving bool
	// Actions are what can be done to it.
	Actions  []ui.ButtonModel
	Cluster  loom.ClusterID
	Hostname string
	State    ui.State
	Facts    []ui.Def
	Services []ServiceOn
	Links    []LinkModel
	// Command is empty until the machine has an address; Reveal when there is no
	// sign-in to show.
	Command, Reveal string
	Results         []ui.Def
	History         []NodeEvent
	Now             time.Time
	Revealed        *RevealModel
	// Part is where the page is fetched again, as a whole.
	Live string
}

// NodeLogModel is the page with the log of all that was done to a node.
type NodeLogModel struct {
	Hostname, Node string
	Log            ui.LogModel
}

// NodeEvent is an action that was done to a node.
type NodeEvent struct {
	Action, Service, Href string
	State                 ui.State
	Started, Ended        time.Time
}
