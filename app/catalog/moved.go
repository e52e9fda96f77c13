package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// inUse says of a provider, for people, how many clusters use it; "" for none. The caller
// holds the lock of its name.
func inUse(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, name string) (string, error) {
	clusters, err := store.ClustersMadeFrom(ctx, tx, tenant, store.Viewer{}, loom.KindProvider, name)
	switch {
	case err != nil || len(clusters) == 0:
		return "", err
	case len(clusters) == 1:
		return "the cluster " + clusters[0].String() + " uses", nil
	}
	return fmt.Sprintf("%d clusters use", len(clusters)), nil
}

// mayReplace refuses another type for a provider that clusters use, since its plugin could
// not reach their machines. It refuses to keep sealed values that would be sent elsewhere,
// or with other checks, than so far: who moves them could read them there, and so has to
// know them. Invalid names each field.
func (c *Catalog) mayReplace(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p loom.Provider, s split) error {
	if s.before.Type != "" && s.before.Type != p.Type {
		used, err := inUse(ctx, tx, tenant, p.Name)
		if err != nil {
			return err
		}
		if used != "" {
			return loom.InvalidFields([]loom.FieldError{{Field: "providertype",
				Message: fmt.Sprintf("Leave it “%s”: %s this provider. Make another provider for “%s”.", s.before.Type, used, p.Type)}})
		}
	}
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
// newest then would use the sealed values in another way: they belong to the version
// that is deleted. That has happened already, in tx.
func (c *Catalog) mayFallBack(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, newest loom.Provider) error {
	then, err := store.Provider(ctx, tx, tenant, newest.Name)
	if err != nil {
		return err
	}
	if then.Type != newest.Type {
		used, err := inUse(ctx, tx, tenant, newest.Name)
		if err != nil {
			return err
		}
		if used != "" {
			return loom.NewError(loom.Conflict, "Without version %d the provider “%s” would be of the type “%s” again, and %s it as “%s”.", newest.Version, newest.Name, then.Type, used, newest.Type)
		}
	}
	sealed, err := store.Secrets(ctx, tx, tenant, store.ProviderSecrets(newest.Name))
	if err != nil || len(sealed) == 0 {
		return err
	}
	plugin, _, err := c.providerType(ctx, tx, newest.Type)
	if err != nil || then.Type == newest.Type && !plugin.OtherAccess(newest.Fields, then.Fields) {
		return err
	}
	return loom.NewError(loom.Conflict, "Without version %d the provider “%s” is that of version %d again, and the stored credentials belong to version %[1]d. Save what version %[3]d says as a new version with its credentials, or delete the provider.",
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
			errs = append(errs, loom.FieldError{Field: at, Message: fmt.Sprintf("Give “%s” again: it would be sent to another address, or with other checks, since %s changed.", plugin.Word(field), loom.And(by))})
		}
	}
	return errs, nil
}
