package loom

import "slices"

// ClusterStatus is the status of a cluster.
type ClusterStatus string

// The cluster statuses.
const (
	ClusterPending      ClusterStatus = "pending"
	ClusterActive       ClusterStatus = "active"
	ClusterIncomplete   ClusterStatus = "incomplete"
	ClusterInconsistent ClusterStatus = "inconsistent"
	ClusterTerminated   ClusterStatus = "terminated"
)

// ClusterStatuses lists every cluster status.
var ClusterStatuses = []ClusterStatus{ClusterPending, ClusterActive, ClusterIncomplete, ClusterInconsistent, ClusterTerminated}

var clusterTransitions = map[ClusterStatus][]ClusterStatus{
	ClusterPending:      {ClusterActive, ClusterIncomplete, ClusterInconsistent, ClusterTerminated},
	ClusterActive:       {ClusterPending},
	ClusterIncomplete:   {ClusterPending, ClusterTerminated},
	ClusterInconsistent: {ClusterPending},
	ClusterTerminated:   {},
}

// MayBecome reports whether the transition is allowed.
func (s ClusterStatus) MayBecome(next ClusterStatus) bool {
	return slices.Contains(clusterTransitions[s], next)
}

// OperationStatus is the status of an operation.
type OperationStatus string

// The operation statuses.
const (
	OperationNotSubmitted OperationStatus = "not_submitted"
	OperationRunning      OperationStatus = "running"
	OperationPaused       OperationStatus = "paused"
	OperationFailing      OperationStatus = "failing"
	OperationRollingBack  OperationStatus = "rolling_back"
	OperationComplete     OperationStatus = "complete"
	OperationFailed       OperationStatus = "failed"
	OperationAborted      OperationStatus = "aborted"
	OperationRolledBack   OperationStatus = "rolled_back"
)

// OperationStatuses lists every operation status.
var OperationStatuses = []OperationStatus{
	OperationNotSubmitted, OperationRunning, OperationPaused, OperationFailing, OperationRollingBack,
	OperationComplete, OperationFailed, OperationAborted, OperationRolledBack,
}

// Final reports whether the operation has ended.
func (s OperationStatus) Final() bool {
	switch s {
	case OperationNotSubmitted, OperationRunning, OperationPaused, OperationFailing, OperationRollingBack:
		return false
	}
	return true
}

// Wire is the word the /v2 wire format uses (actionstatus).
func (s OperationStatus) Wire() string {
	switch s {
	case OperationNotSubmitted, OperationPaused, OperationComplete:
		return string(s)
	case OperationRunning, OperationRollingBack:
		return "running"
	}
	return "failed"
}

// TaskStatus is the status of a task. A retry takes a running
// task back to ready.
type TaskStatus string

// The task statuses.
const (
	TaskBlocked  TaskStatus = "blocked"
	TaskReady    TaskStatus = "ready"
	TaskRunning  TaskStatus = "running"
	TaskComplete TaskStatus = "complete"
	TaskSkipped  TaskStatus = "skipped"
	TaskFailed   TaskStatus = "failed"
	TaskDropped  TaskStatus = "dropped"
)

// TaskStatuses lists every task status.
var TaskStatuses = []TaskStatus{TaskBlocked, TaskReady, TaskRunning, TaskComplete, TaskSkipped, TaskFailed, TaskDropped}

// Final reports whether the task has ended.
func (s TaskStatus) Final() bool {
	switch s {
	case TaskBlocked, TaskReady, TaskRunning:
		return false
	}
	return true
}

// AttemptStatus is the outcome of one try of a task.
type AttemptStatus string

// The attempt statuses. An interrupted attempt was not the task's fault and
// does not count as a try.
const (
	AttemptRunning     AttemptStatus = "running"
	AttemptComplete    AttemptStatus = "complete"
	AttemptFailed      AttemptStatus = "failed"
	AttemptInterrupted AttemptStatus = "interrupted"
	AttemptAborted     AttemptStatus = "aborted"
	// AttemptWaited is what the planner sees of an interrupted attempt with StatusWaits;
	// it is stored nowhere.
	AttemptWaited AttemptStatus = "waited"
)

// NodeState is what a person should know of a node.
type NodeState string

// The node states.
const (
	NodePlanned  NodeState = "planned"
	NodeCreating NodeState = "creating"
	NodeReady    NodeState = "ready"
	NodeFailed   NodeState = "failed"
	NodeDeleting NodeState = "deleting"
	NodeDeleted  NodeState = "deleted"
)

// ServiceState is the state of a service on a node; the latest task decides.
type ServiceState string

// The states of a service on a node.
const (
	ServiceAbsent    ServiceState = "absent"
	ServiceInstalled ServiceState = "installed"
	ServiceStarted   ServiceState = "started"
	ServiceStopped   ServiceState = "stopped"
	ServiceFailed    ServiceState = "failed"
)

// ResourceStatus of a plugin resource version, from its two flags.
type ResourceStatus string

// The resource statuses.
const (
	ResourceInactive ResourceStatus = "inactive"
	ResourceStaged   ResourceStatus = "staged"
	ResourceActive   ResourceStatus = "active"
	ResourceRecalled ResourceStatus = "recalled"
)
