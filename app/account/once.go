package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Answer is the first answer to a request that carried an Idempotency-Key.
type Answer struct {
	Status   int
	Response []byte
	// Short is kept where there is no room for Response.
	Short []byte
}

const (
	// maxKeptAnswers are kept for a user, for each set of scopes that his tokens have.
	maxKeptAnswers = 1000
	// maxKeptBytes is how long the answers of a user are together, of all his tokens; later
	// ones are kept short.
	maxKeptBytes = 4 << 20
	// keptRetry is when a client may come back that has as many.
	keptRetry = time.Minute
)

// ownKey gives a key of an actor as it is stored: tokens with other scopes have keys of
// their own, so that they do not take those of one that may do more.
func ownKey(actor loom.Actor, key string) string {
	if actor.Scopes == nil || actor.MayAtAll(loom.Self) == nil {
		return key
	}
	return fmt.Sprintf("%s\n%s", slices.Sorted(slices.Values(actor.Scopes)), key)
}

// BeginOnce claims an Idempotency-Key of the actor for a request. It gives nil when the request is to be carried out, and then FinishOnce
// or ForgetOnce must follow; or the answer that was given before. Errors: Invalid
// for a bad key; Conflict; Throttled where too many are kept.
func (a *Accounts) BeginOnce(ctx context.Context, actor loom.Actor, key, path string, body []byte) (*Answer, error) {
	if len(key) < 1 || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, loom.InvalidFields([]loom.FieldError{{Field: "Idempotency-Key", Message: "An Idempotency-Key has 1 to 255 printable characters."}})
	}
	// A body may hold a password, so a plain hash of it would let one be guessed.
	// Who lost a role gets no answer of the time when he had it.
	hash, err := a.ring.MAC(a.ring.First(), []byte("body of an Idempotency-Key\x00"), fmt.Append(nil, actor.Role, actor.Grants, "\x00"), body)
	if err != nil {
		return nil, err
	}
	kept, err := store.InTx(ctx, a.db, func(tx *sqlx.Tx) (*store.KeptAnswer, error) {
		kept, err := store.BeginIdempotent(ctx, tx, actor.Tenant, actor.User, ownKey(actor, key), path, hash)
		if err != nil || kept != nil {
			return kept, err
		}
		n, err := store.CountIdempotent(ctx, tx, actor.Tenant, actor.User, ownKey(actor, ""))
		if err == nil && n > maxKeptAnswers {
			return nil, &loom.Error{Kind: loom.Throttled, RetryAfter: keptRetry, Message: fmt.Sprintf(
				"The answers to %d of your requests of the last 24 hours are kept for their Idempotency-Keys, the most there are. Leave the header out, or use fewer keys.", maxKeptAnswers)}
		}
		return nil, err
	})
	if err != nil || kept == nil {
		return nil, err
	}
	return &Answer{Status: kept.Status, Response: kept.Response}, nil
}

// FinishOnce keeps the answer of a request that succeeded, for a day. Leave
// secrets that are shown once out of it.
func (a *Accounts) FinishOnce(ctx context.Context, actor loom.Actor, key string, answer Answer) error {
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		return store.FinishIdempotent(ctx, tx, actor.Tenant, actor.User, ownKey(actor, key), store.KeptAnswer{Status: answer.Status, Response: answer.Response}, answer.Short, maxKeptBytes)
	})
}

// ForgetOnce gives a key back after a request that failed.
func (a *Accounts) ForgetOnce(ctx context.Context, actor loom.Actor, key string) error {
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		return store.ForgetIdempotent(ctx, tx, actor.Tenant, actor.User, ownKey(actor, key))
	})
}
