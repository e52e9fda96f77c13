package processes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/jobs"
)

// Pause says since when a queue is paused, and by whom where that is known.
type Pause = store.Pause

// Queue is a queue of River jobs as superadmins see it.
type Queue struct {
	// Name is River's; Tenant the name of the tenant whose tasks are on it, "" for a
	// queue of the installation and for a tenant that is gone.
	Name, Tenant string
	// Counts are the River jobs by state, of those that are not done.
	Counts map[string]int
	// Oldest is since when the River job is due that waits longest; zero without one.
	Oldest time.Time
	// Paused is zero for a queue that is worked.
	Paused Pause
}

// IsPaused reports whether nothing new of the queue begins.
func (q *Queue) IsPaused() bool { return !q.Paused.At.IsZero() }

// MayPause reports whether PauseQueue and ResumeQueue know the queue.
func (q *Queue) MayPause() bool { return q.Tenant != "" || slices.Contains(RiverQueues, q.Name) }

// ListQueues lists the queues of the installation, and those of tenants on which
// something is or which are paused; superadmins only.
func (f *Processes) ListQueues(ctx context.Context, actor loom.Actor) ([]Queue, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return nil, err
	}
	return queues(ctx, f.db)
}

func queues(ctx context.Context, q sqlx.ExtContext) ([]Queue, error) {
	states, err := store.QueueStatesAllTenants(ctx, q)
	if err != nil {
		return nil, err
	}
	paused, err := store.PausesAllTenants(ctx, q)
	if err != nil {
		return nil, err
	}
	tenants, err := store.TenantsAllTenants(ctx, q)
	if err != nil {
		return nil, err
	}
	by := map[string]*Queue{}
	of := func(name string) *Queue {
		if by[name] == nil {
			by[name] = &Queue{Name: name, Counts: map[string]int{}}
		}
		return by[name]
	}
	for _, name := range RiverQueues {
		of(name)
	}
	for _, s := range states {
		of(s.Queue).Counts[s.State] = s.Count
	}
	for name, p := range paused {
		of(name).Paused = p
	}
	for _, t := range tenants {
		if found := by[jobs.TenantQueue(t.ID)]; found != nil {
			found.Tenant = t.Name
		}
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	oldest, err := store.OldestJobsAllTenants(ctx, q, names)
	if err != nil {
		return nil, err
	}
	all := make([]Queue, 0, len(by))
	for name, found := range by {
		found.Oldest = oldest[name]
		all = append(all, *found)
	}
	// Those of the installation first.
	slices.SortFunc(all, func(a, b Queue) int {
		return cmp.Or(cmp.Compare(min(len(a.Tenant), 1), min(len(b.Tenant), 1)), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// FindQueue returns a queue by its name; those of tenants are there also while nothing is on
// them. Superadmins only. NotFound.
func (f *Processes) FindQueue(ctx context.Context, actor loom.Actor, name string) (Queue, error) {
	all, err := f.ListQueues(ctx, actor)
	if err != nil {
		return Queue{}, err
	}
	for _, q := range all {
		if q.Name == name && q.MayPause() {
			return q, nil
		}
	}
	tenant, err := tenantOfQueue(ctx, f.db, name)
	return Queue{Name: name, Tenant: tenant.Name, Counts: map[string]int{}}, err
}

// tenantOfQueue returns the tenant whose tasks are on a queue. NotFound.
func tenantOfQueue(ctx context.Context, q sqlx.ExtContext, name string) (loom.Tenant, error) {
	id, ok := jobs.QueueTenant(name)
	err := error(loom.NewError(loom.NotFound, "There is no tenant."))
	var tenant loom.Tenant
	if ok {
		tenant, err = store.Tenant(ctx, q, id)
	}
	if errors.Is(err, loom.NotFound) {
		err = loom.NewError(loom.NotFound, "There is no queue “%.80s”.", name)
	}
	return tenant, err
}

// PauseQueue lets nothing new of a queue begin, in any process, until ResumeQueue; what
// runs goes on, and nothing is lost. Superadmins only. NotFound for a queue that there is not. What is paused already stays so.
func (f *Processes) PauseQueue(ctx context.Context, actor loom.Actor, name string) error {
	return f.setPaused(ctx, actor, name, true)
}

// ResumeQueue takes PauseQueue back.
func (f *Processes) ResumeQueue(ctx context.Context, actor loom.Actor, name string) error {
	return f.setPaused(ctx, actor, name, false)
}

func (f *Processes) setPaused(ctx context.Context, actor loom.Actor, name string, pause bool) error {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return err
	}
	return store.Exec(ctx, f.db, func(tx *sqlx.Tx) error {
		// As whoever changes tenants: the lock of dealing first.
		if err := store.LockAssignments(ctx, tx); err != nil {
			return err
		}
		changed, err := pauseQueue(ctx, tx, actor, name, pause)
		if err != nil || !changed {
			return err
		}
		if err := store.WakeQueues(ctx, tx, name); err != nil {
			return err
		}
		verb := map[bool]string{true: "pause", false: "resume"}[pause]
		err = store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: verb, Kind: "queue", Object: name, Result: "ok",
			Before: map[string]any{"paused": !pause}, After: map[string]any{"paused": pause}})
		if err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, loom.Event{Tenant: loom.SuperTenant, Topic: "system"})
	})
}

// pauseQueue reports whether it changed anything.
func pauseQueue(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, name string, pause bool) (bool, error) {
	if slices.Contains(RiverQueues, name) {
		return store.SetRiverQueueAllTenants(ctx, tx, name, pause)
	}
	tenant, err := tenantOfQueue(ctx, tx, name)
	if err != nil {
		return false, err
	}
	var changed bool
	if pause {
		changed, err = store.PauseTenant(ctx, tx, tenant.ID, actor.User)
	} else {
		changed, err = store.ResumeTenant(ctx, tx, tenant.ID)
	}
	if err != nil || !changed {
		return false, err
	}
	// River would fetch what then does not begin, and give it back, again and again.
	if _, err := store.SetRiverQueueAllTenants(ctx, tx, name, pause); err != nil {
		return false, err
	}
	if err := assignWorkers(ctx, tx); err != nil {
		return false, err
	}
	return true, store.WakeProvisioners(ctx, tx)
}

// QueuedTask is a task that its node holds: it waits for a worker, or has one.
type QueuedTask = store.QueuedTask

// Queued is what of a tenant waits for workers and what has them, with a page of one of
// both and the share of workers that the tenant has.
type Queued struct {
	store.QueuedSum
	Items      []QueuedTask
	Next, Prev string
	Share      TenantWorkers
}

// Queued lists the tasks of the actor's tenant that wait for a worker, those that have
// waited longest first, or with running those that have one. A machine does one task at a
// time: what waits for its machine is not among them. Errors: Forbidden; Invalid for a
// cursor of another list.
func (f *Processes) Queued(ctx context.Context, actor loom.Actor, running bool, p loom.Page) (Queued, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return Queued{}, err
	}
	var found Queued
	var err error
	if found.Items, found.Next, found.Prev, err = store.QueuedTasks(ctx, f.db, actor.Tenant, running, p); err != nil {
		return Queued{}, err
	}
	if found.QueuedSum, err = store.SumQueued(ctx, f.db, actor.Tenant); err != nil {
		return Queued{}, err
	}
	shortage, err := f.Shortage(ctx, actor)
	found.Share = TenantWorkers{Tenant: actor.Tenant}
	for _, t := range shortage.Tenants {
		if t.Tenant == actor.Tenant {
			found.Share = t
		}
	}
	return found, err
}

// QueueCount is how many tasks of a tenant, by name, wait for a worker and are
// worked on.
type QueueCount = store.QueueCount

// Queues counts the tasks of the actor's tenant, for its administrators, or of all
// tenants for superadmins. The figures are those of this moment.
func (f *Processes) Queues(ctx context.Context, actor loom.Actor) ([]QueueCount, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	if actor.May(loom.Install.Reading(), loom.Installation) == nil {
		return store.QueueCountsAllTenants(ctx, f.db)
	}
	return store.QueueCounts(ctx, f.db, actor.Tenant)
}
