package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// How many wrong passwords have no consequence. Only the count of a name from one
// place is tight: all others can be filled by strangers.
const (
	freeOfPlace   = 5
	freeOfAddress = 50
	freeOfName    = 100
	signInWindow  = 10 * time.Minute
)

// nameHash stands for a user, known or not, in counts of failed sign-ins: the names
// come from outside and may be of any length.
func nameHash(tenant, user string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + user))
	return hex.EncodeToString(sum[:16])
}

// signInCounts gives what a sign-in from an address counts in. A browser that signed in
// before with that name counts by itself (device is its id, "" of others): no stranger
// holds it up, whatever they try from wherever.
func signInCounts(tenant, user, address, device string) []store.SignInCount {
	name := nameHash(tenant, user)
	if device != "" {
		return []store.SignInCount{{Subject: "device:" + name + ":" + device, Free: freeOfPlace}}
	}
	place := loom.PlaceOf(address)
	counts := []store.SignInCount{
		{Subject: "address:" + place, Free: freeOfAddress, Window: signInWindow},
		{Subject: "name:" + name, Free: freeOfName, Window: signInWindow},
		{Subject: "pair:" + name + ":" + place, Free: freeOfPlace},
	}
	if place == "" {
		return counts[1:]
	}
	return counts
}

// ownCounts gives what guesses of the present password count in, of somebody who is
// signed in: each session by itself and all tokens together, so that neither strangers nor
// the thief of a token or a session keep anybody from changing it.
func ownCounts(actor loom.Actor, user loom.UserID, session loom.Secret) []store.SignInCount {
	subject := "own:" + nameHash(actor.TenantName, string(user))
	switch {
	case actor.Token != 0:
		subject += ":tokens"
	case !session.IsZero():
		subject += ":" + SessionID(session)
	}
	return []store.SignInCount{{Subject: subject, Free: freeOfPlace}}
}

// beginSignIn counts the try, or gives Throttled.
func (a *Accounts) beginSignIn(ctx context.Context, counts []store.SignInCount) error {
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		wait, err := store.BeginSignIn(ctx, tx, counts)
		if err != nil || wait == 0 {
			return err
		}
		return &loom.Error{Kind: loom.Throttled, RetryAfter: wait,
			Message: "Too many wrong passwords; try again in " + itoa(int(wait.Seconds()+0.999)) + " s."}
	})
}

// Unlock forgets the wrong passwords of a user of a tenant by name, from wherever they
// came; for the command line. NotFound. What an address did with other names stays
// counted for ten minutes.
func (a *Accounts) Unlock(ctx context.Context, tenant string, user loom.UserID) error {
	t, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
	if err != nil {
		return named(err, tenant)
	}
	actor := loom.SystemActor(t.ID, t.Name)
	actor.Via = "cli"
	name := nameHash(t.Name, string(user))
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if _, err := store.User(ctx, tx, t.ID, user); err != nil {
			return noUserOf(err, user, t.Name)
		}
		n, err := store.ForgetSignIns(ctx, tx, "name:"+name, "pair:"+name+":", "device:"+name+":", "own:"+name)
		if err != nil {
			return err
		}
		return record(ctx, tx, actor, "unlock", "user", string(user), nil, map[string]any{"counts": n})
	})
}
