package account

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// AuditInput asks for a part of the audit; empty parts mean any. Tenant is "" for
// the actor's own, a name, or "*" for all. A name that no tenant has now stands for
// the deleted ones that had it.
type AuditInput struct {
	Page   loom.Page
	Tenant string
	AuditFilter
}

// AuditFilter limits a list of the audit.
type AuditFilter = store.AuditFilter

// AuditList is a page of the audit, the newest entry first.
type AuditList = store.AuditList

// Audit lists entries: users see what they did themselves, administrators their
// tenant's, a superadmin those of any tenant. Errors: Forbidden, NotFound for a
// tenant that never was, Invalid for a cursor of another list.
func (a *Accounts) Audit(ctx context.Context, actor loom.Actor, in AuditInput) (AuditList, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return AuditList{}, err
	}
	tenant := actor.Tenant
	if in.Tenant != "" && in.Tenant != actor.TenantName {
		if err := mayReadTenants(actor); err != nil {
			return AuditList{}, err
		}
		if in.Tenant == "*" {
			return store.AuditAllTenants(ctx, a.db, in.AuditFilter, in.Page)
		}
		found, err := store.TenantByNameAllTenants(ctx, a.db, in.Tenant)
		if isNotFound(err) {
			return a.auditOfDeleted(ctx, in)
		}
		if err != nil {
			return AuditList{}, named(err, in.Tenant)
		}
		tenant = found.ID
	}
	if actor.May(loom.Administer.Reading(), actor.InTenant()) != nil {
		own := []string{string(actor.User)}
		if len(in.Actors) > 0 && !slices.Contains(in.Actors, own[0]) {
			return AuditList{}, nil // what others did is none of a user's business
		}
		in.Actors = own
		// Another of that name may have been there before.
		self, err := store.User(ctx, a.db, actor.Tenant, actor.User)
		if err != nil {
			return AuditList{}, err
		}
		if in.Since.Before(self.Created) {
			in.Since = self.Created
		}
	}
	return store.Audit(ctx, a.db, tenant, in.AuditFilter, in.Page)
}

// AuditValues are what a list of the audit can be limited to.
type AuditValues = store.AuditValues

// AuditValues reads what the newest entries say of those that Audit would list in a tenant: the
// actor's own for "", all for "*". Those of deleted tenants have none. Errors: Forbidden.
func (a *Accounts) AuditValues(ctx context.Context, actor loom.Actor, tenant string) (AuditValues, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return AuditValues{}, err
	}
	if tenant != "" && tenant != actor.TenantName {
		if err := mayReadTenants(actor); err != nil {
			return AuditValues{}, err
		}
		if tenant == "*" {
			return store.AuditValuesAllTenants(ctx, a.db)
		}
		found, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
		if isNotFound(err) {
			return AuditValues{}, nil
		}
		if err != nil {
			return AuditValues{}, err
		}
		return store.AuditValuesOf(ctx, a.db, found.ID, "")
	}
	if actor.May(loom.Administer.Reading(), actor.InTenant()) != nil {
		return store.AuditValuesOf(ctx, a.db, actor.Tenant, actor.User)
	}
	return store.AuditValuesOf(ctx, a.db, actor.Tenant, "")
}

// auditOfDeleted lists the entries of tenants that are no more. NotFound.
func (a *Accounts) auditOfDeleted(ctx context.Context, in AuditInput) (AuditList, error) {
	was, err := store.TenantEverExistedAllTenants(ctx, a.db, in.Tenant)
	if err != nil {
		return AuditList{}, err
	}
	if !was {
		return AuditList{}, loom.NewError(loom.NotFound, "There is no tenant “%s”, and there never was one.", in.Tenant)
	}
	return store.AuditDeletedAllTenants(ctx, a.db, in.Tenant, in.AuditFilter, in.Page)
}

// refusedEvery is how long after a refused act the next of its kind by the same
// user is not recorded again.
const refusedEvery = 10 * time.Minute

// RecordRefused keeps an act that a known actor asked for and that was refused to
// him, at most one of a verb and kind in ten minutes.
func (a *Accounts) RecordRefused(ctx context.Context, actor loom.Actor, verb, kind, object, why string) error {
	why = loom.Cut(why, 3*loom.MaxRecorded)
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		return store.InsertRefusal(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: verb, Kind: kind, Object: object, Result: "refused", After: map[string]any{"reason": why},
		}, refusedEvery)
	})
}

// refusedSignIn notes a sign-in with a wrong password, or of a disabled user. For
// a user that is not there it writes too, though nothing that stays: the answer
// shall take as long.
func (a *Accounts) refusedSignIn(ctx context.Context, tenant loom.Tenant, user loom.UserID, counts []store.SignInCount, address, why string) error {
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.TouchSignIn(ctx, tx, counts); err != nil {
			return err
		}
		if why == "" {
			return nil
		}
		return store.InsertRefusal(ctx, tx, loom.AuditEntry{
			Actor: loom.Actor{Tenant: tenant.ID, TenantName: tenant.Name, User: user, Via: "session", Address: address},
			Verb:  "sign_in", Kind: "session", Object: string(user), Result: "refused", After: map[string]any{"reason": why},
		}, refusedEvery)
	})
}
