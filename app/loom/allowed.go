package loom

import (
	"fmt"
	"slices"
)

// ClusterVerb is something a person can do to a cluster. The words of previews
// (rest-api.md 6.4) and those that work without a plan share one table.
type ClusterVerb string

// The verbs.
const (
	VerbConfigure      ClusterVerb = "configure"
	VerbAddServices    ClusterVerb = "add_services"
	VerbRemoveServices ClusterVerb = "remove_services"
	VerbStart          ClusterVerb = "start"
	VerbStop           ClusterVerb = "stop"
	VerbRestart        ClusterVerb = "restart"
	VerbExpand         ClusterVerb = "expand"
	VerbShrink         ClusterVerb = "shrink"
	VerbUpgrade        ClusterVerb = "upgrade"
	VerbResize         ClusterVerb = "resize"
	VerbRepair         ClusterVerb = "repair"
	VerbRollback       ClusterVerb = "rollback"
	VerbRetry          ClusterVerb = "retry"
	VerbAuthorize      ClusterVerb = "authorize"
	VerbSync           ClusterVerb = "sync"
	VerbDelete         ClusterVerb = "delete"

	VerbLease  ClusterVerb = "lease"
	VerbEdit   ClusterVerb = "edit" // protection, labels, description, owner
	VerbAbort  ClusterVerb = "abort"
	VerbPause  ClusterVerb = "pause"
	VerbResume ClusterVerb = "resume"
)

// ClusterVerbs lists every verb, in the order in which menus show them.
var ClusterVerbs = []ClusterVerb{
	VerbConfigure, VerbAddServices, VerbRemoveServices, VerbStart, VerbStop, VerbRestart, VerbExpand, VerbShrink,
	VerbUpgrade, VerbResize, VerbRepair, VerbRollback, VerbRetry, VerbAuthorize, VerbSync, VerbDelete,
	VerbLease, VerbEdit, VerbAbort, VerbPause, VerbResume,
}

// allowedIn says in which statuses each verb may begin (lifecycle.md 2).
var allowedIn = map[ClusterVerb][]ClusterStatus{
	VerbConfigure:      {ClusterActive, ClusterIncomplete, ClusterInconsistent},
	VerbAddServices:    {ClusterActive},
	VerbRemoveServices: {ClusterActive, ClusterIncomplete, ClusterInconsistent},
	VerbStart:          {ClusterActive},
	VerbStop:           {ClusterActive},
	VerbRestart:        {ClusterActive},
	VerbExpand:         {ClusterActive},
	VerbShrink:         {ClusterActive},
	VerbUpgrade:        {ClusterActive},
	VerbResize:         {ClusterActive},
	VerbRepair:         {ClusterActive, ClusterIncomplete, ClusterInconsistent},
	VerbRollback:       {ClusterActive, ClusterIncomplete, ClusterInconsistent},
	VerbRetry:          {ClusterIncomplete, ClusterInconsistent},
	VerbAuthorize:      {ClusterActive},
	VerbSync:           {ClusterActive},
	VerbDelete:         {ClusterActive, ClusterIncomplete, ClusterInconsistent},
	VerbLease:          {ClusterActive, ClusterIncomplete, ClusterInconsistent},
	VerbEdit:           {ClusterPending, ClusterActive, ClusterIncomplete, ClusterInconsistent},
	VerbAbort:          {ClusterPending},
	VerbPause:          {ClusterPending},
	VerbResume:         {ClusterPending},
}

// WhyNot gives the sentence why verb cannot begin now, or "" when it can.
// Latest is the cluster's latest operation, nil before the first.
func (c *Cluster) WhyNot(verb ClusterVerb, latest *Operation) string {
	statuses, known := allowedIn[verb]
	if !known {
		return fmt.Sprintf("There is no action “%s”.", verb)
	}
	if !slices.Contains(statuses, c.Status) {
		return c.wrongStatus(verb, latest)
	}
	if why := c.whyProtected(verb, latest); why != "" {
		return why
	}
	begins := slices.Contains(statuses, ClusterActive) || verb == VerbRetry
	if c.DeleteWanted != "" && begins && verb != VerbDelete && verb != VerbEdit && verb != VerbLease {
		return fmt.Sprintf("%s wants the cluster deleted; that begins at any moment.", c.DeleteWanted)
	}
	if latest == nil {
		return ""
	}
	switch {
	case verb == VerbRetry:
		return latest.whyNotRetried()
	case c.Status != ClusterActive && verb == VerbRemoveServices, c.Status == ClusterIncomplete && verb == VerbConfigure:
		if latest.Action == ClusterDelete {
			return fmt.Sprintf("Operation %d began to delete the cluster; go on with the delete.", latest.Ref.Number)
		}
		return latest.whyNotRetried()
	case verb == VerbRollback && latest.Action == ClusterDelete && latest.Status != OperationComplete && !latest.Started.IsZero():
		return fmt.Sprintf("Operation %d began to delete the cluster; go on with the delete.", latest.Ref.Number)
	case verb == VerbPause && latest.Status == OperationPaused:
		return fmt.Sprintf("Operation %d is paused already.", latest.Ref.Number)
	case verb == VerbPause && latest.Status != OperationRunning:
		return fmt.Sprintf("Operation %d is not running any more.", latest.Ref.Number)
	case verb == VerbResume && latest.Status != OperationPaused:
		return fmt.Sprintf("Operation %d is not paused.", latest.Ref.Number)
	case verb == VerbAbort && (latest.Status == OperationFailing || latest.Status.Final()):
		return fmt.Sprintf("Operation %d is ending already.", latest.Ref.Number)
	}
	return ""
}

// WhyNotDeletedIdle returns the sentence why the cluster could not be deleted without an
// operation under way either, or "" when it could.
func (c *Cluster) WhyNotDeletedIdle() string {
	idle := *c
	idle.Status = ClusterActive
	return idle.WhyNot(VerbDelete, nil)
}

// DeleteAborts reports whether the latest operation has to be aborted before the cluster
// can be deleted: one that has not ended and leads anywhere but to a delete.
func (c *Cluster) DeleteAborts(latest *Operation) bool {
	return c.Status == ClusterPending && c.DeleteWanted == "" && latest != nil && !latest.Status.Final() && latest.Action != ClusterDelete
}

// WhyNot returns the sentence why verb cannot begin now, or "" when it can, as far as the
// summary tells: see Cluster.WhyNot.
func (s *ClusterSummary) WhyNot(verb ClusterVerb) string {
	return (&Cluster{Status: s.Status, Protected: s.Protected}).WhyNot(verb, nil)
}

// WhyNotSkipped returns the sentence why a task of the operation cannot be left out now,
// or "" when it can: only what is next may be, and while the operation is paused.
func (o *Operation) WhyNotSkipped(t *Task) string {
	switch {
	case o.Status != OperationPaused:
		return fmt.Sprintf("Operation %d is not paused; pause it first, then leave out task %d.", o.Ref.Number, t.Ref.Number)
	case t.Status == TaskBlocked:
		return fmt.Sprintf("Task %d still waits for others; only what is next can be left out.", t.Ref.Number)
	case t.Status == TaskRunning:
		return fmt.Sprintf("Task %d is running; it can be left out when this attempt ends without success.", t.Ref.Number)
	case t.Status != TaskReady:
		return fmt.Sprintf("Task %d is %s already.", t.Ref.Number, t.Status)
	}
	return ""
}

// whyProtected says why protection keeps the verb from beginning (changes.md 6):
// it deletes machines that nobody has called broken.
func (c *Cluster) whyProtected(verb ClusterVerb, latest *Operation) string {
	if !c.Protected {
		return ""
	}
	resizes := verb == VerbResize
	deletes := verb == VerbDelete || verb == VerbShrink
	if verb == VerbRetry && latest != nil {
		resizes = latest.Action == ClusterResize
		deletes = latest.Action == ClusterDelete || latest.Action == ClusterShrink
	}
	switch {
	case resizes:
		return "The cluster is protected, and other hardware means other machines, without what is on the disks of the present ones; take the protection off first."
	case deletes:
		return "The cluster is protected; take the protection off first."
	}
	return ""
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

func (c *Cluster) wrongStatus(verb ClusterVerb, latest *Operation) string {
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
		return "The cluster is gone."
	case ClusterActive:
		if verb == VerbRetry {
			if latest != nil && latest.Action == ClusterAuthorize && latest.Status != OperationComplete {
				return fmt.Sprintf("Operation %d only adds keys; add them again.", latest.Ref.Number)
			}
			return "The last operation did not fail."
		}
		return "No operation is running."
	case ClusterIncomplete, ClusterInconsistent:
		if verb == VerbAbort || verb == VerbPause || verb == VerbResume {
			return "No operation is running."
		}
		if c.Status == ClusterIncomplete {
			return "The cluster is incomplete; " + ways(VerbRetry, VerbConfigure, VerbRepair, VerbRollback, VerbDelete) + "."
		}
		return "The cluster is inconsistent; " + ways(VerbConfigure, VerbRetry, VerbRepair, VerbRollback) + " first."
	}
	return fmt.Sprintf("The cluster is %s.", c.Status)
}

// wayOut words the verbs that lead out of a state.
var wayOut = map[ClusterVerb]string{
	VerbConfigure: "configure it again", VerbRetry: "retry what failed", VerbRepair: "repair it", VerbRollback: "roll back", VerbDelete: "delete it",
}

// ways joins ways out.
func ways(verbs ...ClusterVerb) string {
	words := make([]string, len(verbs))
	for i, v := range verbs {
		words[i] = wayOut[v]
	}
	return Or(words)
}
