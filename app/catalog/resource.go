package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Limits of uploads, in bytes.
const (
	// DefaultMaxUpload is taken where the caller gives no limit.
	DefaultMaxUpload int64 = 1 << 30
	// MaxSealedUpload bounds resources that are secrets: they are sealed in memory.
	MaxSealedUpload int64 = 1 << 20
)

// ResourceFilter limits a list of resources; empty parts of the ref mean any.
type ResourceFilter struct {
	loom.ResourceRef
	Status loom.ResourceStatus
}

// Resources lists versions of plugin resources by name, then version.
func (c *Catalog) Resources(ctx context.Context, actor loom.Actor, f ResourceFilter) ([]loom.Resource, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	if err := checkResourceStatus(f.Status); err != nil {
		return nil, err
	}
	for _, part := range []string{f.Kind, f.Plugin, f.Type, f.Name} {
		if part != "" && len(loom.CheckName("name", part)) > 0 {
			return nil, loom.NewError(loom.NotFound, "There are no plugin resources of that name.")
		}
	}
	if f.Plugin != "" && f.Type != "" {
		if _, err := c.resourceType(ctx, f.ResourceRef); err != nil {
			return nil, err
		}
	}
	all, err := store.Resources(ctx, c.db, actor.Tenant, f.ResourceRef)
	if err != nil || f.Status == "" {
		return all, err
	}
	var list []loom.Resource
	for _, r := range all {
		if r.Status() == f.Status {
			list = append(list, r)
		}
	}
	return list, nil
}

// UploadOptions say how a version is stored, and what becomes of it at once.
type UploadOptions struct {
	// Limit is the size in bytes that is accepted, 0 for DefaultMaxUpload.
	Limit int64
	// Folder refuses an archive that holds anything but one folder, as people need to know.
	Folder bool
	// Stage slates the version for the next sync. Release puts it in use, and no other
	// resource.
	Stage, Release bool
}

// Upload is UploadAs with a limit alone: the version is stored and not in use.
func (c *Catalog) Upload(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, r io.Reader, limit int64) (loom.Resource, error) {
	return c.UploadAs(ctx, actor, ref, r, UploadOptions{Limit: limit})
}

// UploadAs stores the next version of a plugin resource, and in the same transaction stages or
// releases it. Errors: Forbidden; NotFound when the plugin does not exist or declares no such
// resource type; Invalid for a bad name, for what is too large, and for an archive that
// provisioners could not unpack, with the name of the entry. A failed upload uses up its
// number, and leaves in use what is.
func (c *Catalog) UploadAs(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, r io.Reader, o UploadOptions) (loom.Resource, error) {
	declared, err := c.mayWriteResource(ctx, actor, ref)
	if err != nil {
		return loom.Resource{}, err
	}
	// Provisioners keep such names for themselves. Resources that have one can be recalled.
	if strings.HasPrefix(ref.Name, ".") {
		return loom.Resource{}, loom.InvalidFields([]loom.FieldError{{Field: "name", Message: "The name of a file may not begin with a dot."}})
	}
	limit := o.Limit
	if limit <= 0 {
		limit = DefaultMaxUpload
	}
	sealed := loom.SecretResource(ref.Type)
	if sealed {
		limit = min(limit, MaxSealedUpload)
	}
	left, err := c.bytesLeft(ctx, c.db, actor.Tenant)
	if err != nil {
		return loom.Resource{}, err
	}
	version, err := store.InTx(ctx, c.db, func(tx *sqlx.Tx) (int, error) {
		return store.NextResourceNumber(ctx, tx, actor.Tenant, ref)
	})
	if err != nil {
		return loom.Resource{}, err
	}
	resource := loom.Resource{
		ResourceRef: ref, Version: version, Format: declared.Format, Permissions: declared.Permissions,
		Object: objectKey(actor.Tenant, ref, version), Sealed: sealed, Author: actor.User,
	}
	resource.Size, resource.SHA256, err = c.writeObject(ctx, resource.Object, r, min(limit, left), sealed)
	if errors.Is(err, errTooLarge) && left < limit {
		return loom.Resource{}, loom.NewError(loom.Exhausted, "The file is not stored: it is larger than %s, which is what the disk of Loom and the files of the tenant leave (LOOM_DISK_RESERVE, LOOM_RESOURCE_BYTES). Delete old versions.", size(left))
	}
	if errors.Is(err, errTooLarge) {
		return loom.Resource{}, loom.NewError(loom.Invalid, "The file is larger than %s, the limit for this kind of resource.", size(limit))
	}
	if err != nil {
		return loom.Resource{}, fmt.Errorf("upload %s: %w", ref.Name, err)
	}
	if resource.Format == "archive" {
		if err := c.checkArchive(ctx, actor.Tenant, resource, o.Folder); err != nil {
			return loom.Resource{}, err
		}
	}
	return store.InTx(ctx, c.db, func(tx *sqlx.Tx) (loom.Resource, error) {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return loom.Resource{}, err
		}
		stored, err := store.InsertResource(ctx, tx, actor.Tenant, resource)
		if err == nil {
			err = c.withinBytes(ctx, tx, actor.Tenant)
		}
		if err != nil {
			return loom.Resource{}, err
		}
		if err := recordResource(ctx, tx, actor, "create", ref, version); err != nil || !o.Stage && !o.Release {
			return stored, err
		}
		err = slate(ctx, tx, actor, ref, version, true, o.Release)
		stored.Slated, stored.Live = true, o.Release
		return stored, err
	})
}

// EnsureResource uploads content unless the newest version is the same already,
// and stages that version. It reports whether anything changed; Sync makes it
// live. For seeding.
func (c *Catalog) EnsureResource(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, content []byte) (bool, error) {
	versions, err := c.Resources(ctx, actor, ResourceFilter{ResourceRef: ref})
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(content)
	if n := len(versions); n > 0 && versions[n-1].SHA256 == hex.EncodeToString(sum[:]) {
		newest := versions[n-1]
		if newest.Slated {
			return !newest.Live, nil
		}
		return true, c.Stage(ctx, actor, ref, newest.Version)
	}
	uploaded, err := c.Upload(ctx, actor, ref, bytes.NewReader(content), 0)
	if err != nil {
		return false, err
	}
	return true, c.Stage(ctx, actor, ref, uploaded.Version)
}

// Stage slates a version for the next sync, instead of any other. NotFound.
func (c *Catalog) Stage(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, version int) error {
	return c.slate(ctx, actor, ref, version, true, false)
}

// Recall takes a version out with the next sync. NotFound.
func (c *Catalog) Recall(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, version int) error {
	return c.slate(ctx, actor, ref, version, false, false)
}

// Release puts a version in use at once, instead of any other of its name. Other resources
// stay as they are. NotFound.
func (c *Catalog) Release(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, version int) error {
	return c.slate(ctx, actor, ref, version, true, true)
}

// Withdraw takes a version out of use at once, or off the stage. Other resources stay as they
// are. NotFound.
func (c *Catalog) Withdraw(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, version int) error {
	return c.slate(ctx, actor, ref, version, false, true)
}

func (c *Catalog) slate(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, version int, slated, now bool) error {
	if _, err := c.mayWriteResource(ctx, actor, ref); err != nil {
		return err
	}
	return store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		resource, err := lockVersion(ctx, tx, actor.Tenant, ref, version)
		if err != nil || resource.Slated == slated && (!now || resource.Live == slated) {
			return err
		}
		return slate(ctx, tx, actor, ref, version, slated, now)
	})
}

// slate changes what is in use of one name after the next sync, or now. The tenant is locked.
func slate(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, ref loom.ResourceRef, version int, slated, now bool) error {
	if err := store.SlateResource(ctx, tx, actor.Tenant, ref, version, slated); err != nil {
		return err
	}
	verb, of := "stage", 0
	if !slated {
		verb, of = "recall", version // another one that is staged stays so
	}
	if now {
		verb = map[bool]string{true: "release", false: "withdraw"}[slated]
		if _, _, err := store.SyncResources(ctx, tx, actor.Tenant, ref, of); err != nil {
			return err
		}
	}
	return recordResource(ctx, tx, actor, verb, ref, version)
}

// DeleteResource deletes a version, or with version 0 all versions of a name, of
// which there may be none. Errors: NotFound for a version that is not there;
// Conflict for one that is not inactive.
func (c *Catalog) DeleteResource(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, version int) error {
	if _, err := c.mayWriteResource(ctx, actor, ref); err != nil {
		return err
	}
	return store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		versions, err := lockVersions(ctx, tx, actor.Tenant, ref)
		if err != nil {
			return err
		}
		found := 0
		for _, r := range versions {
			if version != 0 && r.Version != version {
				continue
			}
			found++
			if status := r.Status(); status != loom.ResourceInactive {
				return loom.NewError(loom.Conflict, "Version %d of “%s” is %s. Withdraw it first.", r.Version, ref.Name, status)
			}
		}
		if found == 0 {
			if version == 0 {
				return nil
			}
			return noVersion(ref, version)
		}
		if err := store.DeleteResources(ctx, tx, actor.Tenant, ref, version); err != nil {
			return err
		}
		return recordResource(ctx, tx, actor, "delete", ref, version)
	})
}

// Sync makes what is slated live, for all resources of the tenant at once. Tasks
// that run keep the set they began with.
func (c *Catalog) Sync(ctx context.Context, actor loom.Actor) error {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		if _, err := store.LockTenant(ctx, tx, actor.Tenant); err != nil {
			return err
		}
		set, n, err := store.SyncResources(ctx, tx, actor.Tenant, loom.ResourceRef{}, 0)
		if err != nil || n == 0 {
			return err
		}
		err = store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "sync", Kind: "resource", Object: fmt.Sprintf("set %d", set)})
		if err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, changed(actor.Tenant, "resources"))
	})
}

// Live gives the number of a tenant's synced set and its resources, for the
// provisioner.
func (c *Catalog) Live(ctx context.Context, tenant loom.TenantID) (set int, live []loom.Resource, err error) {
	return store.LiveResources(ctx, c.db, tenant)
}

// mayWriteResource checks role, name and that the plugin declares the type.
func (c *Catalog) mayWriteResource(ctx context.Context, actor loom.Actor, ref loom.ResourceRef) (loom.ResourceType, error) {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return loom.ResourceType{}, err
	}
	declared, err := c.resourceType(ctx, ref)
	if err != nil {
		return loom.ResourceType{}, err
	}
	errs := loom.CheckName("name", ref.Name)
	// Names become file names on the provisioner.
	if len(errs) == 0 && strings.Trim(ref.Name, ".") == "" {
		errs = []loom.FieldError{{Field: "name", Message: "A name of dots only cannot be a file name."}}
	}
	return declared, loom.InvalidFields(errs)
}

func (c *Catalog) resourceType(ctx context.Context, ref loom.ResourceRef) (loom.ResourceType, error) {
	kind := loom.EntityKind(ref.Kind)
	if len(loom.CheckName("plugin", ref.Plugin)) > 0 {
		return loom.ResourceType{}, loom.NewError(loom.NotFound, "There is no plugin of that name.")
	}
	if !kind.Global() {
		return loom.ResourceType{}, loom.NewError(loom.NotFound, "Plugin types are %s and %s.", loom.KindProviderType, loom.KindAutomatorType)
	}
	stored, err := store.CatalogEntry(ctx, c.db, loom.SuperTenant, kind, ref.Plugin, 0)
	if err != nil {
		return loom.ResourceType{}, err
	}
	declared, ok := stored.Entry.(*loom.PluginType).ResourceTypes[ref.Type]
	if !ok {
		return loom.ResourceType{}, loom.NewError(loom.NotFound, "The %s “%s” has no resource type “%s”.", kind.Word(), ref.Plugin, ref.Type)
	}
	return declared, nil
}

// lockVersions takes the tenant first, as a sync does, so that flags of a name
// and syncs take turns.
func lockVersions(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef) ([]loom.Resource, error) {
	if _, err := store.LockTenant(ctx, tx, tenant); err != nil {
		return nil, err
	}
	return store.LockResources(ctx, tx, tenant, ref)
}

func lockVersion(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef, version int) (loom.Resource, error) {
	versions, err := lockVersions(ctx, tx, tenant, ref)
	if err != nil {
		return loom.Resource{}, err
	}
	for _, r := range versions {
		if r.Version == version {
			return r, nil
		}
	}
	return loom.Resource{}, noVersion(ref, version)
}

func noVersion(ref loom.ResourceRef, version int) error {
	return loom.NewError(loom.NotFound, "There is no version %d of the resource “%s”.", version, ref.Name)
}

func recordResource(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, verb string, ref loom.ResourceRef, version int) error {
	object := fmt.Sprintf("%s/%s/%s/%s", ref.Kind, ref.Plugin, ref.Type, ref.Name)
	if version != 0 {
		object = fmt.Sprintf("%s version %d", object, version)
	}
	if err := store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: verb, Kind: "resource", Object: object}); err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, changed(actor.Tenant, "resources"))
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", bytes)
}
