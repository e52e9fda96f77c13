package account

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// MaxProfile is the largest profile, in bytes of JSON.
const MaxProfile = 64 << 10

// Profile gives the free-form JSON object that the actor keeps, numbers as they
// were written. NotFound when there is none.
func (a *Accounts) Profile(ctx context.Context, actor loom.Actor) (json.RawMessage, error) {
	if err := actor.May(loom.Profile.Reading(), actor.Mine()); err != nil {
		return nil, err
	}
	profile, err := store.Profile(ctx, a.db, actor.Tenant, actor.User)
	if err == nil && profile == nil {
		return nil, loom.NewError(loom.NotFound, "You have not stored a profile.")
	}
	return profile, err
}

// SetProfile replaces the actor's profile; fields come from lenient.Read, so that
// numbers stay as they were written. Nil takes the profile away. Errors:
// Forbidden, Invalid for one that is too large.
func (a *Accounts) SetProfile(ctx context.Context, actor loom.Actor, fields map[string]any) error {
	if err := actor.May(loom.Profile, actor.Mine()); err != nil {
		return err
	}
	var profile []byte
	if fields != nil {
		var body bytes.Buffer
		encoder := json.NewEncoder(&body)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(fields); err != nil {
			return err
		}
		if profile = bytes.TrimSpace(body.Bytes()); len(profile) > MaxProfile {
			return loom.NewError(loom.Invalid, "A profile has at most %d bytes; this one has %d.", MaxProfile, len(profile))
		}
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if _, err := store.LockUser(ctx, tx, actor.Tenant, actor.User); err != nil {
			return err
		}
		before, err := store.Profile(ctx, tx, actor.Tenant, actor.User)
		if err != nil || bytes.Equal(before, profile) {
			return err
		}
		if err := store.SetProfile(ctx, tx, actor.Tenant, actor.User, profile); err != nil {
			return err
		}
		verb := "update"
		switch {
		case before == nil:
			verb = "create"
		case profile == nil:
			verb = "delete"
		}
		return record(ctx, tx, actor, verb, "profile", string(actor.User), shownProfile(before), shownProfile(profile))
	})
}

// shownProfile is a profile for the audit: what is in it is nobody else's business.
func shownProfile(profile []byte) any {
	if profile == nil {
		return nil
	}
	return map[string]any{"bytes": len(profile)}
}
