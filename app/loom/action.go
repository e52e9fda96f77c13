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
	// ActionReboot starts the machine of a node that is stopped and restarts one that
	// runs. The machine stays the same.
	ActionReboot TaskAction = "reboot"
)

// TaskActions lists every task action in "action order", the order used to
// break ties among ready tasks of a node and to number tasks.
var TaskActions = []TaskAction{
	ActionCreate, ActionReboot, ActionConfirm, ActionKeys, ActionBootstrap, ActionDrain, ActionStop, ActionRemove,
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
	case ActionCreate, ActionReboot, ActionConfirm, ActionKeys, ActionBootstrap, ActionDelete:
		return true
	}
	return false
}
