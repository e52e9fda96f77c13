package processes

import (
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

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
