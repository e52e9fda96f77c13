package loom

// TaskAction is what one task does. Its text is the wire's lower-case form.
type TaskAction string

// The task actions. The first four and the last belong to nodes, the others to services.
const (
	ActionCreate     TaskAction = "create"
	ActionConfirm    TaskAction = "confirm"
	ActionBootstrap  TaskAction = "bootstrap"
	ActionDelete     TaskAction = "delete"
	ActionInstall    TaskAction = "install"
	ActionRemove     TaskAction = "remove"
	ActionConfigure  TaskAction = "configure"
	ActionInitialize TaskAction = "initialize"
	ActionStart      TaskAction = "start"
	ActionStop       TaskAction = "stop"
	ActionDrain      TaskAction = "drain"
	// ActionKeys puts public keys on the machine of a node. It is no CONFIRM: it proves
	// nothing about the machine, and never leads to another one.
	ActionKeys TaskAction = "keys"
)

// TaskActions lists every task action in "action order", the order used to
// break ties among ready tasks of a node and to number tasks.
var TaskActions = []TaskAction{
	ActionCreate, ActionConfirm, ActionKeys, ActionBootstrap, ActionDrain, ActionStop, ActionRemove,
	ActionInstall, ActionConfigure, ActionInitialize, ActionStart, ActionDelete,
}

// Order is the position of the action in TaskActions, or -1.
func (a TaskAction) Order() int {
	for i, b := range TaskActions {
		if a == b {
			return i
		}
	}
	return -1
}

// Valid reports whether the action is one of the closed set.
func (a TaskAction) Valid() bool { return a.Order() >= 0 }

// OfNode reports whether the action belongs to the node rather than a service.
func (a TaskAction) OfNode() bool {
	switch a {
	case ActionCreate, ActionConfirm, ActionKeys, ActionBootstrap, ActionDelete:
		return true
	}
	return false
}

// ClusterAction is what an operation does. Its text is the wire's lower-case form.
type ClusterAction string

// The cluster actions (planner.md 2, changes.md 1).
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
	ClusterResize               ClusterAction = "cluster_resize"
	ClusterRepair               ClusterAction = "cluster_repair"
	Rollback                    ClusterAction = "rollback"
	ClusterAuthorize            ClusterAction = "cluster_authorize"
)

// ClusterActions lists every cluster action.
var ClusterActions = []ClusterAction{
	ClusterCreate, ClusterDelete, ClusterConfigure, ClusterConfigureWithRestart, StartServices, StopServices, RestartServices, AddServices,
	RemoveServices, ClusterExpand, ClusterShrink, ClusterUpgrade, ClusterResize, ClusterRepair, Rollback, ClusterAuthorize,
}

// Steps gives the task actions of a cluster action in their order per service
// and node; nil for actions whose plan is made from a difference (changes.md).
func (a ClusterAction) Steps() []TaskAction {
	switch a {
	case ClusterCreate:
		return []TaskAction{ActionCreate, ActionConfirm, ActionBootstrap, ActionInstall, ActionConfigure, ActionInitialize, ActionStart}
	case ClusterDelete:
		return []TaskAction{ActionDelete}
	case ClusterConfigure:
		return []TaskAction{ActionBootstrap, ActionConfigure}
	case ClusterConfigureWithRestart:
		return []TaskAction{ActionBootstrap, ActionStop, ActionConfigure, ActionStart}
	case StartServices:
		return []TaskAction{ActionStart}
	case StopServices:
		return []TaskAction{ActionStop}
	case RestartServices:
		return []TaskAction{ActionStop, ActionStart}
	case ClusterAuthorize:
		return []TaskAction{ActionKeys}
	case AddServices:
		return []TaskAction{ActionBootstrap, ActionInstall, ActionConfigure, ActionInitialize, ActionStart}
	}
	return nil
}

// Verb is the action as a person would say it: "create", "add services".
func (a ClusterAction) Verb() string {
	switch a {
	case ClusterCreate:
		return "create"
	case ClusterDelete:
		return "delete"
	case ClusterConfigure:
		return "configure"
	case ClusterConfigureWithRestart:
		return "configure and restart"
	case StartServices:
		return "start services"
	case StopServices:
		return "stop services"
	case RestartServices:
		return "restart services"
	case AddServices:
		return "add services"
	case RemoveServices:
		return "remove services"
	case ClusterExpand:
		return "expand"
	case ClusterShrink:
		return "shrink"
	case ClusterUpgrade:
		return "upgrade"
	case ClusterResize:
		return "change hardware"
	case ClusterRepair:
		return "repair"
	case Rollback:
		return "roll back"
	case ClusterAuthorize:
		return "add keys"
	}
	return string(a)
}

// FailureStatus is the status of a cluster whose operation failed (planner.md 2).
func (a ClusterAction) FailureStatus() ClusterStatus {
	switch a {
	case ClusterCreate, ClusterDelete:
		return ClusterIncomplete
	case ClusterAuthorize: // which touches neither the layout nor a service
		return ClusterActive
	}
	return ClusterInconsistent
}
