package account

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// maxDraft is the largest draft, in bytes: a document and what is around it.
const maxDraft = 512 << 10

// draftField is the name of the one sealed field of a draft.
const draftField = "body"

// Draft is a form that somebody began and did not save: its values by name. Saved
// is when it was kept last, by the database clock.
type Draft struct {
	Values map[string][]string
	Saved  time.Time
}

// SaveDraft keeps a draft of the actor under a subject, such as "services/nginx",
// in place of the one before. It is sealed: who writes it leaves secrets out, but
// no schema knows what people paste. Drafts are nobody else's concern, so they leave
// no trace in the audit. Invalid when it is too large.
func (a *Accounts) SaveDraft(ctx context.Context, actor loom.Actor, subject string, values map[string][]string) error {
	body, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encode a draft: %w", err)
	}
	if len(body) > maxDraft {
		return loom.NewError(loom.Invalid, "The draft is larger than %d KiB, so it is not kept.", maxDraft>>10)
	}
	entity := store.DraftEntity(actor.User, subject)
	sealed, err := a.ring.Seal(actor.Tenant, entity, draftField, loom.NewSecret(string(body)))
	if err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, map[string][]byte{draftField: sealed})
	})
}

// Draft gives the draft of the actor under a subject. NotFound when there is none,
// and when it is too old.
func (a *Accounts) Draft(ctx context.Context, actor loom.Actor, subject string) (Draft, error) {
	entity := store.DraftEntity(actor.User, subject)
	sealed, saved, err := store.Draft(ctx, a.db, actor.Tenant, entity, draftField, loom.DraftLife)
	if err != nil {
		return Draft{}, err
	}
	body, err := a.ring.Open(actor.Tenant, entity, draftField, sealed)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Saved: saved}
	if err := json.Unmarshal([]byte(body.Reveal()), &d.Values); err != nil {
		return Draft{}, fmt.Errorf("read a draft: %w", err)
	}
	return d, nil
}

// DropDraft forgets the draft of the actor under a subject; that there is none is
// no error.
func (a *Accounts) DropDraft(ctx context.Context, actor loom.Actor, subject string) error {
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		return store.DeleteSecrets(ctx, tx, actor.Tenant, store.DraftEntity(actor.User, subject))
	})
}
