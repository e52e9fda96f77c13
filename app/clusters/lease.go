package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// previewsKept is how long previews stay after they expired, so that an apply
// that comes late learns what became of them.
const previewsKept = 24 * time.Hour

// expireBatch is how many clusters are read at once.
const expireBatch = 100

// leaseRetryAfter is after how long something is begun again at the end of a lease that
// came to nothing, because a hook refused it or somebody aborted it.
const leaseRetryAfter = time.Hour

// Expire does what is due at the ends of leases, in all tenants:
// owners are reminded, services stopped, clusters deleted. It deletes clusters that
// were to be deleted when their operation has ended, and forgets old previews.
// Trouble with one cluster does not keep the others. It is a duty of the scheduler.
func (u *Clusters) Expire(ctx context.Context) error {
	errs := []error{u.endLeases(ctx), u.deletePending(ctx)}
	errs = append(errs, store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		_, err := store.TrimPreviewsAllTenants(ctx, tx, previewsKept)
		return err
	}))
	return errors.Join(errs...)
}

func (u *Clusters) endLeases(ctx context.Context) error {
	settings, err := store.SettingsAllTenants(ctx, u.q)
	if err != nil {
		return err
	}
	ahead := make(map[loom.TenantID]time.Duration, len(settings))
	for tenant, s := range settings {
		ahead[tenant] = s.LongestReminder()
	}
	var errs []error
	for after := (store.LeasePlace{}); ; {
		ends, now, err := store.LeaseEndsAllTenants(ctx, u.q, ahead, after, expireBatch)
		if err != nil {
			return err
		}
		for _, e := range ends {
			after = store.LeasePlace{Expires: e.Expires, Cluster: e.Cluster}
			if err := u.endLease(ctx, e, settings[e.Tenant].LeaseStep(e, now)); err != nil {
				errs = append(errs, fmt.Errorf("end the lease of cluster %s: %w", e.Cluster, err))
			}
		}
		if len(ends) < expireBatch {
			return errors.Join(errs...)
		}
	}
}

// endLease does what is due for one cluster. A lease that was changed since is
// looked at the next time.
func (u *Clusters) endLease(ctx context.Context, e loom.LeaseEnd, step loom.LeaseStep) error {
	if step.Remind != loom.NotReminded {
		err := store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
			noted, err := store.LeaseReminded(ctx, tx, e.Tenant, e.Cluster, e.Expires, step.Remind)
			if err != nil || !noted {
				return err
			}
			if err := store.TellOwner(ctx, tx, e.Tenant, e.Cluster, "", e.Cluster.String()); err != nil {
				return err
			}
			return store.InsertEvents(ctx, tx, clusterEvents(e.Tenant, e.Cluster)...)
		})
		if err != nil {
			return err
		}
	}
	if step.Act == loom.LeaseNothing {
		return nil
	}
	// Noted first: whatever becomes of it, it is not begun again every minute.
	if due, err := u.recordLeaseAttempt(ctx, e, false, leaseRetryAfter, ""); err != nil || !due {
		return err
	}
	err := u.beginLeaseEnd(ctx, e, step.Act)
	switch {
	case err == nil && step.Act == loom.LeaseStop:
		// Once is enough; the delete does not wait for it.
		_, err = u.recordLeaseAttempt(ctx, e, true, 0, "")
	case errors.Is(err, loom.Conflict): // somebody was faster; the next call looks again
		_, err = u.recordLeaseAttempt(ctx, e, false, 0, "")
	case errors.Is(err, loom.Invalid), errors.Is(err, loom.NotFound):
		_, err = u.recordLeaseAttempt(ctx, e, false, leaseRetryAfter, strings.TrimSuffix(loom.AsError(err).Message, "."))
	}
	return err
}

func (u *Clusters) recordLeaseAttempt(ctx context.Context, e loom.LeaseEnd, stop bool, again time.Duration, problem string) (bool, error) {
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (bool, error) {
		return store.LeaseTried(ctx, tx, e.Tenant, e.Cluster, e.Expires, stop, again, problem)
	})
}

// beginLeaseEnd begins to stop or to delete, for Loom itself. The revision guards
// what happens between the look at the lease and the lock.
func (u *Clusters) beginLeaseEnd(ctx context.Context, e loom.LeaseEnd, act loom.LeaseAct) error {
	actor := loom.SystemActor(e.Tenant, string(e.Tenant))
	still := func(c loom.Cluster) bool { return c.Expires.Equal(e.Expires) && !c.Protected }
	if act == loom.LeaseDelete && e.Holds {
		_, err := u.abortFirst(ctx, actor, e.Cluster, nil, still)
		return err
	}
	if act == loom.LeaseDelete {
		_, err := u.deleteIf(ctx, actor, e.Cluster, DeleteInput{}, still)
		return err
	}
	_, _, err := u.execute(ctx, actor, PreviewInput{Kind: loom.ChangeStop, Cluster: e.Cluster}, conditions{still: still})
	return err
}

// deletePending deletes the clusters whose delete waited for the end of an
// operation, for whoever asked for it then. One that cannot be deleted now is
// left alone until the next call.
func (u *Clusters) deletePending(ctx context.Context) error {
	var errs []error
	for after := loom.ClusterID(0); ; {
		wanted, err := store.WantedDeletesAllTenants(ctx, u.q, after, expireBatch)
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

// ChangeExpiry moves the end of a cluster's lease; the zero time is never. It
// works at once and without an operation. Invalid, about the field expireTime,
// where the rules or the state of the cluster forbid it.
func (u *Clusters) ChangeExpiry(ctx context.Context, actor loom.Actor, id loom.ClusterID, expires time.Time) (loom.Cluster, error) {
	return u.edit(ctx, actor, id, func(tx *sqlx.Tx, c *loom.Cluster) error {
		rule := c.Template.Administration.Lease
		if err := rule.CheckChange(c.Status, c.Created, c.Expires, expires); err != nil {
			return err
		}
		settings, err := store.Settings(ctx, tx, actor.Tenant)
		if err != nil {
			return err
		}
		if err := loom.InvalidFields(settings.CheckLease("expireTime", expires.IsZero())); err != nil {
			return err
		}
		c.Expires = expires
		return nil
	})
}
