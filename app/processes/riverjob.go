package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/jobs"
)

// RiverJob is a row of River's table.
type RiverJob = store.RiverJob

// RiverStates are the states by which River jobs can be listed.
var RiverStates = []string{"available", "running", "retryable", "scheduled", "pending", "discarded", "cancelled", "completed"}

// The queues that belong to no tenant.
const (
	ControlQueue = jobs.ControlQueue
	HookQueue    = jobs.HookQueue
	ProbeQueue   = jobs.ProbeQueue
	SweepQueue   = jobs.SweepQueue
	JournalQueue = jobs.JournalQueue
)

// RiverQueues lists them.
var RiverQueues = []string{ControlQueue, HookQueue, ProbeQueue, SweepQueue, JournalQueue}

// TenantQueue names the queue of a tenant's tasks.
func TenantQueue(tenant loom.TenantID) string { return jobs.TenantQueue(tenant) }

// MayRetry reports whether RetryRiverJob can make a River job due.
func MayRetry(j RiverJob) bool {
	return isControlJob(j) && slices.Contains([]string{"retryable", "scheduled", "discarded", "cancelled"}, j.State)
}

// MayCancel reports whether CancelRiverJob can keep a River job from being tried.
func MayCancel(j RiverJob) bool {
	return isControlJob(j) && slices.Contains([]string{"available", "pending", "retryable", "scheduled"}, j.State)
}

// MayDelete reports whether DeleteRiverJob can remove a River job.
func MayDelete(j RiverJob) bool { return isControlJob(j) && j.State != "running" }

func isControlJob(j RiverJob) bool { return j.Queue == jobs.ControlQueue || j.Queue == jobs.HookQueue }

// RiverJobInput asks for a part of River's table; empty parts mean any.
type RiverJobInput struct {
	Page loom.Page
	// Queue is one of RiverQueues, "" for all of them; Tenant the name of a tenant
	// whose tasks are meant instead.
	Queue, Tenant string
	// State is one of RiverStates, "" for all but completed ones.
	State, Kind string
	ID          int64
}

// RiverJobList is a page of River jobs, the newest first.
type RiverJobList struct {
	Items      []RiverJob
	Next, Prev string
}

// RiverJobs lists River jobs: of the queues of the installation, or the tasks of a
// tenant. Superadmins only. Invalid for a state or queue that there is not, NotFound
// for an unknown tenant.
func (f *Processes) RiverJobs(ctx context.Context, actor loom.Actor, in RiverJobInput) (RiverJobList, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return RiverJobList{}, err
	}
	filter := store.RiverJobFilter{Queues: RiverQueues, Kind: in.Kind, ID: in.ID}
	var errs []loom.FieldError
	switch {
	case in.State == "":
		filter.States = slices.DeleteFunc(slices.Clone(RiverStates), func(s string) bool { return s == "completed" })
	case slices.Contains(RiverStates, in.State):
		filter.States = []string{in.State}
	default:
		errs = append(errs, loom.FieldError{Field: "state", Message: fmt.Sprintf("“%.40s” is none of %s.", in.State, strings.Join(RiverStates, ", "))})
	}
	if in.Queue != "" {
		if filter.Queues = []string{in.Queue}; !slices.Contains(RiverQueues, in.Queue) {
			errs = append(errs, loom.FieldError{Field: "queue", Message: fmt.Sprintf("“%.40s” is none of %s.", in.Queue, strings.Join(RiverQueues, ", "))})
		}
	}
	if err := loom.InvalidFields(errs); err != nil {
		return RiverJobList{}, err
	}
	if in.Tenant != "" {
		tenant, err := store.TenantByNameAllTenants(ctx, f.db, in.Tenant)
		if errors.Is(err, loom.NotFound) {
			return RiverJobList{}, loom.InvalidFields([]loom.FieldError{{Field: "tenant", Message: fmt.Sprintf("There is no tenant “%.60s”.", in.Tenant)}})
		}
		if err != nil {
			return RiverJobList{}, err
		}
		filter.Queues = []string{jobs.TenantQueue(tenant.ID)}
	}
	items, next, prev, err := store.RiverJobsAllTenants(ctx, f.db, filter, in.Page)
	return RiverJobList{Items: items, Next: next, Prev: prev}, err
}

// RiverJob returns a River job with the errors of all its attempts; superadmins only.
// NotFound.
func (f *Processes) RiverJob(ctx context.Context, actor loom.Actor, id int64) (RiverJob, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return RiverJob{}, err
	}
	j, err := store.RiverJobAllTenants(ctx, f.db, id)
	if errors.Is(err, loom.NotFound) {
		return RiverJob{}, loom.NewError(loom.NotFound, "There is no River job %d; finished ones are removed after a while.", id)
	}
	return j, err
}

// RetryRiverJob makes a River job of the schedulers due at once; superadmins only.
// Those of tasks follow their operation. Errors: Conflict for one that runs or is
// done already, or does not exist.
func (f *Processes) RetryRiverJob(ctx context.Context, actor loom.Actor, id int64) error {
	return f.changeRiverJob(ctx, actor, id, "retry", store.RetryRiverJobAllTenants)
}

// CancelRiverJob keeps a River job of the schedulers from being tried; superadmins
// only. Errors as RetryRiverJob.
func (f *Processes) CancelRiverJob(ctx context.Context, actor loom.Actor, id int64) error {
	return f.changeRiverJob(ctx, actor, id, "cancel", store.CancelRiverJobAllTenants)
}

// DeleteRiverJob removes a River job of the schedulers; superadmins only. Errors:
// Conflict for one that runs, is that of a task, or does not exist.
func (f *Processes) DeleteRiverJob(ctx context.Context, actor loom.Actor, id int64) error {
	return f.changeRiverJob(ctx, actor, id, "delete", store.DeleteRiverJobAllTenants)
}

func (f *Processes) changeRiverJob(ctx context.Context, actor loom.Actor, id int64, verb string, act func(ctx context.Context, tx *sqlx.Tx, id int64) (string, error)) error {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		kind, err := act(ctx, tx, id)
		if errors.Is(err, loom.NotFound) {
			return loom.NewError(loom.Conflict, "River job %d runs, is done, or is that of a task; there is nothing to %s.", id, verb)
		}
		if err != nil {
			return err
		}
		return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: verb, Kind: "river_job", Object: strconv.FormatInt(id, 10), After: map[string]any{"kind": kind}})
	})
}

// QueueRate is how tasks and other River jobs went in a stretch of time.
type QueueRate = store.QueueRate

// The pace is told for an hour, in stretches of five minutes.
const (
	RateWindow    = time.Hour
	RateIntervals = 12
)

// QueueRates tells how tasks and other River jobs went within the last hour; superadmins only.
func (f *Processes) QueueRates(ctx context.Context, actor loom.Actor) ([]QueueRate, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return store.QueueRatesAllTenants(ctx, f.db, RateWindow, RateIntervals)
}
