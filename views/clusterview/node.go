package clusterview

import (
	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/ui"
)

// NodeModel is the page of a node.
type NodeModel struct {
	loom.Node
	Cluster loom.ClusterID
	// Menu is what can be done to it.
	Menu []ui.MenuItem
	// Title is what it is called: "Node 1001".
	Title string
	// Trouble says why it is in a bad state, empty for another one.
	Trouble []TroubleLine
	// Fixed says that one of them has the primary button.
	Fixed bool
	Badge ui.State
	Facts []ui.Def
	// Rows are its services.
	Rows  []NodeService
	Drift []DriftRow
	Links []loom.Link
	// Command signs the viewer in; without one WhyNot says why. Reveal shows the machine's
	// own password, and is empty when there is none. Key is zero without an address.
	Command, WhyNot, Reveal string
	Key                     KeyModel
	// Addresses chooses which address the command names, without options where there is
	// one.
	Addresses Choices
	// Technical are its technical details; History what was done to it last, newest first.
	Technical []ui.Def
	History   []loom.NodeAction
	// Log leads to the log of all that was done to it.
	Log      string
	Revealed *RevealModel
	// Load is what its machine had in use over the last day, nil while it has none.
	Load templ.Component
	// Part is where the page is fetched again, as a whole.
	Live string
}

// NodeLogModel is the page with the log of all that was done to a node.
type NodeLogModel struct {
	Hostname, Node string
	Log            ui.LogModel
}

// JournalModel is the page of what a service writes on a node.
type JournalModel struct {
	Service, Hostname string
	// Node leads to the node, Self to the page.
	Node, Self string
	// Trouble says why there is no journal, "" where there is one.
	Trouble string
	Log     ui.LogModel
}

// NodeService is a service of a node with the newest thing that was done to it there.
type NodeService struct {
	ServiceOn
	// Last is that action, without a start where there is none.
	Last loom.NodeAction
	// Menu is what can be done to the service here, and wherever it is.
	Menu []ui.MenuItem
	// Journal leads to what it writes there, "" while the node has no machine.
	Journal string
}

// ActionState is the state of an action that was done to a node.
func ActionState(a loom.NodeAction) ui.State {
	switch a.Status {
	case "complete":
		return ui.TaskState(loom.TaskComplete)
	case "failed":
		return ui.TaskState(loom.TaskFailed)
	}
	return ui.TaskState(loom.TaskRunning)
}
