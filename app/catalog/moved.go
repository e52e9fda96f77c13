package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// mayKeep refuses to keep sealed values of a provider that would be sent elsewhere, or
// with other checks, than so far: who moves them could read them there, and so has to
// know them. Invalid names each sealed field.
func (c *Catalog) mayKeep(ctx context.Context, tx *sqlx.Tx, p loom.Provider, s split) error {
	var kept []string
	for field := range s.sealed {
		if s.given[field].IsZero() && !slices.Contains(s.dropped, field) {
			kept = append(kept, field)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	errs, err := moved(ctx, tx, s.before, p, kept)
	if err != nil {
		return err
	}
	return loom.InvalidFields(errs)
}

// mayFallBack refuses to delete the newest version of a provider when the one that is
// newest then would send the credentials elsewhere. The version is deleted already, in tx.
func (c *Catalog) mayFallBack(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, newest loom.Provider) error {
	sealed, err := store.Secrets(ctx, tx, tenant, store.ProviderSecrets(newest.Name))
	if err != nil || len(sealed) == 0 {
		return err
	}
	then, err := store.Provider(ctx, tx, tenant, newest.Name)
	if err != nil {
		return err
	}
	errs, err := moved(ctx, tx, newest, then, slices.Collect(maps.Keys(sealed)))
	if err != nil || len(errs) == 0 {
		return err
	}
	return loom.NewError(loom.Conflict, "Without version %d the provider “%s” is that of version %d again, and its stored credentials would be sent elsewhere. Save what version %[3]d says as a new version with its credentials, or delete the provider.",
		newest.Version, newest.Name, then.Version)
}

// moved gives an error for each of the sealed fields whose value would be sent elsewhere.
func moved(ctx context.Context, q sqlx.ExtContext, before, after loom.Provider, sealed []string) ([]loom.FieldError, error) {
	plugin, err := store.ProviderType(ctx, q, after.Type)
	if err != nil && !errors.Is(err, loom.NotFound) {
		return nil, err
	}
	slices.Sort(sealed)
	var errs []loom.FieldError
	for _, field := range sealed {
		at := "provisioner." + field
		if before.Type != after.Type {
			errs = append(errs, loom.FieldError{Field: at, Message: fmt.Sprintf("Give “%s” again, or make another provider: it would go to a plugin of another type.", plugin.Word(field))})
			continue
		}
		var by []string
		for _, name := range plugin.Moved(field, before.Fields, after.Fields) {
			by = append(by, "“"+plugin.Word(name)+"”")
		}
		if len(by) > 0 {
			errs = append(errs, loom.FieldError{Field: at, Message: fmt.Sprintf("Give “%s” again: it would be sent to another address, or with other checks, since %s changed.", plugin.Word(field), enumerate(by, "and"))})
		}
	}
	return errs, nil
}
