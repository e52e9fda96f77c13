package processes

import (
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// Status is how the database of the installation is, as seen from this process.
type Status struct {
	store.DatabaseStatus
	// Answer is how long the database took, Skew how far its clock is ahead of that of
	// this process, give or take Answer.
	Answer, Skew time.Duration
	// Local are the hosts with provisioners that make machines there.
	Local []loom.LocalHost
}

// Status asks the database how it is; superadmins only.
func (f *Processes) Status(ctx context.Context, actor loom.Actor) (Status, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return Status{}, err
	}
	asking, cancel := context.WithTimeout(ctx, figureTimeout)
	defer cancel()
	began := time.Now()
	s, err := store.ReadDatabaseStatus(asking, f.db)
	took := time.Since(began)
	status := Status{DatabaseStatus: s, Answer: took, Skew: s.Now.Sub(began.Add(took / 2))}
	if err == nil {
		status.Local, err = store.LocalHostsAllTenants(asking, f.db)
	}
	return status, err
}

// Condition is what hinders work in the whole installation; Answer is how long the
// database took to say so.
type Condition struct {
	store.Condition
	Answer time.Duration
}

// Condition asks what hinders work, for the banners of pages: it tells nothing of
// anybody.
func (f *Processes) Condition(ctx context.Context) (Condition, error) {
	began := time.Now()
	c, err := store.ReadCondition(ctx, f.db)
	return Condition{Condition: c, Answer: time.Since(began)}, err
}

// LiveNodes counts the nodes of all tenants that are not deleted; superadmins only.
func (f *Processes) LiveNodes(ctx context.Context, actor loom.Actor) (int, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return 0, err
	}
	asking, cancel := context.WithTimeout(ctx, figureTimeout)
	defer cancel()
	return store.LiveNodesAllTenants(asking, f.db)
}
