package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// ChangeExpiry moves the end of a cluster's lease; the zero time is never. It
// works at once and without an operation. Invalid, about the field expireTime,
// where the rules or the state of the cluster forbid it (lifecycle.md 3).
func (u *Clusters) ChangeExpiry(ctx context.Context, actor loom.Actor, id loom.ClusterID, expires time.Time) (loom.Cluster, error) {
	return u.change(ctx, actor, id, func(c *loom.Cluster) error {
		rule := c.Template.Administration.Lease
		if err := rule.CheckChange(c.Status, c.Created, c.Expires, expires); err != nil {
			return err
		}
		c.Expires = expires
		return nil
	})
}

// EditInput changes what it names; nil stays as it is. Labels replace the whole
// map.
type EditInput struct {
	Description *string
	Labels      map[string]string
	Protected   *bool
}

// Edit changes description, labels and protection, in every state but
// terminated (Conflict).
func (u *Clusters) Edit(ctx context.Context, actor loom.Actor, id loom.ClusterID, in EditInput) (loom.Cluster, error) {
	errs := checkLabels(in.Labels)
	if in.Description != nil {
		errs = append(errs, checkStorable("description", *in.Description)...)
		if len([]rune(*in.Description)) > loom.MaxDescription {
			errs = append(errs, loom.FieldError{Field: "description",
				Message: fmt.Sprintf("A description has at most %d characters.", loom.MaxDescription)})
		}
	}
	return u.change(ctx, actor, id, func(c *loom.Cluster) error {
		if err := loom.InvalidFields(errs); err != nil {
			return err
		}
		if why := c.WhyNot(loom.VerbEdit, nil); why != "" {
			return loom.NewError(loom.Conflict, "%s", why)
		}
		if in.Description != nil {
			c.Description = *in.Description
		}
		if in.Labels != nil {
			c.Labels = in.Labels
		}
		if in.Protected != nil {
			c.Protected = *in.Protected
		}
		return nil
	})
}

// change does what needs no plan, under the lock of the cluster.
func (u *Clusters) change(ctx context.Context, actor loom.Actor, id loom.ClusterID, apply func(c *loom.Cluster) error) (loom.Cluster, error) {
	if err := actor.Require(loom.ScopeClusterWrite); err != nil {
		return loom.Cluster{}, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Cluster, error) {
		c, err := store.LockCluster(ctx, tx, actor.Tenant, id)
		if err := visible(actor, id, c.Owner, err); err != nil {
			return loom.Cluster{}, err
		}
		before := editable(c)
		if err := apply(&c); err != nil {
			return loom.Cluster{}, err
		}
		if c.Revision, err = store.UpdateCluster(ctx, tx, actor.Tenant, c); err != nil {
			return loom.Cluster{}, err
		}
		err = store.InsertAudit(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: "update", Kind: "cluster", Object: id.String(), Result: "ok", Before: before, After: editable(c),
		})
		if err != nil {
			return loom.Cluster{}, err
		}
		return c, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, id)...)
	})
}

// editable is the part of a cluster that changes without an operation, for the audit.
func editable(c loom.Cluster) map[string]any {
	expires := int64(0)
	if !c.Expires.IsZero() {
		expires = c.Expires.UnixMilli()
	}
	return map[string]any{"description": c.Description, "labels": c.Labels, "protected": c.Protected, "expireTime": expires}
}
