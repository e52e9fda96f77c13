// Package hook holds the use cases of hooks: what administrators do to them and
// to their deliveries, and sending one delivery to its endpoint.
//
// It decides nothing about operations: what an answer means to one that waits
// for it is carried out by package execution, with the outcome that Send gives.
// It must not follow redirects nor call private networks that the installation
// does not allow. A newcomer's usual mistake: checking the address of a URL once.
// A name can resolve to another address each time, so the address that counts is
// that of the connection.
package hook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/places"
	"loom/app/secret"
	"loom/app/store"
)

// Options of the use cases; zero values take the defaults.
type Options struct {
	// Reach says which addresses hooks may call.
	Reach loom.Reach
	// PublicURL is where clients reach Loom, for the links in bodies.
	PublicURL string
	// Body makes the body of a delivery; only what sends needs it.
	Body func(n loom.Notice, d loom.Delivery, publicURL string) ([]byte, error)
	// Timeout is how long an endpoint may take to answer; 0 means 10 s.
	Timeout time.Duration
}

// Hooks are the use cases. It is safe for concurrent use.
type Hooks struct {
	db     *sqlx.DB
	ring   *secret.Ring
	opts   Options
	client *http.Client
	// calling are the endpoints that are called at this moment.
	calling *places.Places
}

// Calls is how many endpoints a process calls at once; those of one tenant get a
// quarter, so that endpoints which never answer hold up nobody else's.
const Calls = 20

// maxReplays is how many notices of a hook may wait when one is replayed.
const maxReplays = 20

// New makes the use cases on a database; ring seals the secrets of hooks.
func New(db *sqlx.DB, ring *secret.Ring, opts Options) *Hooks {
	if opts.Timeout <= 0 {
		opts.Timeout = 10 * time.Second
	}
	opts.PublicURL = strings.TrimSuffix(opts.PublicURL, "/")
	return &Hooks{db: db, ring: ring, opts: opts, client: newClient(opts.Reach, opts.Timeout), calling: places.NewFor(Calls, Calls/4)}
}

// Input is a hook as an administrator wants it.
type Input struct {
	Name      string
	URL       string
	Events    []loom.HookEvent // none: all
	Actions   []loom.ClusterAction
	Templates []string
	// Secret signs; nil makes one up for a new hook and keeps that of an old one.
	Secret     *string
	Blocking   bool
	OnTimeout  string // "": refuse
	Global     bool
	LegacyBody bool
	Enabled    bool
}

// Filter narrows the log of a hook, List is a page of it.
type (
	Filter = store.DeliveryFilter
	List   = store.DeliveryList
)

// maxHooks bounds the hooks of a tenant: each is asked by every operation. Of those with the
// predecessor's body, which holds a whole cluster, there are fewer.
const maxHooks, maxLegacyHooks = 100, 10

// roomFor returns Exhausted where a tenant has too many hooks with the predecessor's body for
// one more.
func roomFor(ctx context.Context, tx *sqlx.Tx, h loom.Hook) error {
	there, err := store.Hooks(ctx, tx, h.Tenant)
	if err != nil {
		return err
	}
	legacy := 0
	for _, other := range there {
		if other.LegacyBody && other.ID != h.ID {
			legacy++
		}
	}
	switch {
	case h.ID == 0 && len(there) >= maxHooks:
		return loom.NewError(loom.Exhausted, "A tenant has at most %d hooks; delete one first.", maxHooks)
	case h.LegacyBody && legacy >= maxLegacyHooks:
		return loom.NewError(loom.Exhausted, "A tenant has at most %d hooks with the predecessor's body; take the new body, or delete one first.", maxLegacyHooks)
	}
	return nil
}

// Hooks lists the hooks of the actor's tenant; a superadmin's include the global
// ones.
func (u *Hooks) Hooks(ctx context.Context, actor loom.Actor) ([]loom.Hook, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.Hooks(ctx, u.db, actor.Tenant)
}

// Outcomes are what came of the deliveries of the hooks of the actor's tenant.
func (u *Hooks) Outcomes(ctx context.Context, actor loom.Actor) (map[loom.HookID]store.HookOutcome, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.HookOutcomes(ctx, u.db, actor.Tenant)
}

// Hook reads a hook of the actor's tenant. NotFound.
func (u *Hooks) Hook(ctx context.Context, actor loom.Actor, id loom.HookID) (loom.Hook, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return loom.Hook{}, err
	}
	h, err := store.HookByID(ctx, u.db, actor.Tenant, id)
	return h, noHook(id, err)
}

// Create stores a hook. It gives the secret where it was made up: it is shown
// this once. Errors: Invalid, Forbidden (global ones are a superadmin's),
// Exhausted.
func (u *Hooks) Create(ctx context.Context, actor loom.Actor, in Input) (loom.Hook, loom.Secret, error) {
	h, err := u.checkInput(actor, in)
	if err != nil {
		return loom.Hook{}, loom.Secret{}, err
	}
	key := newSecret()
	shown := key
	if in.Secret != nil {
		key, shown = loom.NewSecret(*in.Secret), loom.Secret{}
	}
	h, err = store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Hook, error) {
		// Creates of a tenant queue, so that its limit holds.
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return loom.Hook{}, err
		}
		h.Tenant = actor.Tenant
		if err := roomFor(ctx, tx, h); err != nil {
			return loom.Hook{}, err
		}
		stored, err := store.InsertHook(ctx, tx, actor.Tenant, h)
		if err != nil {
			return loom.Hook{}, err
		}
		if err := u.seal(ctx, tx, actor, stored.ID, key); err != nil {
			return loom.Hook{}, err
		}
		return stored, record(ctx, tx, actor, "create", objectOf(stored.ID), nil, shownAs(stored))
	})
	return h, shown, err
}

// Put replaces all of a hook but its secret, which stays unless another is given.
// Errors: Invalid, Forbidden, NotFound.
func (u *Hooks) Put(ctx context.Context, actor loom.Actor, id loom.HookID, in Input) (loom.Hook, error) {
	h, err := u.checkInput(actor, in)
	if err != nil {
		return loom.Hook{}, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Hook, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return loom.Hook{}, err
		}
		before, err := store.LockHook(ctx, tx, actor.Tenant, id)
		if err != nil {
			return loom.Hook{}, noHook(id, err)
		}
		h.ID, h.Tenant, h.Created = before.ID, before.Tenant, before.Created
		if h.LegacyBody && !before.LegacyBody {
			if err := roomFor(ctx, tx, h); err != nil {
				return loom.Hook{}, err
			}
		}
		if err := store.UpdateHook(ctx, tx, actor.Tenant, h); err != nil {
			return loom.Hook{}, err
		}
		after := shownAs(h)
		if in.Secret != nil {
			if err := u.seal(ctx, tx, actor, id, loom.NewSecret(*in.Secret)); err != nil {
				return loom.Hook{}, err
			}
			after["newSecret"] = true
		}
		return h, record(ctx, tx, actor, "update", objectOf(id), shownAs(before), after)
	})
}

// Delete deletes a hook; what was still to be sent to it is not. An operation
// that waited for its answer goes on. NotFound.
func (u *Hooks) Delete(ctx context.Context, actor loom.Actor, id loom.HookID) error {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		before, err := store.LockHook(ctx, tx, actor.Tenant, id)
		if err != nil {
			return noHook(id, err)
		}
		if err := store.DeleteHook(ctx, tx, actor.Tenant, id); err != nil {
			return err
		}
		return record(ctx, tx, actor, "delete", objectOf(id), shownAs(before), nil)
	})
}

// Deliveries reads a page of the log of a hook, newest first. Errors: NotFound,
// Invalid.
func (u *Hooks) Deliveries(ctx context.Context, actor loom.Actor, id loom.HookID, f Filter, page loom.Page) (List, error) {
	if _, err := u.Hook(ctx, actor, id); err != nil {
		return List{}, err
	}
	return store.Deliveries(ctx, u.db, actor.Tenant, id, f, page)
}

// Replay sends the notice of a delivery once more and gives the new delivery. No
// operation waits for it. Errors: NotFound, Conflict for a hook that is off, Exhausted.
func (u *Hooks) Replay(ctx context.Context, actor loom.Actor, id loom.HookID, delivery loom.DeliveryID) (loom.Delivery, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return loom.Delivery{}, err
	}
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.Delivery, error) {
		h, err := store.HookByID(ctx, tx, actor.Tenant, id)
		if err != nil {
			return loom.Delivery{}, noHook(id, err)
		}
		if !h.Enabled {
			return loom.Delivery{}, loom.NewError(loom.Conflict, "The hook “%s” is off; switch it on first.", h.Name)
		}
		waiting, err := store.WaitingDeliveries(ctx, tx, actor.Tenant, id)
		if err != nil {
			return loom.Delivery{}, err
		}
		if waiting >= maxReplays {
			return loom.Delivery{}, loom.NewError(loom.Exhausted, "%d notices of the hook “%s” wait to be sent already; replay this one once they are sent.", waiting, h.Name)
		}
		d, err := store.ReplayDelivery(ctx, tx, actor.Tenant, id, delivery)
		if errors.Is(err, loom.NotFound) {
			return d, loom.NewError(loom.NotFound, "The hook has no delivery %d.", delivery)
		}
		if err != nil {
			return d, err
		}
		return d, record(ctx, tx, actor, "create", fmt.Sprintf("%d/deliveries/%d", id, d.ID), nil, map[string]any{"replayOf": itoa(int64(delivery))})
	})
}

func (u *Hooks) seal(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, id loom.HookID, key loom.Secret) error {
	entity := store.HookSecrets(id)
	sealed, err := u.ring.Seal(actor.Tenant, entity, store.HookSecretField, key)
	if err != nil {
		return fmt.Errorf("seal the secret of hook %d: %w", id, err)
	}
	return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, map[string][]byte{store.HookSecretField: sealed})
}

// newSecret makes up a secret of 256 bits.
func newSecret() loom.Secret {
	var key [32]byte
	rand.Read(key[:]) //nolint:errcheck // never fails (crypto/rand)
	return loom.NewSecret(base64.RawURLEncoding.EncodeToString(key[:]))
}

func noHook(id loom.HookID, err error) error {
	if errors.Is(err, loom.NotFound) {
		return loom.NewError(loom.NotFound, "There is no hook %d.", id)
	}
	return err
}

func record(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, verb, object string, before, after any) error {
	return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: verb, Kind: "hook", Object: object, Result: "ok", Before: before, After: after})
}

func objectOf(id loom.HookID) string { return itoa(int64(id)) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// shownAs is a hook in the audit.
func shownAs(h loom.Hook) map[string]any {
	return map[string]any{
		"name": h.Name, "url": h.URL, "events": h.Events, "actions": h.Actions, "templates": h.Templates, "blocking": h.Blocking,
		"onTimeout": h.OnTimeout, "global": h.Global, "legacyBody": h.LegacyBody, "enabled": h.Enabled,
	}
}
