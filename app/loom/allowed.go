package loom

import (
	"fmt"
	"slices"
)

// WhyNot gives the sentence why verb cannot begin now, or "" when it can.
// Latest is the cluster's latest operation, nil before the first.
func (c *Cluster) WhyNot(verb ChangeKind, latest *Operation) string {
	change := verb.Change()
	if change.Allowed == nil {
		return fmt.Sprintf("There is no action “%s”.", verb)
	}
	if !slices.Contains(change.Allowed, c.Status) {
		return c.wrongStatus(verb, latest)
	}
	if why := c.whyProtected(verb, latest); why != "" {
		return why
	}
	begins := slices.Contains(change.Allowed, ClusterActive) || verb == ChangeRetry
	if c.DeleteWanted != "" && begins && verb != ChangeDelete && verb != ChangeEdit && verb != ChangeLease {
		return fmt.Sprintf("%s wants the cluster deleted; that begins at any moment.", c.DeleteWanted)
	}
	if latest == nil {
		return ""
	}
	switch {
	case verb == ChangeRetry:
		return latest.whyNotRetried()
	case c.Status != ClusterActive && verb == ChangeRemoveServices, c.Status == ClusterIncomplete && verb == ChangeConfigure:
		if latest.Action == ClusterDelete {
			return fmt.Sprintf("Operation %d began to delete the cluster; go on with the delete.", latest.Ref.Number)
		}
		return latest.whyNotRetried()
	case verb == ChangeRollback && latest.Action == ClusterDelete && latest.Status != OperationComplete && !latest.Started.IsZero():
		return fmt.Sprintf("Operation %d began to delete the cluster; go on with the delete.", latest.Ref.Number)
	case verb == ChangePause && latest.Status == OperationPaused:
		return fmt.Sprintf("Operation %d is paused already.", latest.Ref.Number)
	case verb == ChangePause && latest.Status != OperationRunning:
		return fmt.Sprintf("Operation %d is no longer running.", latest.Ref.Number)
	case verb == ChangeResume && latest.Status != OperationPaused:
		return fmt.Sprintf("Operation %d is not paused.", latest.Ref.Number)
	case verb == ChangeAbort && (latest.Status == OperationFailing || latest.Status.Final()):
		return fmt.Sprintf("Operation %d is ending already.", latest.Ref.Number)
	}
	return ""
}

// WhyNotDeletedIdle returns the sentence why the cluster could not be deleted without an
// operation under way either, or "" when it could.
func (c *Cluster) WhyNotDeletedIdle() string {
	idle := *c
	idle.Status = ClusterActive
	return idle.WhyNot(ChangeDelete, nil)
}

// DeleteAborts reports whether the latest operation has to be aborted before the cluster
// can be deleted: one that has not ended and leads anywhere but to a delete.
func (c *Cluster) DeleteAborts(latest *Operation) bool {
	return c.Status == ClusterPending && c.DeleteWanted == "" && latest != nil && !latest.Status.Final() && latest.Action != ClusterDelete
}

// WhyNot returns the sentence why verb cannot begin now, or "" when it can, as far as the
// summary tells: see Cluster.WhyNot.
func (s *ClusterSummary) WhyNot(verb ChangeKind) string {
	return (&Cluster{Status: s.Status, Protected: s.Protected}).WhyNot(verb, nil)
}

// WhyNotSkipped returns the sentence why a task of the operation cannot be left out now,
// or "" when it can: only what is next may be, and while the operation is paused.
func (o *Operation) WhyNotSkipped(t *Task) string {
	switch {
	case o.Status != OperationPaused:
		return fmt.Sprintf("Operation %d is not paused. Pause it first, then skip task %d.", o.Ref.Number, t.Ref.Number)
	case t.Status == TaskBlocked:
		return fmt.Sprintf("Task %d still waits for others; only what is next can be left out.", t.Ref.Number)
	case t.Status == TaskRunning:
		return fmt.Sprintf("Task %d is running; it can be left out when this attempt ends without success.", t.Ref.Number)
	case t.Status != TaskReady:
		return fmt.Sprintf("Task %d is %s already.", t.Ref.Number, t.Status)
	}
	return ""
}

// whyProtected says why protection keeps the change from beginning:
// it deletes machines that nobody has called broken.
func (c *Cluster) whyProtected(verb ChangeKind, latest *Operation) string {
	switch {
	case !c.Protected:
		return ""
	case verb == ChangeRetry && latest != nil:
		return latest.Action.change().Protected
	}
	return verb.Change().Protected
}

// whyNotRetried says why what is left of the operation cannot be gone on with.
func (o *Operation) whyNotRetried() string {
	switch {
	case o.Status == OperationRolledBack:
		return fmt.Sprintf("Operation %d was undone; request it again.", o.Ref.Number)
	case o.Started.IsZero():
		return fmt.Sprintf("Operation %d never began; ask for it again.", o.Ref.Number)
	case o.Undone:
		return fmt.Sprintf("The undo of operation %d did not finish; roll that operation back to go on with it.", o.Ref.Number)
	}
	return ""
}

func (c *Cluster) wrongStatus(verb ChangeKind, latest *Operation) string {
	switch c.Status {
	case ClusterPending:
		if latest == nil {
			return "An operation of the cluster is under way."
		}
		state := "is running"
		switch latest.Status {
		case OperationPaused:
			state = "is paused"
		case OperationFailing:
			state = "failed and is ending"
		case OperationRollingBack:
			state = "is rolling back"
		case OperationNotSubmitted:
			state = "waits for a hook"
		}
		return fmt.Sprintf("Operation %d (%s) %s.", latest.Ref.Number, latest.Action.Verb(), state)
	case ClusterTerminated:
		return "The cluster is deleted."
	case ClusterActive:
		if verb == ChangeRetry {
			if latest != nil && latest.Action == ClusterAuthorize && latest.Status != OperationComplete {
				return fmt.Sprintf("Operation %d only adds keys; add them again.", latest.Ref.Number)
			}
			return "The last operation did not fail."
		}
		return "No operation is running."
	case ClusterIncomplete, ClusterInconsistent:
		if verb == ChangeAbort || verb == ChangePause || verb == ChangeResume {
			return "No operation is running."
		}
		if c.Status == ClusterIncomplete {
			return "The cluster is incomplete; " + ways(ChangeRetry, ChangeConfigure, ChangeRepair, ChangeRollback, ChangeDelete) + "."
		}
		return "The cluster is inconsistent; " + ways(ChangeConfigure, ChangeRetry, ChangeRepair, ChangeRollback) + " first."
	}
	return fmt.Sprintf("The cluster is %s.", c.Status)
}

// ways joins ways out.
func ways(verbs ...ChangeKind) string {
	words := make([]string, len(verbs))
	for i, v := range verbs {
		words[i] = v.Change().WayOut
	}
	return Or(words)
}
