package clusters

import (
	"context"
	"fmt"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// EditInput changes what it names; nil stays as it is. Labels replace the whole
// map.
type EditInput struct {
	Description *string
	Labels      map[string]string
	Protected   *bool
	// Repair replaces the policy of the cluster; an empty one leaves all to its template.
	Repair *loom.RepairPolicy
	// Owner hands the cluster to another user of the tenant, who may create from its template.
	Owner *loom.UserID
	// Seen is what description and labels were when their author began to write, nil to
	// replace whatever there is.
	Seen *EditedText
}

// Edit changes description, labels, protection, repair policy and owner, in every state but
// terminated (Conflict). Errors: NotFound, Invalid, Forbidden where somebody else than an owner
// or administrator names an owner or lets Loom repair what the template does not, and Conflict, with an *EditConflict in its chain,
// where the texts are not those that were seen.
func (u *Clusters) Edit(ctx context.Context, actor loom.Actor, id loom.ClusterID, in EditInput) (loom.Cluster, error) {
	errs := loom.CheckLabels(in.Labels)
	if in.Description != nil {
		errs = append(errs, checkStorable("description", *in.Description)...)
		if len([]rune(*in.Description)) > loom.MaxDescription {
			errs = append(errs, loom.FieldError{Field: "description",
				Message: fmt.Sprintf("A description has at most %d characters.", loom.MaxDescription)})
		}
	}
	if in.Repair != nil {
		errs = append(errs, in.Repair.Validate("repair")...)
	}
	if in.Owner != nil {
		if err := u.May(ctx, actor, loom.Own, id); err != nil {
			return loom.Cluster{}, err
		}
	}
	return u.edit(ctx, actor, id, func(tx *sqlx.Tx, c *loom.Cluster) error {
		if in.Protected != nil {
			if err := actor.May(loom.Own, c.Object()); err != nil {
				return err
			}
		}
		if in.Repair != nil && in.Repair.Exceeds(c.Template.Administration.Repair) {
			if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
				return loom.NewError(loom.Forbidden, "Only an administrator, or the template, may let Loom repair this by itself; choose “ask”.")
			}
		}
		if in.Owner != nil {
			if err := actor.May(loom.Own, c.Object()); err != nil {
				return err
			}
			wrong, err := u.checkOwner(ctx, tx, actor, *in.Owner, c.Template.Name)
			if err != nil {
				return err
			}
			errs = append(errs, wrong...)
		}
		if err := loom.InvalidFields(errs); err != nil {
			return err
		}
		if why := c.WhyNot(loom.ChangeEdit, nil); why != "" {
			return loom.NewError(loom.Conflict, "%s", why)
		}
		in, err := in.since(*c)
		if err != nil {
			return err
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
		if in.Repair != nil {
			c.Repair = *in.Repair
		}
		if in.Owner != nil {
			c.Owner.User = *in.Owner
		}
		return nil
	})
}

// checkOwner finds why a user cannot be given a cluster of a template, and keeps him from being
// changed or removed meanwhile. Only administrators learn which users there are.
func (u *Clusters) checkOwner(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, id loom.UserID, template string) ([]loom.FieldError, error) {
	refuse := func(format string, args ...any) []loom.FieldError {
		return []loom.FieldError{{Field: "ownerId", Message: fmt.Sprintf(format, args...)}}
	}
	if errs := checkStorable("ownerId", string(id)); len(errs) > 0 {
		return errs, nil
	}
	user, err := store.LockUser(ctx, tx, actor.Tenant, id)
	cannot := isNotFound(err) || err == nil && (user.Disabled || !user.MayCreate(template))
	switch {
	case cannot && actor.May(loom.Administer, actor.InTenant()) != nil:
		return refuse("There is no user with this id who may create clusters from the template “%s”.", template), nil
	case isNotFound(err):
		return refuse("There is no user “%.255s” in this tenant.", id), nil
	case err != nil:
		return nil, err
	case user.Disabled:
		return refuse("The user “%s” is disabled. Enable the user, or choose another one.", id), nil
	case cannot:
		return refuse("The user “%s” may not create clusters from the template “%s”. Give the user that role, or choose another one.", id, template), nil
	}
	return nil, nil
}

// edit does what needs no plan, under the lock of the cluster.
func (u *Clusters) edit(ctx context.Context, actor loom.Actor, id loom.ClusterID, apply func(tx *sqlx.Tx, c *loom.Cluster) error) (loom.Cluster, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.Cluster{}, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Cluster, error) {
		c, err := store.LockCluster(ctx, tx, actor.Tenant, id)
		if err := allowed(actor, loom.Operate, id, c.Object(), err); err != nil {
			return loom.Cluster{}, err
		}
		before := editable(c)
		if err := apply(tx, &c); err != nil {
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
	return map[string]any{"ownerId": c.Owner.User, "description": c.Description, "labels": c.Labels, "protected": c.Protected, "repair": c.Repair, "expireTime": expires}
}

// EditedText is what people write about a cluster.
type EditedText struct {
	Description string
	Labels      map[string]string
}

// EditConflict is the cause of a Conflict of Edit: somebody else wrote meanwhile about
// what was to be changed. Stored is what he wrote.
type EditConflict struct{ Stored EditedText }

// Error says that there are two texts.
func (e *EditConflict) Error() string { return "description or labels have changed" }

// since leaves out of an edit what says the same as what its author had seen: that stays
// as it is by now. Conflict, with an *EditConflict, where somebody else has changed what
// the author changed, to something else.
func (in EditInput) since(c loom.Cluster) (EditInput, error) {
	if in.Seen == nil {
		return in, nil
	}
	clash := false
	if in.Description != nil {
		if *in.Description == in.Seen.Description {
			in.Description = nil
		} else {
			clash = c.Description != in.Seen.Description && c.Description != *in.Description
		}
	}
	if in.Labels != nil {
		if maps.Equal(in.Labels, in.Seen.Labels) {
			in.Labels = nil
		} else if !maps.Equal(c.Labels, in.Seen.Labels) && !maps.Equal(c.Labels, in.Labels) {
			clash = true
		}
	}
	if clash {
		return in, &loom.Error{Kind: loom.Conflict, Err: &EditConflict{Stored: EditedText{Description: c.Description, Labels: c.Labels}},
			Message: "Somebody else has changed this since you began to write."}
	}
	return in, nil
}
