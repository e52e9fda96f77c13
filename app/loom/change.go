package loom

import (
	"cmp"
	"slices"
)

// ChangeKind is the word of a kind of change of a cluster, as requests, previews and
// menus have it.
type ChangeKind string

// The kinds of change.
const (
	ChangeCreate         ChangeKind = "create"
	ChangeConfigure      ChangeKind = "configure"
	ChangeAddServices    ChangeKind = "add_services"
	ChangeRemoveServices ChangeKind = "remove_services"
	ChangeStart          ChangeKind = "start"
	ChangeStop           ChangeKind = "stop"
	ChangeRestart        ChangeKind = "restart"
	ChangeExpand         ChangeKind = "expand"
	ChangeShrink         ChangeKind = "shrink"
	ChangeUpgrade        ChangeKind = "upgrade"
	ChangeUpdate         ChangeKind = "update"
	ChangeResize         ChangeKind = "resize"
	ChangeRepair         ChangeKind = "repair"
	ChangeRollback       ChangeKind = "rollback"
	ChangeRetry          ChangeKind = "retry"
	ChangeAuthorize      ChangeKind = "authorize"
	ChangeSync           ChangeKind = "sync"
	ChangeDelete         ChangeKind = "delete"

	// What needs no plan, and has no preview.
	ChangeLease  ChangeKind = "lease"
	ChangeEdit   ChangeKind = "edit" // protection, labels, description, owner
	ChangeAbort  ChangeKind = "abort"
	ChangePause  ChangeKind = "pause"
	ChangeResume ChangeKind = "resume"
)

// ClusterAction is what an operation does. Its text is the wire's lower-case form.
type ClusterAction string

// The cluster actions.
const (
	ClusterCreate               ClusterAction = "cluster_create"
	ClusterDelete               ClusterAction = "cluster_delete"
	ClusterConfigure            ClusterAction = "cluster_configure"
	ClusterConfigureWithRestart ClusterAction = "cluster_configure_with_restart"
	StartServices               ClusterAction = "start_services"
	StopServices                ClusterAction = "stop_services"
	RestartServices             ClusterAction = "restart_services"
	AddServices                 ClusterAction = "add_services"
	RemoveServices              ClusterAction = "remove_services"
	ClusterExpand               ClusterAction = "cluster_expand"
	ClusterShrink               ClusterAction = "cluster_shrink"
	ClusterUpgrade              ClusterAction = "cluster_upgrade"
	ClusterUpdate               ClusterAction = "cluster_update"
	ClusterResize               ClusterAction = "cluster_resize"
	ClusterRepair               ClusterAction = "cluster_repair"
	RepairRestart               ClusterAction = "repair_restart"
	RepairConfigure             ClusterAction = "repair_configure"
	RepairReboot                ClusterAction = "repair_reboot"
	Rollback                    ClusterAction = "rollback"
	ClusterAuthorize            ClusterAction = "cluster_authorize"
)

// ClusterActions lists every cluster action, in the order in which filters offer them.
var ClusterActions = []ClusterAction{
	ClusterCreate, ClusterDelete, ClusterConfigure, ClusterConfigureWithRestart, StartServices, StopServices, RestartServices, AddServices,
	RemoveServices, ClusterExpand, ClusterShrink, ClusterUpgrade, ClusterUpdate, ClusterResize, ClusterRepair, RepairRestart, RepairConfigure, RepairReboot,
	Rollback, ClusterAuthorize,
}

// RepairHow is the way in which nodes are repaired. "" counts as RepairByReplacement.
type RepairHow string

// The ways to repair a node. Only RepairByReplacement deletes machines.
const (
	RepairByReplacement RepairHow = "replace"   // another machine takes its place
	RepairByRestart     RepairHow = "restart"   // its services are restarted
	RepairByConfigure   RepairHow = "configure" // its services are configured, which puts back files, and restarted
	RepairByReboot      RepairHow = "reboot"    // its machine is rebooted, and its services are started
)

// RepairHows lists the ways to repair a node, the least invasive first.
var RepairHows = []RepairHow{RepairByRestart, RepairByConfigure, RepairByReboot, RepairByReplacement}

// Action is what an operation that repairs in this way does, "" for an unknown way.
func (h RepairHow) Action() ClusterAction {
	return firstChange(func(c *Change) bool { return c.Kind == ChangeRepair && c.How == cmp.Or(h, RepairByReplacement) }).Action
}

// Replaces reports whether the machines of the nodes are replaced.
func (h RepairHow) Replaces() bool { return h == "" || h == RepairByReplacement }

// Change describes a kind of change of a cluster, or an action that operations of a
// kind have besides its first one.
type Change struct {
	Kind ChangeKind
	// Action is that of its operation; "" where there is none, and for a retry, which
	// has that of the operation it continues.
	Action ClusterAction
	// How is the way in which its operation repairs, "" for other kinds.
	How RepairHow
	// Verb is the action as a person would say it: "add services". Doing and Done begin what
	// is said while it runs and when it is complete: "Adding services", "Added services".
	Verb, Doing, Done string
	// Title begins the heading of its form and the button that begins it, before the name of
	// the cluster.
	Title string
	// Previewed reports whether there are previews of it.
	Previewed bool
	// Heavy reports whether it may delete machines whatever its plan is, so that the name of
	// the cluster is typed first.
	Heavy bool
	// Allowed are the statuses of a cluster in which it may begin.
	Allowed []ClusterStatus
	// Protected is the sentence why a protected cluster refuses it, "" where it does not.
	Protected string
	// WayOut says how it leads out of a failure: "repair it".
	WayOut string
	// Steps are the task actions in their order per service and node, nil where the plan
	// is made from a difference.
	Steps []TaskAction
	// Failed is the status of a cluster whose operation failed, "" for inconsistent.
	Failed ClusterStatus
	// NotUndone is the sentence why an operation that failed is not undone by itself, ""
	// where there is a layout before it, which served, to go back to.
	NotUndone string
}

var (
	whenActive = []ClusterStatus{ClusterActive}
	whenIdle   = []ClusterStatus{ClusterActive, ClusterIncomplete, ClusterInconsistent}
	whenFailed = []ClusterStatus{ClusterIncomplete, ClusterInconsistent}
	whenAny    = []ClusterStatus{ClusterPending, ClusterActive, ClusterIncomplete, ClusterInconsistent}
	whenBusy   = []ClusterStatus{ClusterPending}
)

const (
	losesMachines  = "The cluster is protected. Unprotect it first."
	losesDisks     = "The cluster is protected, and other hardware means new machines with empty disks. Unprotect it first."
	configNotGone  = "A config that failed is looked into and set right: configure again, or roll back to the config before."
	repairNotGone  = "A repair of machines that stay changes no layout, so there is none to go back to: retry it, or repair again."
	runtimeNotGone = "Starting and stopping changes no layout, so there is none to go back to: start or stop the services again."
)

// Changes describes every kind of change and every cluster action, in the order in
// which menus show them. The first row of a kind is its own.
var Changes = []Change{
	{Kind: ChangeCreate, Action: ClusterCreate, Verb: "create", Doing: "Creating", Done: "Created", Previewed: true, Failed: ClusterIncomplete,
		Steps: []TaskAction{ActionCreate, ActionConfirm, ActionBootstrap, ActionInstall, ActionConfigure, ActionInitialize, ActionStart}},
	{Kind: ChangeConfigure, Action: ClusterConfigure, Verb: "change config", Doing: "Changing config", Done: "Changed config", Title: "Change config of", Previewed: true, Allowed: whenIdle,
		WayOut: "configure it again", NotUndone: configNotGone, Steps: []TaskAction{ActionBootstrap, ActionConfigure}},
	{Kind: ChangeConfigure, Action: ClusterConfigureWithRestart, Verb: "change config and restart", Doing: "Changing config", Done: "Changed config", Previewed: true, Allowed: whenIdle,
		NotUndone: configNotGone, Steps: []TaskAction{ActionBootstrap, ActionStop, ActionConfigure, ActionStart}},
	{Kind: ChangeAddServices, Action: AddServices, Verb: "add services", Doing: "Adding services", Done: "Added services", Title: "Add services to", Previewed: true, Allowed: whenActive,
		Steps: []TaskAction{ActionBootstrap, ActionInstall, ActionConfigure, ActionInitialize, ActionStart}},
	{Kind: ChangeRemoveServices, Action: RemoveServices, Verb: "remove services", Doing: "Removing services", Done: "Removed services", Title: "Remove services from", Previewed: true, Allowed: whenIdle},
	{Kind: ChangeStart, Action: StartServices, Verb: "start services", Doing: "Starting services", Done: "Started services", Title: "Start services of", Previewed: true, Allowed: whenActive,
		NotUndone: runtimeNotGone, Steps: []TaskAction{ActionStart}},
	{Kind: ChangeStop, Action: StopServices, Verb: "stop services", Doing: "Stopping services", Done: "Stopped services", Title: "Stop services of", Previewed: true, Allowed: whenActive,
		NotUndone: runtimeNotGone, Steps: []TaskAction{ActionStop}},
	{Kind: ChangeRestart, Action: RestartServices, Verb: "restart services", Doing: "Restarting services", Done: "Restarted services", Title: "Restart services of", Previewed: true, Allowed: whenActive,
		NotUndone: runtimeNotGone, Steps: []TaskAction{ActionStop, ActionStart}},
	{Kind: ChangeExpand, Action: ClusterExpand, Verb: "scale up", Doing: "Scaling up", Done: "Scaled up", Title: "Scale", Previewed: true, Allowed: whenActive},
	{Kind: ChangeShrink, Action: ClusterShrink, Verb: "scale down", Doing: "Scaling down", Done: "Scaled down", Title: "Scale", Previewed: true, Heavy: true,
		Allowed: whenActive, Protected: losesMachines},
	{Kind: ChangeUpgrade, Action: ClusterUpgrade, Verb: "update services", Doing: "Updating services", Done: "Updated services", Title: "Update services of", Previewed: true, Allowed: whenActive},
	{Kind: ChangeUpdate, Action: ClusterUpdate, Verb: "update", Doing: "Updating", Done: "Updated", Title: "Update", Previewed: true, Allowed: whenActive},
	{Kind: ChangeResize, Action: ClusterResize, Verb: "change hardware", Doing: "Changing hardware", Done: "Changed hardware", Title: "Change hardware of", Previewed: true, Heavy: true,
		Allowed: whenActive, Protected: losesDisks},
	{Kind: ChangeRepair, Action: ClusterRepair, How: RepairByReplacement, Verb: "replace nodes", Doing: "Replacing nodes", Done: "Replaced nodes", Title: "Repair", Previewed: true, Allowed: whenIdle, WayOut: "repair it",
		NotUndone: "A repair can't be rolled back. Retry it, or repair again."},
	{Kind: ChangeRepair, Action: RepairRestart, How: RepairByRestart, Verb: "restart services on nodes", Doing: "Restarting services", Done: "Restarted services", Previewed: true, Allowed: whenIdle, NotUndone: repairNotGone},
	{Kind: ChangeRepair, Action: RepairConfigure, How: RepairByConfigure, Verb: "restore files", Doing: "Restoring files", Done: "Restored files", Previewed: true, Allowed: whenIdle, NotUndone: repairNotGone},
	{Kind: ChangeRepair, Action: RepairReboot, How: RepairByReboot, Verb: "reboot nodes", Doing: "Rebooting nodes", Done: "Rebooted nodes", Previewed: true, Allowed: whenIdle, NotUndone: repairNotGone},
	{Kind: ChangeRollback, Action: Rollback, Verb: "roll back", Doing: "Rolling back", Done: "Rolled back", Title: "Roll back", Previewed: true, Heavy: true, Allowed: whenIdle, WayOut: "roll back",
		NotUndone: "A rollback goes back already: retry it, or roll back further."},
	{Kind: ChangeRetry, Title: "Retry", Previewed: true, Allowed: whenFailed, WayOut: "retry what failed"},
	{Kind: ChangeAuthorize, Action: ClusterAuthorize, Verb: "add keys", Doing: "Adding keys", Done: "Added keys", Title: "Add my keys to", Previewed: true, Allowed: whenActive,
		Failed: ClusterActive, // it touches neither the layout nor a service
		Steps:  []TaskAction{ActionKeys}, NotUndone: "Keys that were added change no layout, so there is none to go back to: remove a key from its account, and add keys again."},
	{Kind: ChangeSync, Title: "Update template of", Previewed: true, Allowed: whenActive,
		NotUndone: "This changes nothing on machines, so there is nothing to take back."},
	{Kind: ChangeDelete, Action: ClusterDelete, Verb: "delete", Doing: "Deleting", Done: "Deleted", Previewed: true, Heavy: true, Allowed: whenIdle, Protected: losesMachines, WayOut: "delete it",
		Failed: ClusterIncomplete, Steps: []TaskAction{ActionDelete}, NotUndone: "What a delete took is gone: delete the cluster again, or repair what is left."},
	{Kind: ChangeLease, Allowed: whenIdle},
	{Kind: ChangeEdit, Allowed: whenAny},
	{Kind: ChangeAbort, Allowed: whenBusy},
	{Kind: ChangePause, Allowed: whenBusy},
	{Kind: ChangeResume, Allowed: whenBusy},
}

// PreviewKinds lists the kinds that there are previews of, ClusterChanges those of a
// cluster that exists, in the order of Changes.
var (
	PreviewKinds   = kindsThat(func(c *Change) bool { return c.Previewed })
	ClusterChanges = kindsThat(func(c *Change) bool { return c.Kind != ChangeCreate })
)

func kindsThat(is func(c *Change) bool) []ChangeKind {
	var kinds []ChangeKind
	for i := range Changes {
		if c := &Changes[i]; is(c) && !slices.Contains(kinds, c.Kind) {
			kinds = append(kinds, c.Kind)
		}
	}
	return kinds
}

// Change describes the kind; the zero Change, without a kind, where there is none of the word.
func (k ChangeKind) Change() Change {
	return firstChange(func(c *Change) bool { return c.Kind == k })
}

// change describes the action, the zero Change for an unknown one.
func (a ClusterAction) change() Change {
	return firstChange(func(c *Change) bool { return a != "" && c.Action == a })
}

func firstChange(is func(c *Change) bool) Change {
	for i := range Changes {
		if is(&Changes[i]) {
			return Changes[i]
		}
	}
	return Change{}
}

// Steps returns the task actions of a cluster action in their order per service and
// node; nil for actions whose plan is made from a difference.
func (a ClusterAction) Steps() []TaskAction { return a.change().Steps }

// Verb is the action as a person would say it: "create", "add services".
func (a ClusterAction) Verb() string { return cmp.Or(a.change().Verb, string(a)) }

// Doing is what is said while the action runs: "Adding services".
func (a ClusterAction) Doing() string { return cmp.Or(a.change().Doing, string(a)) }

// Done is what is said when the action is complete: "Added services".
func (a ClusterAction) Done() string { return cmp.Or(a.change().Done, string(a)) }

// FailureStatus is the status of a cluster whose operation failed.
func (a ClusterAction) FailureStatus() ClusterStatus {
	if c := a.change(); c.Failed != "" {
		return c.Failed
	}
	return ClusterInconsistent
}

// Undoable reports whether the policy “undo” means something for a failed operation:
// whether there is a layout before it that a rollback leads to, and that served.
func (a ClusterAction) Undoable() bool { return a.WhyNotUndone() == "" }

// WhyNotUndone returns the sentence why an operation that failed is not undone by
// itself, or "" for those that are.
func (a ClusterAction) WhyNotUndone() string {
	c := a.change()
	if c.Kind == "" {
		return "Operations of this kind are not undone."
	}
	return c.NotUndone
}
