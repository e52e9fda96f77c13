package loom

import (
	"fmt"
	"time"
)

// LeaseEnd is a cluster with what was done so far about the end of its lease.
type LeaseEnd struct {
	Tenant    TenantID
	Cluster   ClusterID
	Status    ClusterStatus
	Protected bool
	// Expires is the end, the zero time for a cluster that lives for ever.
	Expires time.Time
	// Reminded is how many hours before the end its owner was reminded last, 0 when
	// he was told of the end itself, negative before the first time.
	Reminded int
	// StoppedFor is the end at which its services were stopped, the zero time when
	// that never happened. It may be an earlier one than Expires.
	StoppedFor time.Time
	// Next is the time before which nothing is begun again; Problem is why nothing
	// could begin the last time, "" when it did.
	Next    time.Time
	Problem string
	// Left says that a delete left machines behind, which are tried again elsewhere.
	Left bool
	// Holds says that an operation keeps the cluster that is paused, or began after the end.
	Holds bool
}

// NotReminded is LeaseEnd.Reminded before the first reminder.
const NotReminded = -1

// LeaseAct is what is begun at the end of a lease.
type LeaseAct string

// The acts.
const (
	LeaseNothing LeaseAct = ""
	LeaseStop    LeaseAct = "stop"
	LeaseDelete  LeaseAct = "delete"
)

// LeaseStep is what is due.
type LeaseStep struct {
	// Remind is the reminder to send, as in LeaseEnd.Reminded; NotReminded for none.
	Remind int
	Act    LeaseAct
}

// Grace is how long machines stay after the end of a lease.
func (s Settings) Grace() time.Duration { return time.Duration(s.LeaseGraceHours) * time.Hour }

// LongestReminder is how long before the end of a lease the first reminder is due, 0
// without reminders.
func (s Settings) LongestReminder() time.Duration {
	longest := 0
	for _, hours := range s.LeaseReminderHours {
		longest = max(longest, hours)
	}
	return time.Duration(longest) * time.Hour
}

// reminder is the latest reminder that is due now: hours before the end, 0 for the
// end itself, NotReminded for none.
func (s Settings) reminder(expires, now time.Time) int {
	if !now.Before(expires) {
		return 0
	}
	due := NotReminded
	for _, hours := range s.LeaseReminderHours {
		if expires.Sub(now) <= time.Duration(hours)*time.Hour && (due == NotReminded || hours < due) {
			due = hours
		}
	}
	return due
}

// LeaseStep gives what is due for a cluster now. Protected clusters are only told of.
func (s Settings) LeaseStep(e LeaseEnd, now time.Time) LeaseStep {
	step := LeaseStep{Remind: NotReminded}
	if e.Expires.IsZero() || e.Status == ClusterTerminated {
		return step
	}
	if due := s.reminder(e.Expires, now); due != NotReminded && (e.Reminded == NotReminded || due < e.Reminded) {
		step.Remind = due
	}
	switch {
	case now.Before(e.Expires), e.Protected, e.Status == ClusterPending && !e.Holds, now.Before(e.Next):
	case !now.Before(e.Expires.Add(s.Grace())):
		if !e.Left { // those are tried again by themselves
			step.Act = LeaseDelete
		}
	case e.Status == ClusterActive && !e.StoppedFor.Equal(e.Expires):
		step.Act = LeaseStop
	}
	return step
}

// LeaseNotice is the sentence about the end of a cluster's lease for its page, ""
// while there is nothing to say. Soon is what LeaseSoon says, stopped that some of its services are. Times are
// in the zone of now.
func (s Settings) LeaseNotice(e LeaseEnd, soon, stopped bool, now time.Time) string {
	if e.Status == ClusterTerminated {
		return ""
	}
	again := !e.StoppedFor.IsZero() && !e.StoppedFor.Equal(e.Expires) && stopped
	over := !e.Expires.IsZero() && !now.Before(e.Expires)
	switch {
	case again && !over:
		return "Its services stopped when the lease expired. They stay stopped until you start them."
	case e.Expires.IsZero(), !over && !soon:
		return ""
	case !over && e.Protected:
		return fmt.Sprintf("The lease ends %s. The cluster stays, because it is protected.", moment(e.Expires, now))
	case !over && s.LeaseGraceHours > 0:
		return fmt.Sprintf("The lease ends %s. Services then stop, and machines are deleted %s later. Extend the lease to keep them.", moment(e.Expires, now), hours(s.LeaseGraceHours))
	case !over:
		return fmt.Sprintf("The lease ends %s, and the cluster is then deleted. Extend the lease to keep it.", moment(e.Expires, now))
	case e.Protected:
		return fmt.Sprintf("The lease expired %s. The cluster stays because it is protected.", moment(e.Expires, now))
	}
	text := "The lease expired"
	if stopped && e.StoppedFor.Equal(e.Expires) {
		text += " and services were stopped"
	}
	if deleted := e.Expires.Add(s.Grace()); now.Before(deleted) {
		text += fmt.Sprintf(". The machines are deleted %s. Extend the lease to keep the cluster.", moment(deleted, now))
	} else {
		text += ". Loom is deleting the cluster."
	}
	switch {
	case e.Left:
		text += " Machines that could not be deleted are tried again every hour."
	case now.Before(e.Next) && e.Status != ClusterPending && e.Problem != "":
		text += fmt.Sprintf(" That could not begin (%s); it is tried again %s.", e.Problem, moment(e.Next, now))
	case now.Before(e.Next) && e.Status != ClusterPending && !now.Before(e.Expires.Add(s.Grace())):
		text += fmt.Sprintf(" That is tried again %s.", moment(e.Next, now))
	}
	return text
}

// moment writes a time for people, in the zone of now.
func moment(t, now time.Time) string {
	return "on " + t.In(now.Location()).Format("2 January 2006 at 15:04 MST")
}

func hours(n int) string {
	if n == 1 {
		return "1 hour"
	}
	return itoa(n) + " hours"
}
