package planner

import "loom/app/loom"

// FinishesBatch reports whether an operation with a task that failed for good still
// carries out what does not wait for that task before it fails itself. So it is where
// batch follows batch (changes.md 4): the nodes that are in a batch with the failed one
// are taken down already, and serve again once their tasks are done. The next batch
// waits for all of this one, so it is never begun. Told says that the task only tells a
// following service of the change: its batches are halves.
func FinishesBatch(action loom.ClusterAction, told bool) bool {
	switch action {
	case loom.ClusterUpgrade, loom.ClusterResize:
		return true
	case loom.ClusterAuthorize: // one machine that does not answer keeps nobody off the others
		return true
	case loom.AddServices, loom.RemoveServices, loom.ClusterExpand, loom.ClusterShrink, loom.ClusterRepair, loom.Rollback:
		return told
	case loom.ClusterCreate, loom.ClusterDelete, loom.ClusterConfigure, loom.ClusterConfigureWithRestart,
		loom.StartServices, loom.StopServices, loom.RestartServices:
	}
	return false
}
