package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// seesUnreleased reports whether an actor sees versions that are not released: who may save some.
func seesUnreleased(actor loom.Actor) bool {
	return actor.May(loom.Publish.Reading(), actor.InTenant()) == nil
}

// newest reads each entry of some kinds of the actor's tenant in the newest version that he sees.
func (c *Catalog) newest(ctx context.Context, actor loom.Actor, kinds ...loom.EntityKind) ([]store.StoredEntry, error) {
	if seesUnreleased(actor) {
		return store.NewestCatalogEntries(ctx, c.db, actor.Tenant, kinds...)
	}
	return store.ReleasedCatalogEntries(ctx, c.db, actor.Tenant, kinds...)
}

// Entry returns one version of an entry, 0 for the newest that the actor sees: administrators see
// all, others those that are released. NotFound.
func (c *Catalog) Entry(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string, version int) (loom.Entry, loom.VersionInfo, error) {
	return c.entry(ctx, actor, kind, name, version, !seesUnreleased(actor))
}

// Released returns an entry in its newest released version: what new clusters are made of. NotFound.
func (c *Catalog) Released(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string) (loom.Entry, loom.VersionInfo, error) {
	return c.entry(ctx, actor, kind, name, 0, true)
}

func (c *Catalog) entry(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string, version int, released bool) (loom.Entry, loom.VersionInfo, error) {
	tenant, err := readTenant(actor, kind)
	if err != nil {
		return nil, loom.VersionInfo{}, err
	}
	if version < 0 {
		return nil, loom.VersionInfo{}, badVersion()
	}
	if len(loom.CheckName("name", name)) > 0 {
		return nil, loom.VersionInfo{}, loom.NewError(loom.NotFound, "There is no %s of that name.", kind.Word())
	}
	read := store.CatalogEntry
	if released {
		read = store.ReleasedCatalogEntry
	}
	stored, err := read(ctx, c.db, tenant, kind, name, version)
	return stored.Entry, stored.VersionInfo, err
}

// Versions lists the versions of an entry that the actor sees, newest first, each with the number
// of clusters on it. NotFound.
func (c *Catalog) Versions(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string) ([]loom.VersionInfo, error) {
	tenant, err := readTenant(actor, kind)
	if err != nil {
		return nil, err
	}
	if len(loom.CheckName("name", name)) > 0 {
		return nil, loom.NewError(loom.NotFound, "There is no %s of that name.", kind.Word())
	}
	infos, err := store.CatalogVersions(ctx, c.db, tenant, kind, name, !seesUnreleased(actor))
	if err == nil && len(infos) == 0 {
		return nil, loom.NewError(loom.NotFound, "There is no %s “%s”.", kind.Word(), name)
	}
	return infos, err
}

// checkReleasable refuses kinds whose versions are always released. Invalid.
func checkReleasable(kind loom.EntityKind, field string) error {
	if kind.Releasable() {
		return nil
	}
	return loom.InvalidFields([]loom.FieldError{{Field: field, Message: fmt.Sprintf("Versions of a %s are always released. Save it under another name to try it.", kind.Word())}})
}

// ReleaseVersion releases a version of an entry, or withdraws it: clusters are made of the newest
// released version. Errors: Forbidden; NotFound; Invalid for a kind without unreleased
// versions; Conflict for withdrawing the only released version of what others name.
func (c *Catalog) ReleaseVersion(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string, version int, released bool) error {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return err
	}
	if err := checkReleasable(kind, "version"); err != nil {
		return err
	}
	return c.changeVersion(ctx, tenant, kind, name, version, func(tx *sqlx.Tx, stored store.StoredEntry) error {
		if !released && stored.Released {
			if err := c.mayWithdraw(ctx, tx, tenant, stored); err != nil {
				return err
			}
		}
		changed, err := store.SetReleased(ctx, tx, tenant, kind, name, version, released)
		if err != nil || !changed {
			return err
		}
		verb := "release"
		if !released {
			verb = "withdraw"
		}
		return record(ctx, tx, actor, tenant, verb, kind, name, nil, map[string]any{"version": version})
	})
}

// mayWithdraw returns Conflict if a version is the only released one of an entry that others name.
func (c *Catalog) mayWithdraw(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, of store.StoredEntry) error {
	name := of.Entry.Meta().Name
	others, err := store.CatalogVersions(ctx, tx, tenant, of.Kind, name, true)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(others, func(v loom.VersionInfo) bool { return v.Version != of.Version }) {
		return nil
	}
	stored, err := store.ReleasedCatalogEntries(ctx, tx, tenant, loom.TenantKinds...)
	if err != nil {
		return err
	}
	uses, err := namedBy(ctx, stored, of.Kind, name, nil)
	if err != nil {
		return err
	}
	var users []string
	for _, use := range uses {
		if text := fmt.Sprintf("%s “%s”", use.Kind.Word(), use.Name); !slices.Contains(users, text) {
			users = append(users, text)
		}
	}
	if len(users) == 0 {
		return nil
	}
	const shown = 5
	if more := len(users) - shown; more > 0 {
		users = append(users[:shown], fmt.Sprintf("%d more", more))
	}
	return loom.NewError(loom.Conflict, "Version %d is the only released version of the %s “%s”, which is used by %s. Release another version first.",
		of.Version, of.Kind.Word(), name, loom.And(users))
}

// DeprecateVersion gives a version a message to the owners of the clusters on it, "" for none. Errors:
// Forbidden; NotFound; Invalid.
func (c *Catalog) DeprecateVersion(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string, version int, message string) error {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return err
	}
	message = strings.TrimSpace(message)
	switch n := utf8.RuneCountInString(message); {
	case n > loom.MaxDeprecation:
		return loom.InvalidFields([]loom.FieldError{{Field: "message", Message: fmt.Sprintf("The message has %d characters. Use at most %d.", n, loom.MaxDeprecation)}})
	case strings.ContainsRune(message, 0) || !utf8.ValidString(message):
		return loom.InvalidFields([]loom.FieldError{{Field: "message", Message: "The message holds characters that can't be stored."}})
	}
	return c.changeVersion(ctx, tenant, kind, name, version, func(tx *sqlx.Tx, stored store.StoredEntry) error {
		changed, err := store.SetDeprecation(ctx, tx, tenant, kind, name, version, message)
		if err != nil || !changed {
			return err
		}
		verb := "deprecate"
		if message == "" {
			verb = "undeprecate"
		}
		return record(ctx, tx, actor, tenant, verb, kind, name, nil, map[string]any{"version": version, "message": message})
	})
}

// changeVersion reads a version and calls change in one transaction, in which nobody else changes
// the catalog.
func (c *Catalog) changeVersion(ctx context.Context, tenant loom.TenantID, kind loom.EntityKind, name string, version int, change func(tx *sqlx.Tx, stored store.StoredEntry) error) error {
	if version < 1 {
		return badVersion()
	}
	if len(loom.CheckName("name", name)) > 0 {
		return loom.NewError(loom.NotFound, "There is no %s of that name.", kind.Word())
	}
	return store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		if err := store.LockCatalog(ctx, tx, tenant); err != nil {
			return err
		}
		stored, err := store.CatalogEntry(ctx, tx, tenant, kind, name, version)
		if err != nil {
			return err
		}
		return change(tx, stored)
	})
}
