package account

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// SetPreferences stores how the actor wants pages to look and behave. Invalid, by
// field of the form.
func (a *Accounts) SetPreferences(ctx context.Context, actor loom.Actor, p loom.ViewPreferences) error {
	if err := loom.InvalidFields(p.Check()); err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if _, err := store.LockUser(ctx, tx, actor.Tenant, actor.User); err != nil {
			return err
		}
		if err := store.SetPreferences(ctx, tx, actor.Tenant, actor.User, p); err != nil {
			return err
		}
		return record(ctx, tx, actor, "update", "preferences", string(actor.User), nil, p)
	})
}

// ExtendSession lets the session of a cookie go on for SessionLife from now, at most
// KeptSessionLife from when it began, and says until when. Unauthenticated when it is
// over.
func (a *Accounts) ExtendSession(ctx context.Context, actor loom.Actor, cookie loom.Secret) (time.Time, error) {
	return store.InTx(ctx, a.db, func(tx *sqlx.Tx) (time.Time, error) {
		if provider, _, err := store.SessionProvider(ctx, tx, actor.Tenant, hashOf(cookie)); err == nil && provider != "" {
			return time.Time{}, loom.NewError(loom.Conflict, "You signed in with your organization. To stay signed in, sign in there again.")
		}
		expires, err := store.ExtendSession(ctx, tx, actor.Tenant, hashOf(cookie), SessionLife, KeptSessionLife)
		if isNotFound(err) {
			return time.Time{}, loom.NewError(loom.Unauthenticated, "You are not signed in.")
		}
		if err != nil {
			return time.Time{}, err
		}
		return expires, record(ctx, tx, actor, "extend", "session", string(actor.User), nil, map[string]any{"expires": expires.UnixMilli()})
	})
}
