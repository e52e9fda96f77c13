package clusterview

import (
	"time"

	"loom/app/loom"
	"loom/views/ui"
)

// HeadModel is the top of every page of a cluster.
type HeadModel struct {
	ID loom.ClusterID
	// Tab is the word of the present tab, empty for the overview.
	Tab   string
	Name  string
	State ui.State
	// Locked says that the cluster is protected.
	Locked bool
	// Delete leads to the confirmation; DeleteWhyNot says why not now.
	Delete       string
	DeleteWhyNot string
	// Actions is what else can be done, nothing for a cluster that is gone.
	Actions []ui.MenuItem
	// Extend prolongs the lease beside the note about its end.
	Extend ExtendModel
	Facts  []ui.Def
	// LeaseNote is a sentence about the end of the lease, empty without one.
	LeaseNote string
	Tabs      []ui.Tab
}

// ShowModel is the overview of a cluster.
type ShowModel struct {
	Head        HeadModel
	Operation   OperationPanel
	Leftovers   LeftoversModel
	Skipped     SkippedModel
	Connect     ConnectModel
	Description string
	Recent      OperationsModel
	// Revealed is shown once, for browsers without scripts.
	Revealed *RevealModel
}

// OperationPanel is the newest operation on the cluster's page.
type OperationPanel struct {
	ID loom.ClusterID
	// Topic is the one of the operation, empty before the first.
	Topic string
	// None says that there is nothing to show: the last operation went well.
	None     bool
	Title    string
	Href     string
	State    ui.State
	Progress ui.ProgressModel
	Running  []TaskLink
	Failure  *FailureModel
	// Actions are what can be done about it now.
	Actions []ui.ButtonModel
	// Note is one more sentence.
	Note string
}

// LeftoversModel are the machines that a delete left behind, for administrators.
type LeftoversModel struct {
	ID   loom.ClusterID
	Rows []LeftoverRow
	// Delete leads to the confirmation, where they can be given up.
	Delete string
	Now    time.Time
}

// LeftoverRow is one of them.
type LeftoverRow struct {
	Hostname, Provider, Machine, Error, Tries string
	First, Last                               time.Time
}

// TaskLink is a task in words.
type TaskLink struct {
	Text, Href string
	Since      string
}

// FailureModel is the first cause of a failed operation.
type FailureModel struct {
	Task, Href, Message string
	// Lines are the last of its log.
	Lines []ui.LogLine
}

// ConnectModel is how to reach the cluster.
type ConnectModel struct {
	ID    loom.ClusterID
	Links []LinkModel
	Nodes []ConnectNode
	// OwnKeys says that the viewer's own SSH keys are on the machines.
	OwnKeys   bool
	SSHConfig string
	// Gone says that there are no machines any more.
	Gone bool
}

// LinkModel is a link that a service publishes.
type LinkModel struct{ Label, URL string }

// ConnectNode is a machine to sign in to.
type ConnectNode struct {
	Hostname, Href string
	Services       string
	State          ui.State
	// Command is empty until the machine has an address.
	Command string
	// Reveal is where its own sign-in is shown, empty when there is none.
	Reveal string
}

// RevealModel is a machine's own sign-in, shown once.
type RevealModel struct {
	Hostname, User, Password, Key string
	// File is where the command expects the key.
	File, Command string
	// Again is where the text that replaces it comes from.
	Again string
}

// NodesModel is the tab of nodes.
type NodesModel struct {
	ID   loom.ClusterID
	Rows []NodeRow
}

// NodeRow is a machine in the tab of nodes.
type NodeRow struct {
	ID             string
	Hostname, Href string
	State          ui.State
	Addresses      []string
	Hardware       string
	Image          string
	Services       []ServiceOn
	Command        string
	// Leaving says that the node is on its way out.
	Leaving bool
	// Menu is what can be done to the node.
	Menu []ui.MenuItem
}

// ServiceOn is a service in its state on a node.
type ServiceOn struct {
	Name  string
	State ui.State
}

// ServicesModel is the tab of services.
type ServicesModel struct {
	ID   loom.ClusterID
	Rows []ServiceRow
}

// ServiceRow is a service with where it runs.
type ServiceRow struct {
	Name, Description string
	Nodes             []NodeOf
	// Menu is what can be done to the service.
	Menu []ui.MenuItem
}

// NodeOf is a node with the state of a service on it.
type NodeOf struct {
	Hostname, Href string
	State          ui.State
	// Last is its newest action: "start, 2 minutes ago".
	Last     string
	LastHref string
	Links    []LinkModel
}

// OperationsModel is a list of operations.
type OperationsModel struct {
	ID loom.ClusterID
	// Limit is how many rows are shown at most, 0 for all.
	Limit int
	Rows  []OperationRow
	Now   time.Time
}

// OperationRow is an operation in a list.
type OperationRow struct {
	Number, Action, Href, By string
	State                    ui.State
	Started                  time.Time
	Duration                 string
	Tasks                    string
	Message                  string
}

// ConfigModel is the tab of the config.
type ConfigModel struct {
	Text        string
	Differences []ui.ChangeModel
	Template    string
}

// DeleteModel is the confirmation of a deletion.
type DeleteModel struct {
	ID     loom.ClusterID
	Name   string
	Nodes  []string
	Errors ui.FormErrors
	// Leftovers are machines that can be given up, for administrators; Abandon says
	// that they are to be.
	Leftovers []string
	Abandon   bool
	// ConfirmError is about the typed name, Value what was typed.
	ConfirmError, Value string
	WhyNot              string
	Fields              []ui.FieldModel
	Services            string
}
