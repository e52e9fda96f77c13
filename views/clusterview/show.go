package clusterview

import (
	"strconv"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/ui"
)

// TroubleLine is something that is wrong, with the node on which it is and what most likely
// helps, where there is such a thing. Bad tells it from what is only noted.
type TroubleLine struct {
	Node, Href, Text string
	Bad              bool
	Fix              ui.ButtonModel
}

// HeadModel is the top of every page of a cluster.
type HeadModel struct {
	clusters.ClusterView
	// Tab is the word of the present tab, empty for the overview.
	Tab   string
	State ui.State
	// Trouble says what is wrong on nodes, one line each.
	Trouble []TroubleLine
	// Start starts the services, where all were stopped.
	Start ui.ButtonModel
	// Open leads to what its services serve, "" where nothing does. Scale is the other
	// button, without Href where scaling is not offered; OpenFirst says which is the primary one,
	// ScaleFirst the other.
	Open                  string
	Scale                 ui.ButtonModel
	OpenFirst, ScaleFirst bool
	// Newer says what an update would be for, nil for nothing.
	Newer *NewerNotice
	// RolloutHref is where the rollout is that will change the cluster, "" for who may not see it.
	RolloutHref string
	// Actions is what else can be done, nothing for a cluster that is gone.
	Actions []ui.MenuItem
	// Extend prolongs the lease beside the note about its end.
	Extend ExtendModel
	Facts  []ui.Def
	Tabs   []ui.Tab
	// Said keeps title and announcements up to date.
	Said SaidModel
}

// again is the kind of the button that makes a cluster like one that is gone: what was refused is
// requested again first.
func (m *HeadModel) again() ui.ButtonKind {
	if m.Latest != nil && m.Latest.Refused() {
		return ui.Secondary
	}
	return ui.Primary
}

// ShowModel is the overview of a cluster.
type ShowModel struct {
	Head      HeadModel
	Operation OperationPanel
	Connect   ConnectModel
	Sets      SetsModel
	// Revealed is shown once, for browsers without scripts.
	Revealed *RevealModel
}

// LastChange is the newest operation once it is complete; Retry numbers a retry: ", retry 2,".
type LastChange struct {
	loom.Operation
	Retry string
}

// OperationPanel is the newest operation on the cluster's page.
type OperationPanel struct {
	ID loom.ClusterID
	// Topic is the one of the operation, empty before the first.
	Topic string
	// Last is there once the operation is complete; nothing else is shown then.
	Last *LastChange
	// Wide says that it ended without success, and takes both columns.
	Wide     bool
	Title    string
	Href     string
	State    ui.State
	Progress ui.ProgressModel
	Running  TaskList
	Retrying RetryList
	Failure  *FailureModel
	// Actions are what can be done about it now, first what most likely helps; Menu has the rest.
	Actions []ui.ButtonModel
	Menu    []ui.MenuItem
	// Note is one more sentence.
	Note string
}

// FailureModel is the first cause of a failed operation.
type FailureModel struct {
	// Cause is the sentence that most likely says why, Message what the task says of itself,
	// empty where that is the same. Task is empty for a failure of no task.
	Cause               string
	Task, Href, Message string
	// Lines are the last of its log.
	Lines []ui.LogLine
}

// where says which task failed, and what it says of itself.
func (m *FailureModel) where() string {
	if m.Message == "" {
		return m.Task
	}
	return m.Task + ": " + m.Message
}

// ConnectModel is how to reach the cluster.
type ConnectModel struct {
	ID    loom.ClusterID
	Links []loom.Link
	// Nodes are the first of Count; AllNodes leads to all of them.
	Nodes    []NodeRow
	Count    int
	AllNodes string
	Key      KeyModel
	// Addresses chooses which address is named, without options where all have one;
	// OneAddress says that each has both, which are the same.
	Addresses  Choices
	OneAddress bool
	Copies     Copies
	// Live is where the part is fetched again.
	Live string
	// Gone says that there are no machines any more.
	Gone bool
}

// KeyModel is how the viewer gets into machines, and what to do about it.
type KeyModel struct {
	// Own, ByFile and ByPassword count the machines that the viewer's keys, the file and a
	// password of their own open; Closed those that nothing opens.
	Own, ByFile, ByPassword, Closed int
	// File is where commands expect the key of the cluster. Download gives it (POST), empty
	// where there is none.
	File, Download string
	// HasKeys says that the viewer's account has keys. Add puts them on the machines
	// (POST), empty where that would change nothing; AddWhyNot says why not now.
	HasKeys        bool
	Add, AddWhyNot string
	// Provider is its name, Jump the hosts on the way to the machines.
	Provider, Jump string
}

// RevealModel is a machine's own password, shown once.
type RevealModel struct {
	clusters.Revealed
	Hostname string
	// Again is where the text that replaces it comes from.
	Again string
}

// NodesModel is the tab of nodes: in Sets, or as Rows of one table.
type NodesModel struct {
	ID loom.ClusterID
	// Empty says why the cluster has no nodes, nil where it has some; Matched is how many pass the filters.
	Empty   *ui.EmptyModel
	Matched int
	// Live is where the part is fetched again.
	Live             string
	View             string
	Action, Clear    string
	Q                string
	Services, States []ui.Option
	// Filters says that filters are offered, Filtered that one is set.
	Filters, Filtered bool
	Key               KeyModel
	// Addresses chooses which address is named; Address is the one that is.
	Addresses Choices
	Address   string
	Copies    Copies
	Sets      []NodeSet
	Rows      []NodeRow
	Pages     ui.PaginationModel
}

// Copies lead to all nodes of a cluster as a text.
type Copies struct{ SSHConfig, Hosts, CSV string }

// NodeSet is the nodes that have the same services, or the first of them.
type NodeSet struct {
	Key      string
	Count    int
	Services []string
	States   []ui.State
	Open     bool
	Rows     []NodeRow
	// All leads to all of them.
	All string
}

// SetsModel shows the nodes by what is on them.
type SetsModel struct {
	ID   loom.ClusterID
	Sets []NodeSet
	// Boxes says that each node has a box, in Rows; else the boxes are those of the States.
	Boxes bool
}

// CopyModel is something to copy or to store as a file.
type CopyModel struct {
	Title, Name, Note, Text, Download, Back string
	// Addresses chooses which address is named.
	Addresses Choices
}

// NodeRow is a machine in a list.
type NodeRow struct {
	loom.Node
	Href  string
	Badge ui.State
	// At are its addresses.
	At []string
	// CPU is how much its machine had in use over the last day, in percent, NaN where that is
	// not known.
	CPU []float64
	// Command signs the viewer in; without one WhyNot says why. Reveal is where its own
	// password is shown, empty when there is none.
	Command, WhyNot, Reveal string
	// Links are those of its services.
	Links []loom.Link
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
	loom.Base
	// Count is on how many nodes it is, Nodes are the first of them; AllNodes leads to
	// all.
	Count    int
	Nodes    []NodeOf
	AllNodes string
	// States say in which states it is on how many nodes.
	States []ui.State
	// Last is its newest action on any node, without a start where there is none.
	Last  loom.NodeAction
	Links []loom.Link
	// Restart is the button of the row, without a label where nothing can be done; Menu is what
	// else can be.
	Restart ui.ButtonModel
	Menu    []ui.MenuItem
}

// NodeOf is a node on which a service is.
type NodeOf struct {
	Hostname, Href string
	// Journal leads to what the service writes there, "" while the node has no machine.
	Journal string
}

// OperationsModel is a list of operations.
type OperationsModel struct {
	ID loom.ClusterID
	// Live is where the list is fetched again.
	Live string
	Rows []OperationRow
	// Filters are those of the tab; Clear leads to the list without them.
	Filters *OperationFilters
	Clear   string
	Pages   ui.PaginationModel
}

// OperationFilters narrow the list of operations.
type OperationFilters struct {
	Action           string
	Actions, Results []ui.Option
	Filtered         bool
}

// OperationRow is an operation in a list; Retry numbers a retry: ", retry 2".
type OperationRow struct {
	loom.Operation
	Retry string
}

// tasks is how many tasks it has, and how many of them are done once it has ended: while it
// runs, that is shown where it is kept up to date.
func (o *OperationRow) tasks() string {
	p := o.Progress()
	text := strconv.Itoa(p.Total)
	if o.Status.Final() && p.Done < p.Total {
		text = strconv.Itoa(p.Done) + " of " + text
	}
	if failed := o.Tasks[loom.TaskFailed]; failed > 0 && o.Status.Final() {
		text += ", " + strconv.Itoa(failed) + " failed"
	}
	return text
}

// ConfigModel is the tab of the config.
type ConfigModel struct {
	Label, Text string
	Settings    []SettingRow
	// Macros chooses between the text as written and with macros filled in; Nodes are
	// those for which they can be.
	Macros Choices
	// Expanded says that they are filled in.
	Expanded bool
	Nodes    []ui.Option
	// Problems say which macros cannot be filled in yet, the first few.
	Problems []string
	More     int
	// Edit leads to the form for another config, empty while there is none.
	Edit        string
	Differences ConfigDiff
	Template    string
	// History is the configs there were, the newest first; Self is the page.
	Cluster loom.ClusterID
	History []loom.ConfigRevision
	Self    string
	// Revision is the one of the history that is shown.
	Revision *ConfigRevision
}

// ConfigDiff is what differs between two configs; More is how many lines are left out.
type ConfigDiff struct {
	Rows []ui.ChangeModel
	More int
}

// ConfigRevision is one of them with what it changed and what has changed since.
type ConfigRevision struct {
	Number int
	Text   string
	// Before is the number of the one before, 0 for the first.
	Before  int
	Changed ConfigDiff
	// IsOld says that another one is in use.
	IsOld bool
	Since ConfigDiff
	// Restore is the form that brings it back, empty where that cannot be now.
	Restore string
}

// DeleteModel is the confirmation of a deletion.
type DeleteModel struct {
	// AbortFirst says that the operation that runs is aborted before.
	AbortFirst bool
	ID         loom.ClusterID
	Name       string
	// Nodes counts those that go.
	Nodes  int
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

// HealthModel is the tab of what went wrong, and of maintenance.
type HealthModel struct {
	ID        loom.ClusterID
	Incidents IncidentsModel
	// Maintenance describes the maintenance under way, one sentence each.
	Maintenance []string
	Form        MaintenanceForm
	// Policy says what Loom may repair by itself; nil for those who may not change it.
	Policy *RepairPolicyForm
}

// RepairPolicyForm changes what Loom may repair by itself, one field for each kind of trouble.
type RepairPolicyForm struct {
	Fields []ui.FieldModel
	Errors ui.FormErrors
}

// RepairAsk is what becomes of an incident: a question, with the label of what accepting does,
// or what was decided.
type RepairAsk struct {
	Cluster  loom.ClusterID
	Incident int64
	// Label is empty where nobody is asked; Kind makes the first one the primary button.
	Label string
	Kind  ui.ButtonKind
	Text  string
	// Operation leads to the repair, "" for none.
	Operation string
}

// MaintenanceForm announces maintenance, offered to those who may.
type MaintenanceForm struct {
	Offered       bool
	Until, Reason string
	Errors        ui.FormErrors
}

// IncidentsModel is a page of what went wrong in a cluster.
type IncidentsModel struct {
	ID loom.ClusterID
	// Live is where the list is fetched again.
	Live string
	// None says that there are no incidents, and what is checked.
	None  string
	Rows  []IncidentRow
	Pages ui.PaginationModel
	// Drift is what is not as Loom left it now.
	Drift []DriftRow
}

// IncidentRow is something that went wrong: Text names it, Said is what a check said. Repair leads to
// the form that repairs it, "" where there is none.
type IncidentRow struct {
	loom.Incident
	Text, Said           string
	Repair, RepairWhyNot string
	Ask                  RepairAsk
}

// rolloutWill says what a rollout does to the cluster, after its name.
func rolloutWill(r clusters.ClusterRollout) string {
	switch {
	case r.Status == loom.RolloutRuns:
		return "is changing this cluster."
	case r.Stopped:
		return "will change this cluster in wave " + strconv.Itoa(r.Wave) + ", once it is resumed."
	}
	return "will change this cluster in wave " + strconv.Itoa(r.Wave) + "."
}

// NewerNotice says that a newer template is available, or that a version that the cluster is made
// of is deprecated.
type NewerNotice struct {
	Text       string
	Deprecated bool
	Update     ui.ButtonModel
}

func (n NewerNotice) tone() ui.Tone {
	if n.Deprecated {
		return ui.ToneWarn
	}
	return ui.ToneRun
}

func (n NewerNotice) icon() string {
	if n.Deprecated {
		return "alert"
	}
	return "arrow-up"
}
