// Package fleet holds the use cases about the present of all machines: what checks saw of
// nodes and services, and what follows from that for clusters.
//
// It changes no state that tasks set, and it judges by the rules in app/loom. What a newcomer
// gets wrong: a result counts only if the node is still the one that was looked at, with the
// same machine and no newer operation.
package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Fleet knows the health of nodes and clusters.
type Fleet struct {
	db *sqlx.DB
	// decidedAt is when DecideRepairs was called last, gap when it was not for too long before
	// a call; by the clock of the database.
	decidedAt, gap time.Time
}

// New makes the use cases.
func New(db *sqlx.DB) *Fleet { return &Fleet{db: db} }

// Nodes lists the nodes that have a machine, of one tenant or, with "", of all.
func (f *Fleet) Nodes(ctx context.Context, only loom.TenantID) ([]loom.HealthNode, error) {
	return store.HealthNodesAllTenants(ctx, f.db, only)
}

// Wakeups tells when somebody asks for checks, on a connection of its own to dsn, until ctx
// ends.
func (f *Fleet) Wakeups(ctx context.Context, dsn string) (<-chan struct{}, error) {
	notices, err := store.Listen(ctx, dsn, store.HealthChannel)
	if err != nil {
		return nil, err
	}
	out := make(chan struct{}, 1)
	go func() {
		for range notices {
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, nil
}

// Health reads what is known of a cluster that the actor may see. NotFound.
func (f *Fleet) Health(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.ClusterHealth, error) {
	if err := f.may(ctx, actor, loom.See, id); err != nil {
		return loom.ClusterHealth{}, err
	}
	return store.HealthOfCluster(ctx, f.db, actor.Tenant, id)
}

// checkPause is how often checks of the same nodes may be asked for.
const checkPause = 10 * time.Second

// Check asks for checks of nodes of a cluster, of all if none are named, and returns of how
// many. NotFound; Throttled where somebody asked a moment ago; Conflict where nothing is checked.
func (f *Fleet) Check(ctx context.Context, actor loom.Actor, id loom.ClusterID, nodes []loom.NodeID) (int, error) {
	if err := f.may(ctx, actor, loom.Operate, id); err != nil {
		return 0, err
	}
	health, err := store.HealthOfCluster(ctx, f.db, actor.Tenant, id)
	if err == nil {
		err = checkNodes(&health, id, nodes)
	}
	if err != nil {
		return 0, err
	}
	if len(health.Nodes) == 0 {
		return 0, loom.NewError(loom.Conflict, "No node of cluster %s has a machine that is checked.", id)
	}
	var asked int
	err = store.Exec(ctx, f.db, func(tx *sqlx.Tx) (err error) {
		asked, err = store.WantChecks(ctx, tx, actor.Tenant, id, nodes, checkPause)
		return err
	})
	if err == nil && asked == 0 {
		err = &loom.Error{Kind: loom.Throttled, Message: "Somebody asked for this check a moment ago; its result comes by itself.", RetryAfter: checkPause}
	}
	return asked, err
}

// may reports whether an actor may do something with a cluster: nil, NotFound or Forbidden.
func (f *Fleet) may(ctx context.Context, actor loom.Actor, verb loom.Verb, id loom.ClusterID) error {
	o, err := store.ClusterObject(ctx, f.db, actor.Tenant, id)
	if err == nil {
		err = actor.May(verb, o)
	}
	if errors.Is(err, loom.NotFound) {
		return loom.NewError(loom.NotFound, "There is no cluster %s.", id)
	}
	return err
}
