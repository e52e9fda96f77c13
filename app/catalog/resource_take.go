package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// ResourcesInput says what to do with a kept archive. Seen is that of its preview, Wanted
// what to take; Stage puts it in use with the next sync.
type ResourcesInput struct {
	Seen   string
	Wanted map[loom.ResourceRef]bool
	Stage  bool
}

// ImportResources stores the wanted resources of the kept archive as new versions, all or
// none of them, and forgets the archive. What is the same already is left out. Errors:
// Forbidden; NotFound when no archive is kept; Conflict when something changed since its
// preview; Invalid when nothing is wanted, or what cannot be imported.
func (c *Catalog) ImportResources(ctx context.Context, actor loom.Actor, in ResourcesInput, now time.Time) ([]loom.Resource, error) {
	t, err := c.PreviewResources(ctx, actor, now)
	if err != nil {
		return nil, err
	}
	if t.Seen != in.Seen {
		return nil, changedSincePreview()
	}
	wanted := map[loom.ResourceRef]ArchivedResource{}
	for _, item := range t.Items {
		switch {
		case !in.Wanted[item.ResourceRef] || item.State == TransferSame:
		case item.WhyNot != "":
			return nil, loom.NewError(loom.Invalid, "“%s” cannot be imported: %s", item.Name, item.WhyNot)
		default:
			wanted[item.ResourceRef] = item
		}
	}
	if len(wanted) == 0 {
		return nil, loom.NewError(loom.Invalid, "Nothing was chosen that would change anything.")
	}
	k, err := c.keptResources(ctx, actor)
	if err != nil {
		return nil, err
	}
	left, err := c.bytesLeft(ctx, c.db, actor.Tenant)
	if err != nil {
		return nil, err
	}
	for _, item := range wanted {
		left -= item.Size
	}
	if left < 0 {
		return nil, loom.NewError(loom.Exhausted, "Nothing was imported: the disk of Loom or the files of the tenant (LOOM_DISK_RESERVE, LOOM_RESOURCE_BYTES) lack %s for these files. Choose less, or delete old versions.", size(-left))
	}
	made, err := c.unpackResources(ctx, actor, k.Object, wanted)
	if err != nil {
		return nil, err
	}
	formats, err := c.resourceFormats(ctx, actor)
	if err != nil {
		return nil, err
	}
	stored, err := store.InTx(ctx, c.db, func(tx *sqlx.Tx) ([]loom.Resource, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return nil, err
		}
		again, err := c.compareResources(ctx, tx, actor.Tenant, k, formats)
		if err != nil {
			return nil, err
		}
		if again.Seen != in.Seen {
			return nil, changedSincePreview()
		}
		stored, err := insertImported(ctx, tx, actor, made, in.Stage)
		if err == nil {
			err = c.withinBytes(ctx, tx, actor.Tenant)
		}
		if err != nil {
			return nil, err
		}
		return stored, store.DeleteSecrets(ctx, tx, actor.Tenant, store.ImportEntity(actor.User), keptArchiveField)
	})
	if err == nil {
		_ = c.bucket.Delete(ctx, k.Object) // else the sweep finds it
	}
	return stored, err
}

func changedSincePreview() error {
	return loom.NewError(loom.Conflict, "The plugin resources or the archive changed since this preview; nothing was imported. Look at the new preview.")
}

func insertImported(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, made []loom.Resource, stage bool) ([]loom.Resource, error) {
	var stored []loom.Resource
	for _, r := range made {
		s, err := store.InsertResource(ctx, tx, actor.Tenant, r)
		if err != nil {
			return nil, err
		}
		if err := recordResource(ctx, tx, actor, "import", r.ResourceRef, r.Version); err != nil {
			return nil, err
		}
		if stage {
			if err := store.SlateResource(ctx, tx, actor.Tenant, r.ResourceRef, r.Version, true); err != nil {
				return nil, err
			}
			s.Slated = true
		}
		stored = append(stored, s)
	}
	return stored, nil
}

// unpackResources writes the wanted resources of a kept archive to the bucket, where
// nothing knows them yet: what is left of an import that fails is swept.
func (c *Catalog) unpackResources(ctx context.Context, actor loom.Actor, object string, wanted map[loom.ResourceRef]ArchivedResource) ([]loom.Resource, error) {
	archive, err := c.openObject(ctx, object, 0, -1)
	if err != nil && !errors.Is(err, loom.NotFound) {
		return nil, err
	}
	if err != nil {
		return nil, &loom.Error{Kind: loom.NotFound, Message: "The uploaded archive has expired. Upload it again.", Err: err}
	}
	defer archive.Close() //nolint:errcheck // read to the end or given up
	var made []loom.Resource
	err = walkResources(archive, func(ref loom.ResourceRef, n int64, content io.Reader) error {
		item, take := wanted[ref]
		if !take {
			return nil
		}
		declared, err := c.mayWriteResource(ctx, actor, ref)
		if err != nil {
			return err
		}
		version, err := store.InTx(ctx, c.db, func(tx *sqlx.Tx) (int, error) { return store.NextResourceNumber(ctx, tx, actor.Tenant, ref) })
		if err != nil {
			return err
		}
		r := loom.Resource{ResourceRef: ref, Version: version, Format: declared.Format, Permissions: declared.Permissions, Object: objectKey(actor.Tenant, ref, version), Author: actor.User}
		if r.Size, r.SHA256, err = c.writeObject(ctx, r.Object, content, n, false); err != nil {
			return fmt.Errorf("import %s: %w", ref.Name, err)
		}
		if r.SHA256 != item.SHA256 {
			return fmt.Errorf("import %s: the archive in the bucket differs from the upload", ref.Name)
		}
		if r.Format == "archive" {
			if err := c.checkArchive(ctx, actor.Tenant, r, false); err != nil {
				return err
			}
		}
		made = append(made, r)
		return nil
	})
	return made, err
}
