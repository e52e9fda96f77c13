package planner

import (
	"slices"

	"loom/app/loom"
)

// NothingMade begins the message of a create that failed before it made
// anything; what the first failure said follows.
const NothingMade = "unable to create nodes, check provider settings"

// TaskEnd is how far a task came.
type TaskEnd struct {
	Status loom.TaskStatus
	// Codes are the status codes of its attempts that did not complete: of failed
	// ones the plugin's, of interrupted and aborted ones -1.
	Codes []int
}

// FinalInput is an operation that may have ended.
type FinalInput struct {
	Action loom.ClusterAction
	// Status of the operation now: running, failing or rolling_back. Any other
	// one that has not ended counts as running.
	Status loom.OperationStatus
	// Aborted says that someone aborted it.
	Aborted bool
	// Message of the operation so far: its first failure, or who aborted it.
	Message string
	// Tasks of the operation; while it rolls back, only those that undo.
	Tasks []TaskEnd
	// MachinesExist says that some node of the cluster has a machine, made by this
	// operation or by an earlier one.
	MachinesExist bool
	// Undo says that what is done has to be undone after a failure, and that this
	// has not been tried yet. There may be nothing to undo but the layout itself.
	Undo bool
}

// FinalState is how an operation ends. Operation may also be rolling_back: then
// tasks that undo have to be added, and the cluster stays pending.
type FinalState struct {
	Operation loom.OperationStatus
	Cluster   loom.ClusterStatus
	Message   string
}

// Final returns the state in which an operation ends;
// false says that it goes on: a task is running, or tasks wait and nothing has
// failed. In an operation that fails, tasks that wait count as dropped.
func Final(in FinalInput) (FinalState, bool) {
	count := map[loom.TaskStatus]int{}
	for _, t := range in.Tasks {
		count[t.Status]++
	}
	failed := in.Status == loom.OperationFailing || count[loom.TaskFailed]+count[loom.TaskDropped] > 0
	if in.Status != loom.OperationRollingBack {
		// An operation that was aborted and then undone was still undone.
		failed = failed || in.Aborted
	}
	if count[loom.TaskRunning] > 0 || !failed && count[loom.TaskBlocked]+count[loom.TaskReady] > 0 {
		return FinalState{}, false
	}
	switch {
	case in.Status == loom.OperationRollingBack && !failed:
		return FinalState{loom.OperationRolledBack, rolledBackStatus(in.Action), in.Message}, true
	case in.Status == loom.OperationRollingBack:
		return FinalState{loom.OperationFailed, in.Action.FailureStatus(), in.Message}, true
	case !failed && in.Action == loom.ClusterDelete:
		return FinalState{loom.OperationComplete, loom.ClusterTerminated, ""}, true
	case !failed:
		return FinalState{loom.OperationComplete, loom.ClusterActive, ""}, true
	}
	end := FinalState{loom.OperationFailed, in.Action.FailureStatus(), in.Message}
	if in.Aborted {
		end.Operation = loom.OperationAborted
	}
	switch {
	case in.Action == loom.ClusterCreate && nothingMade(in):
		end.Cluster = loom.ClusterTerminated
		if !in.Aborted && tried(in.Tasks) {
			end.Message = NothingMade
			if in.Message != "" {
				end.Message += ": " + in.Message
			}
		}
	case in.Undo && in.Action.Undoable():
		end.Operation, end.Cluster = loom.OperationRollingBack, loom.ClusterPending
	}
	return end, true
}

// nothingMade reports whether no task completed and every attempt said that it
// made nothing. Attempts cut short may have made a machine, so they count
// against it.
func nothingMade(in FinalInput) bool {
	if in.MachinesExist {
		return false
	}
	for _, t := range in.Tasks {
		if t.Status == loom.TaskComplete {
			return false
		}
		for _, code := range t.Codes {
			if code < 200 || code > 299 {
				return false
			}
		}
	}
	return true
}

// tried reports whether any attempt ended without success.
func tried(tasks []TaskEnd) bool {
	return slices.ContainsFunc(tasks, func(t TaskEnd) bool { return len(t.Codes) > 0 })
}

func rolledBackStatus(a loom.ClusterAction) loom.ClusterStatus {
	if a == loom.ClusterCreate {
		return loom.ClusterTerminated
	}
	return loom.ClusterActive
}
