// Package account holds the use cases around who acts: tenants with quotas and
// bootstrap, users, sign-in with sessions, API tokens, and answers kept for
// repeated requests.
//
// It makes the loom.Actor that every other use case takes. It renders nothing,
// sets no cookie and reads no header: surfaces hand in what they were given. A
// newcomer's usual mistake: looking up a role by user name; roles are stored, and
// an administrator of loom.SuperTenant is a superadmin.
package account

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/idp"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
)

// Accounts is the way in to the use cases; make it with New.
type Accounts struct {
	db   *sqlx.DB
	kept *store.Kept // for what every request reads
	ring *secret.Ring
	// Resources copies plugin resources when a tenant is made by bootstrap; nil is
	// refused once there are any.
	Resources ResourceCopier
	// Identity calls identity providers, which know Loom by PublicURL; only what serves pages and
	// the API sets them. By default providers are at public addresses.
	Identity  *idp.Client
	PublicURL string
	// SignedIn, if set, hears of each sign-in by password, once it is stored.
	SignedIn  func(ctx context.Context, tenant string, user loom.UserID)
	passwords *passwords
	// acted says when this process last recorded that a token acted as another.
	actingMu sync.Mutex
	acted    map[acted]time.Time
}

// ResourceCopier copies the content of a plugin resource for another tenant and
// gives the key of the copy in the bucket. The catalog is one.
type ResourceCopier interface {
	CopyObject(ctx context.Context, r loom.Resource, to loom.TenantID) (object string, err error)
}

// New makes the use cases; set Resources where tenants are bootstrapped.
func New(db *sqlx.DB, ring *secret.Ring) *Accounts {
	return &Accounts{db: db, kept: store.Keep(db), ring: ring, passwords: newPasswords(), acted: map[acted]time.Time{}, Identity: idp.New(idp.Options{})}
}

// record writes the audit row of a change.
func record(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, verb, kind, object string, before, after any) error {
	return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: verb, Kind: kind, Object: object, Before: before, After: after})
}

// shownUser is a user as the API shows him, for the audit.
func shownUser(u loom.User) map[string]any {
	return map[string]any{
		"id": u.ID, "role": u.Role, "displayName": u.DisplayName, "email": u.Email, "disabled": u.Disabled, "sshKeys": u.SSHKeys,
	}
}

// keepChanges leaves in both what differs between them, and the id.
func keepChanges(before, after map[string]any) {
	for name, was := range before {
		if now, there := after[name]; there && name != "id" && reflect.DeepEqual(was, now) {
			delete(before, name)
			delete(after, name)
		}
	}
}

// isNotFound is how "no such secret" becomes "who are you".
func isNotFound(err error) bool { return errors.Is(err, loom.NotFound) }
