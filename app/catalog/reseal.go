package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jmoiron/sqlx"
	"gocloud.dev/blob"

	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
)

// resealBatch is how many sealed values are read at once.
const resealBatch = 200

// Resealed is what one pass over all sealed values did.
type Resealed struct {
	// Values of the database and Objects of the bucket were sealed anew.
	Values, Objects int
	// Moved were changed by somebody else meanwhile: the next pass looks at them.
	Moved int
	// Lost says which could not be opened, and why; they stay as they are.
	Lost []string
}

// Left reports whether another pass may find something.
func (r Resealed) Left() bool { return r.Values+r.Objects+r.Moved > 0 }

// Add counts what another pass did.
func (r *Resealed) Add(o Resealed) {
	r.Values += o.Values
	r.Objects += o.Objects
	r.Moved, r.Lost = o.Moved, o.Lost
}

// Reseal goes once over everything that is sealed and seals what is under another
// key with the first one. Others may read and write meanwhile, also other calls
// of Reseal; one that was broken off leaves nothing half done.
func (c *Catalog) Reseal(ctx context.Context) (Resealed, error) {
	var done Resealed
	if err := c.resealValues(ctx, &done); err != nil {
		return done, err
	}
	return done, c.resealObjects(ctx, &done)
}

func (c *Catalog) resealValues(ctx context.Context, done *Resealed) error {
	first := c.ring.First()
	var after store.SecretRow
	for {
		rows, err := store.SecretsOfOtherKeysAllTenants(ctx, c.db, first[:], after, resealBatch)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row
			if err := c.resealValue(ctx, row, done); err != nil {
				return err
			}
		}
		if len(rows) < resealBatch {
			return nil
		}
	}
}

func (c *Catalog) resealValue(ctx context.Context, row store.SecretRow, done *Resealed) error {
	plain, err := c.ring.Open(row.Tenant, row.Entity, row.Field, row.Sealed)
	if err != nil {
		done.Lost = append(done.Lost, fmt.Sprintf("%s of %s in tenant %s: %v", row.Field, row.Entity, row.Tenant, cause(err)))
		return nil
	}
	sealed, err := c.ring.Seal(row.Tenant, row.Entity, row.Field, plain)
	if err != nil {
		return err
	}
	// A transaction for each: nothing is locked that others wait for.
	stored, err := store.InTx(ctx, c.db, func(tx *sqlx.Tx) (bool, error) {
		return store.ResealSecretAllTenants(ctx, tx, row, sealed)
	})
	switch {
	case err != nil:
		return err
	case stored:
		done.Values++
	default:
		done.Moved++
	}
	return nil
}

// resealObjects replaces objects by themselves, sealed anew. Objects never change
// but for this, so there is nothing to overwrite. One that was deleted at the same
// moment comes back without a row, and is swept.
func (c *Catalog) resealObjects(ctx context.Context, done *Resealed) error {
	objects, err := store.SealedObjectsAllTenants(ctx, c.db)
	if err != nil {
		return err
	}
	for _, object := range objects {
		id, err := c.objectKeyID(ctx, object)
		if err == nil && id == c.ring.First() {
			continue
		}
		if err == nil {
			err = c.resealObject(ctx, object)
		}
		switch {
		case err == nil:
			done.Objects++
		case ctx.Err() != nil:
			return err
		case errors.Is(err, loom.NotFound): // deleted, or lost long ago
		case errors.Is(err, secret.ErrBroken), errors.Is(err, secret.ErrUnknownKey):
			done.Lost = append(done.Lost, fmt.Sprintf("resource %s: %v", object, cause(err)))
		default:
			return fmt.Errorf("reseal the resource %s: %w", object, err)
		}
	}
	return nil
}

func (c *Catalog) objectKeyID(ctx context.Context, object string) (secret.KeyID, error) {
	r, err := c.openObject(ctx, object, 0, secret.HeadSize)
	if err != nil {
		return secret.KeyID{}, err
	}
	defer r.Close() //nolint:errcheck // read to the end or given up
	head, err := io.ReadAll(r)
	if err != nil {
		return secret.KeyID{}, err
	}
	id, ok := secret.KeyOf(head)
	if !ok {
		return id, secret.ErrBroken
	}
	return id, nil
}

func (c *Catalog) resealObject(ctx context.Context, object string) error {
	sealed, err := c.bucket.ReadAll(ctx, object)
	if err != nil {
		return c.failure(ctx, err)
	}
	plain, err := c.ring.OpenBytes(object, sealed)
	if err != nil {
		return err
	}
	if sealed, err = c.ring.SealBytes(object, plain); err != nil {
		return err
	}
	// Written beside and put in place as a whole, by every kind of bucket.
	return c.failure(ctx, c.bucket.WriteAll(ctx, object, sealed, &blob.WriterOptions{ContentType: "application/octet-stream"}))
}

// cause is the last of a chain of errors: the rest is said already.
func cause(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// KeyUse is how much hangs on a sealing key: sealed values, sealed objects of the
// bucket, and linked entries of the audit, which its key authenticates.
type KeyUse struct{ Values, Objects, Audit int }

// KeyUses counts what hangs on each key, by its id in hexadecimal digits. What is
// no sealed value counts under "".
func (c *Catalog) KeyUses(ctx context.Context) (map[string]KeyUse, error) {
	uses := map[string]KeyUse{}
	values, err := store.SecretKeysAllTenants(ctx, c.db)
	if err != nil {
		return nil, err
	}
	for key, n := range values {
		u := uses[key]
		u.Values = n
		uses[key] = u
	}
	linked, err := store.AuditKeysAllTenants(ctx, c.db)
	if err != nil {
		return nil, err
	}
	for key, n := range linked {
		u := uses[key]
		u.Audit = n
		uses[key] = u
	}
	objects, err := store.SealedObjectsAllTenants(ctx, c.db)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		name := ""
		id, err := c.objectKeyID(ctx, object)
		switch {
		case err == nil:
			name = id.String()
		case errors.Is(err, loom.NotFound):
			continue
		case !errors.Is(err, secret.ErrBroken):
			return nil, fmt.Errorf("read the resource %s: %w", object, err)
		}
		u := uses[name]
		u.Objects++
		uses[name] = u
	}
	return uses, nil
}
