package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// previewsKept is how long previews stay after they expired, so that an apply
// that comes late is told what became of them.
const previewsKept = 24 * time.Hour

// expireBatch is how many clusters are read at once.
const expireBatch = 100

// Expire deletes the clusters whose lease is over, or that were to be deleted when
// their operation has ended, in all tenants, and forgets old previews. A cluster that is protected, busy or whose provider asks for fields
// that nobody stored is left alone until the next call; trouble with one does
// not keep the others. It is a duty of the scheduler.
func (u *Clusters) Expire(ctx context.Context) error {
	var errs []error
	var after store.ExpiredCluster
	for {
		expired, err := store.ExpiredClustersAllTenants(ctx, u.db, after, expireBatch)
		if err != nil {
			return err
		}
		for _, e := range expired {
			after = e
			actor := loom.SystemActor(e.Tenant, string(e.Tenant))
			// A lease that was changed since is looked at the next time. The revision
			// guards what happens between this look and the lock.
			_, err := u.deleteIf(ctx, actor, e.ID, DeleteInput{}, func(c loom.Cluster) bool { return c.Expires.Equal(e.Expires) })
			switch loom.AsError(err).Kind {
			case loom.Conflict, loom.Invalid, loom.NotFound:
			default:
				if err != nil {
					errs = append(errs, fmt.Errorf("end the lease of cluster %s: %w", e.ID, err))
				}
			}
		}
		if len(expired) < expireBatch {
			break
		}
	}
	errs = append(errs, u.deleteWanted(ctx))
	errs = append(errs, store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		_, err := store.TrimPreviewsAllTenants(ctx, tx, previewsKept)
		return err
	}))
	return errors.Join(errs...)
}

// deleteWanted deletes the clusters whose delete waited for the end of an
// operation, for whoever asked for it then. One that cannot be deleted now is
// left alone until the next call.
func (u *Clusters) deleteWanted(ctx context.Context) error {
	var errs []error
	for after := loom.ClusterID(0); ; {
		wanted, err := store.WantedDeletesAllTenants(ctx, u.db, after, expireBatch)
		if err != nil {
			return err
		}
		for _, w := range wanted {
			after = w.ID
			actor := loom.SystemActor(w.Tenant, string(w.Tenant))
			actor.User = w.By
			_, err := u.deleteIf(ctx, actor, w.ID, DeleteInput{}, func(c loom.Cluster) bool { return c.DeleteWanted != "" })
			switch loom.AsError(err).Kind {
			case loom.Conflict, loom.Invalid, loom.NotFound:
			default:
				if err != nil {
					errs = append(errs, fmt.Errorf("delete cluster %s for %s: %w", w.ID, w.By, err))
				}
			}
		}
		if len(wanted) < expireBatch {
			return errors.Join(errs...)
		}
	}
}
