package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// testEvent is what X-Loom-Event says of a test; no operation has it.
const testEvent loom.HookEvent = "test"

// maxShown is how much of an answer a test shows, in bytes.
const maxShown = 2000

// Tried is what came of a test.
type Tried struct {
	// OK says that the endpoint answered 2xx; Problem says why not.
	OK      bool
	Problem string
	// Code is the status of the answer, 0 when there was none.
	Code int
	Took time.Duration
	// Body was sent, Answer is the beginning of what came back.
	Body, Answer string
}

// Sent is a delivery with its body.
type Sent struct {
	loom.Delivery
	Body string
}

// Delivery reads a delivery of a hook with the body that was, or will be, sent.
// NotFound.
func (u *Hooks) Delivery(ctx context.Context, actor loom.Actor, id loom.HookID, delivery loom.DeliveryID) (Sent, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return Sent{}, err
	}
	d, notice, err := store.SentDelivery(ctx, u.db, actor.Tenant, id, delivery)
	if errors.Is(err, loom.NotFound) {
		return Sent{}, loom.NewError(loom.NotFound, "The hook has no delivery %d.", delivery)
	}
	if err != nil {
		return Sent{}, err
	}
	body, err := u.opts.Body(notice, d, u.opts.PublicURL)
	if err != nil {
		return Sent{}, fmt.Errorf("make the body of delivery %d: %w", delivery, err)
	}
	return Sent{d, string(body)}, nil
}

// Test sends a notice about nothing to a hook, signed as all are, also to one that
// is off, and waits for the answer. It is no delivery and is not tried again. An
// endpoint that does not work is an answer, not an error. NotFound.
func (u *Hooks) Test(ctx context.Context, actor loom.Actor, id loom.HookID) (Tried, error) {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return Tried{}, err
	}
	h, err := store.HookByID(ctx, u.db, actor.Tenant, id)
	if err != nil {
		return Tried{}, noHook(id, err)
	}
	sealed, err := store.Secrets(ctx, u.db, actor.Tenant, store.HookSecrets(id))
	if err != nil {
		return Tried{}, err
	}
	key, err := u.ring.Open(actor.Tenant, store.HookSecrets(id), store.HookSecretField, sealed[store.HookSecretField])
	if err != nil {
		return Tried{}, fmt.Errorf("the secret of hook %d: %w", id, err)
	}
	now := time.Now()
	body, err := json.Marshal(map[string]any{
		"id": "0", "schema": 1, "event": testEvent, "time": now.UnixMilli(), "tenant": actor.TenantName,
		"message": "This is a test of the hook " + h.Name + "; no operation is concerned.",
	})
	if err != nil {
		return Tried{}, fmt.Errorf("make the body of a test: %w", err)
	}
	code, answer, failure := u.post(ctx, store.DueDelivery{Delivery: loom.Delivery{Hook: id, Event: testEvent}, To: h}, body, key)
	if ctx.Err() != nil {
		return Tried{}, ctx.Err()
	}
	t := Tried{OK: failure == nil && code >= 200 && code <= 299, Code: code, Took: time.Since(now), Body: string(body), Answer: shown(answer)}
	if !t.OK {
		t.Problem = trouble(code, failure)
	}
	result := map[bool]string{true: "ok", false: "failed"}[t.OK]
	return t, store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		return store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "test", Kind: "hook", Object: objectOf(id), Result: result, After: map[string]any{"code": code}})
	})
}

// shown is the beginning of an answer as text that can be shown.
func shown(answer string) string {
	answer = strings.ToValidUTF8(strings.ReplaceAll(answer, "\x00", ""), "�")
	if len(answer) <= maxShown {
		return answer
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(answer[cut]) {
		cut--
	}
	return answer[:cut] + "…"
}
