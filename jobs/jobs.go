// Package jobs is the contract of background work: the argument types of River
// jobs with their kinds, the names of queues, and how often periodic work is
// due. Use cases enqueue by it and package work carries it out.
//
// Arguments hold identifiers only: they outlive releases, and whoever may look
// at the queue can read them. It imports the domain and must not know River. A
// newcomer's usual mistake: a River job delivers work, it is not an operation
// ("job" on the wire) and not a task.
package jobs

import (
	"strings"
	"time"

	"loom/app/loom"
)

// Queues with a fixed name; each tenant has one more, see TenantQueue.
const (
	// ControlQueue is worked by schedulers.
	ControlQueue = "control"
	// HookQueue is worked by schedulers too; endpoints may be slow.
	HookQueue = "hook"
	// ProbeQueue is worked by every provisioner, for work that belongs to no
	// tenant's share of workers and that somebody waits for: it takes seconds.
	ProbeQueue = "probe"
	// SweepQueue is the same for what takes minutes: lists of machines, removals.
	SweepQueue = "sweep"
	// JournalQueue is the same for journals of services that somebody reads.
	JournalQueue = "journal"
	tenantPrefix = "tenant_"
)

// TenantQueue is the queue of a tenant's tasks, worked by the provisioners that
// the tenant has workers in.
func TenantQueue(tenant loom.TenantID) string { return tenantPrefix + string(tenant) }

// QueueTenant is the tenant of a queue that TenantQueue named; ok is false for
// any other queue.
func QueueTenant(queue string) (tenant loom.TenantID, ok bool) {
	id, ok := strings.CutPrefix(queue, tenantPrefix)
	return loom.TenantID(id), ok && id != ""
}

// TaskTries is the limit that River is told for a task's job. It is out of
// reach on purpose: how often a task is tried is the planner's decision.
const TaskTries = 1000

// ControlTries bounds how often River tries control work that returns an error.
const ControlTries = 25

// Args are the arguments of one River job. They marshal to JSON.
type Args interface {
	// Kind names the worker; it never changes once rows may exist.
	Kind() string
	// Queue says who works it.
	Queue() string
}

// KindRunTask is the kind of RunTask, which the plan's bulk statements name too.
const KindRunTask = "run_task"

// RunTask is one delivery of one task. Its queue is the tenant's, so it is not
// enqueued as Args: the plan inserts all of them in bulk.
type RunTask struct {
	TaskID int64 `json:"task_id"`
}

// Kind is "run_task".
func (RunTask) Kind() string { return KindRunTask }

// EndOperation looks whether an operation has ended and gives it and its
// cluster their final state.
type EndOperation struct {
	OperationID int64 `json:"operation_id"`
}

// Kind is "end_operation".
func (EndOperation) Kind() string { return "end_operation" }

// Queue is the schedulers'.
func (EndOperation) Queue() string { return ControlQueue }

// DeliverHook sends one notice to one hook.
type DeliverHook struct {
	DeliveryID int64 `json:"delivery_id"`
}

// Kind is "deliver_hook".
func (DeliverHook) Kind() string { return KindDeliverHook }

// KindDeliverHook is the kind of DeliverHook, which statements name too.
const KindDeliverHook = "deliver_hook"

// Queue is that of hooks.
func (DeliverHook) Queue() string { return HookQueue }

// ProbeProvider asks a provider something outside of any task: whether it works,
// which machines it has, to remove one. The request says what.
type ProbeProvider struct {
	RequestID int64 `json:"request_id"`
	// Slow says that nobody waits for it.
	Slow bool `json:"-"`
}

// Kind is "probe_provider".
func (ProbeProvider) Kind() string { return "probe_provider" }

// Queue is one of all provisioners.
func (p ProbeProvider) Queue() string {
	if p.Slow {
		return SweepQueue
	}
	return ProbeQueue
}

// FollowJournal follows the journal of a service for somebody who reads it.
type FollowJournal struct {
	JournalID string `json:"journal_id"`
}

// Kind is "follow_journal".
func (FollowJournal) Kind() string { return "follow_journal" }

// Queue is that of journals.
func (FollowJournal) Queue() string { return JournalQueue }

// SweepProviders asks for a look at every provider that may have machines which
// no node claims.
type SweepProviders struct{}

// Kind is "sweep_providers".
func (SweepProviders) Kind() string { return "sweep_providers" }

// Queue is the schedulers'.
func (SweepProviders) Queue() string { return ControlQueue }

// ExpireClusters deletes clusters whose lease is over, and those whose delete
// waited for the end of an operation.
type ExpireClusters struct{}

// Kind is "expire_clusters".
func (ExpireClusters) Kind() string { return "expire_clusters" }

// Queue is the schedulers'.
func (ExpireClusters) Queue() string { return ControlQueue }

// PurgeSessions deletes sessions that are over.
type PurgeSessions struct{}

// Kind is "purge_sessions".
func (PurgeSessions) Kind() string { return "purge_sessions" }

// Queue is the schedulers'.
func (PurgeSessions) Queue() string { return ControlQueue }

// TrimEvents deletes events that no page can still ask for.
type TrimEvents struct{}

// Kind is "trim_events".
func (TrimEvents) Kind() string { return "trim_events" }

// Queue is the schedulers'.
func (TrimEvents) Queue() string { return ControlQueue }

// TrimLogs deletes task logs that are older than they are kept.
type TrimLogs struct{}

// Kind is "trim_logs".
func (TrimLogs) Kind() string { return "trim_logs" }

// Queue is the schedulers'.
func (TrimLogs) Queue() string { return ControlQueue }

// KeepAudit notes the newest linked entry of the audit and removes old ones.
type KeepAudit struct{}

// Kind is "keep_audit".
func (KeepAudit) Kind() string { return "keep_audit" }

// Queue is the schedulers'.
func (KeepAudit) Queue() string { return ControlQueue }

// SweepBucket deletes files of plugin resources that nothing knows any longer.
type SweepBucket struct{}

// Kind is "sweep_bucket".
func (SweepBucket) Kind() string { return "sweep_bucket" }

// Queue is the schedulers'.
func (SweepBucket) Queue() string { return ControlQueue }

// Periodic is work that is due again and again.
type Periodic struct {
	Args  Args
	Every time.Duration
}

// Periodics lists the periodic work. Every client carries the same list, since
// any of them may be the one that enqueues it.
func Periodics() []Periodic {
	return []Periodic{
		{ExpireClusters{}, time.Minute},
		{PurgeSessions{}, time.Hour},
		{TrimEvents{}, time.Hour},
		{TrimLogs{}, time.Hour},
		{KeepAudit{}, time.Hour},
		{SweepProviders{}, time.Hour},
		{SweepBucket{}, time.Hour},
	}
}
