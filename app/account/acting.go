package account

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

// ActingLife is how long a session acts as another at most.
const ActingLife = 30 * time.Minute

// maxReason is how long the reason to act as another may be, in bytes.
const maxReason = 200

// acting turns the actor of a session into whom it acts as, if it does. A tenant
// whose administrator is gone or disabled meanwhile is acted in no longer.
func (a *Accounts) acting(ctx context.Context, actor loom.Actor, session loom.Session, who store.SignedIn) (loom.Actor, loom.Session, error) {
	if who.Acting == "" || actor.May(loom.Install, loom.Installation) != nil {
		return actor, session, nil
	}
	as, err := a.actAs(ctx, actor, TokenInput{AsTenant: who.Acting, AsUser: string(loom.AdminUser)})
	if errors.Is(err, loom.NotFound) || errors.Is(err, loom.Forbidden) {
		return actor, session, nil
	}
	if err != nil {
		return loom.Actor{}, loom.Session{}, err
	}
	session.ActingUntil = who.ActingUntil
	return as, session, nil
}

// himself gives who really acts in a session.
func himself(actor loom.Actor) loom.Actor {
	if actor.By == (loom.Account{}) {
		return actor
	}
	return loom.Actor{Tenant: actor.By.Tenant, TenantName: string(actor.By.Tenant), User: actor.By.User, Role: actor.ByRole, Via: "session", Address: actor.Address, RequestID: actor.RequestID}
}

// ActAsTenant lets the session of a cookie act as the administrator of a tenant, for
// half an hour, and says until when; superadmins only. Both tenants keep a record of
// it with the reason, and every change names who really made it. Errors: Forbidden, NotFound for an
// unknown tenant or one without an administrator, Invalid for one's own and without a reason.
func (a *Accounts) ActAsTenant(ctx context.Context, actor loom.Actor, cookie loom.Secret, tenant, reason string) (time.Time, error) {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return time.Time{}, err
	}
	if tenant == actor.TenantName {
		return time.Time{}, loom.NewError(loom.Invalid, "You are an administrator of the tenant “%s” already.", tenant)
	}
	reason = strings.TrimSpace(reason)
	if reason == "" || len(reason) > maxReason {
		return time.Time{}, loom.InvalidFields([]loom.FieldError{{Field: "reason", Message: fmt.Sprintf("Enter a reason of 1–%d characters.", maxReason)}})
	}
	as, err := a.actAs(ctx, actor, TokenInput{AsTenant: tenant, AsUser: string(loom.AdminUser)})
	if err != nil {
		return time.Time{}, err
	}
	as.RequestID = actor.RequestID
	until, err := store.InTx(ctx, a.db, func(tx *sqlx.Tx) (time.Time, error) {
		until, err := store.BeginActing(ctx, tx, actor.Tenant, hashOf(cookie), as.Tenant, ActingLife)
		if err != nil {
			return until, err
		}
		if err := record(ctx, tx, actor, "act_as", "tenant", tenant, nil, map[string]any{"until": until.UnixMilli(), "reason": reason}); err != nil {
			return until, err
		}
		return until, record(ctx, tx, as, "act_as", "user", string(as.User), nil, map[string]any{"by": actor.User, "tenant": actor.TenantName, "until": until.UnixMilli(), "reason": reason})
	})
	if isNotFound(err) {
		return time.Time{}, loom.NewError(loom.Unauthenticated, "You are not signed in.")
	}
	return until, err
}

// EndActing lets the session of a cookie act for its user again; nothing happens to
// one that does.
func (a *Accounts) EndActing(ctx context.Context, actor loom.Actor, cookie loom.Secret) error {
	if actor.By == (loom.Account{}) {
		return nil
	}
	own := himself(actor)
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.EndActing(ctx, tx, own.Tenant, hashOf(cookie)); err != nil {
			return err
		}
		return record(ctx, tx, own, "act_as", "tenant", actor.TenantName, nil, map[string]any{"ended": true})
	})
}
