package catalog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// keptArchive is an archive of plugin resources between its upload and its import: where
// it lies in the bucket, and what is in it.
type keptArchive struct {
	Time   time.Time          `json:"time"`
	Object string             `json:"object"`
	Items  []archivedResource `json:"items"`
}

const keptArchiveField = "resources"

// ArchivedResource is a resource of a kept archive.
type ArchivedResource struct {
	loom.ResourceRef
	Size   int64
	SHA256 string
	State  TransferState
	// Version is the one that has the same content, else the newest; 0 for a new name.
	Version int
	// Odd is what provisioners would not expect, WhyNot why it cannot be imported.
	Odd, WhyNot string
}

// ResourceTransfer is what an import of a kept archive would do. Seen names the archive
// and the versions that it was compared with.
type ResourceTransfer struct {
	Items []ArchivedResource
	Seen  string
}

// KeepResources streams an archive of plugin resources into the bucket and keeps it for
// an hour; one that the actor kept before is forgotten. Errors: Forbidden; Invalid for
// what is no such archive, or is too large.
func (c *Catalog) KeepResources(ctx context.Context, actor loom.Actor, r io.Reader, now time.Time) error {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return err
	}
	formats, err := c.resourceFormats(ctx, actor)
	if err != nil {
		return err
	}
	left, err := c.archiveLeft(ctx, actor.Tenant)
	if err != nil {
		return err
	}
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // never fails (crypto/rand)
	k := keptArchive{Time: now, Object: importFolder(actor.Tenant) + hex.EncodeToString(b[:])}
	if k.Items, err = c.keepObject(ctx, actor.Tenant, k.Object, r, min(left, MaxResourceArchive), func(ref loom.ResourceRef) bool { return formats[typeOf(ref)] == "archive" }); err != nil {
		return err
	}
	old, err := c.keptResources(ctx, actor)
	if err != nil && !errors.Is(err, loom.NotFound) {
		return err
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	entity := store.ImportEntity(actor.User)
	sealed, err := c.ring.Seal(actor.Tenant, entity, keptArchiveField, loom.NewSecret(string(text)))
	if err != nil {
		return err
	}
	err = store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, map[string][]byte{keptArchiveField: sealed})
	})
	if err == nil && old.Object != "" {
		_ = c.bucket.Delete(ctx, old.Object) // else the sweep finds it
	}
	return err
}

// keepObject stores an archive while it is looked through: what is no archive of
// resources is never stored as a whole. It has most bytes at most.
func (c *Catalog) keepObject(ctx context.Context, tenant loom.TenantID, key string, r io.Reader, most int64, isArchive func(loom.ResourceRef) bool) ([]archivedResource, error) {
	type look struct {
		items []archivedResource
		err   error
	}
	looked := make(chan look, 1)
	pipe, feed := io.Pipe()
	go func() {
		var l look
		if l.items, l.err = inventory(pipe, &nested{c: c, ctx: ctx, tenant: tenant, left: maxArchiveContent}, isArchive); l.err == nil {
			_, l.err = io.Copy(io.Discard, pipe) // what follows the end of the data
		}
		pipe.CloseWithError(l.err)
		looked <- l
	}()
	_, _, failed := c.writeObject(ctx, key, io.TeeReader(r, feed), most, false)
	// Without the end the looker must not take what came for all there is.
	feed.CloseWithError(failed)
	l := <-looked
	switch {
	case errors.Is(failed, loom.Unavailable):
		return nil, failed
	case errors.Is(failed, errTooLarge) && most < MaxResourceArchive:
		return nil, loom.NewError(loom.Exhausted, "The archive does not fit: %s of space is left. Delete old versions of files, or import the archive that was uploaded before.", size(most))
	case errors.Is(failed, errTooLarge):
		return nil, loom.NewError(loom.Invalid, "The archive is larger than %s; make several of it.", size(MaxResourceArchive))
	case l.err != nil && errors.Is(l.err, loom.Invalid):
		if failed == nil {
			_ = c.bucket.Delete(ctx, key) // else the sweep finds it
		}
		return nil, l.err
	case failed != nil:
		return nil, fmt.Errorf("keep an archive of plugin resources: %w", failed)
	}
	return l.items, l.err
}

// resourceFormats gives the format of each resource type that a plugin declares, by
// kind/plugin/type.
func (c *Catalog) resourceFormats(ctx context.Context, actor loom.Actor) (map[string]string, error) {
	formats := map[string]string{}
	for _, kind := range []loom.EntityKind{loom.KindAutomatorType, loom.KindProviderType} {
		types, err := c.PluginTypes(ctx, actor, kind)
		if err != nil {
			return nil, err
		}
		for _, t := range types {
			for name, declared := range t.ResourceTypes {
				formats[typeOf(loom.ResourceRef{Kind: string(kind), Plugin: t.Name, Type: name})] = declared.Format
			}
		}
	}
	return formats, nil
}

func typeOf(ref loom.ResourceRef) string { return ref.Kind + "/" + ref.Plugin + "/" + ref.Type }

// keptResources reads which archive the actor keeps, however old. NotFound.
func (c *Catalog) keptResources(ctx context.Context, actor loom.Actor) (keptArchive, error) {
	var k keptArchive
	none := loom.NewError(loom.NotFound, "There is no archive to import; it is kept for an hour after it was given. Give it again.")
	stored, err := store.Secrets(ctx, c.db, actor.Tenant, store.ImportEntity(actor.User))
	if err != nil {
		return k, err
	}
	if stored[keptArchiveField] == nil {
		return k, none
	}
	opened, err := c.ring.Open(actor.Tenant, store.ImportEntity(actor.User), keptArchiveField, stored[keptArchiveField])
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal([]byte(opened.Reveal()), &k); err != nil {
		return k, fmt.Errorf("read what archive %s keeps: %w", actor.User, err)
	}
	return k, nil
}

// PreviewResources says what an import of the kept archive would do. Errors: Forbidden,
// NotFound when none is kept, or only one that is older than an hour.
func (c *Catalog) PreviewResources(ctx context.Context, actor loom.Actor, now time.Time) (ResourceTransfer, error) {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return ResourceTransfer{}, err
	}
	k, err := c.keptResources(ctx, actor)
	if err != nil {
		return ResourceTransfer{}, err
	}
	if now.Sub(k.Time) > loom.ImportLife {
		return ResourceTransfer{}, loom.NewError(loom.NotFound, "The archive that you gave is older than an hour and forgotten. Give it again.")
	}
	formats, err := c.resourceFormats(ctx, actor)
	if err != nil {
		return ResourceTransfer{}, err
	}
	return c.compareResources(ctx, c.db, actor.Tenant, k, formats)
}

func (c *Catalog) compareResources(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, k keptArchive, formats map[string]string) (ResourceTransfer, error) {
	stored, err := store.Resources(ctx, q, tenant, loom.ResourceRef{})
	if err != nil {
		return ResourceTransfer{}, err
	}
	byRef := map[loom.ResourceRef][]loom.Resource{}
	for _, r := range stored {
		byRef[r.ResourceRef] = append(byRef[r.ResourceRef], r)
	}
	var t ResourceTransfer
	seen := sha256.New()
	fmt.Fprintln(seen, k.Object)
	for _, item := range k.Items {
		a := ArchivedResource{ResourceRef: item.ResourceRef, Size: item.Size, SHA256: item.SHA256, Odd: item.Odd, WhyNot: item.Unusable, State: TransferNew}
		if _, declared := formats[typeOf(item.ResourceRef)]; !declared {
			a.WhyNot = fmt.Sprintf("No plugin “%s” takes resources of type “%s” here.", item.Plugin, item.Type)
		}
		for _, v := range byRef[item.ResourceRef] {
			switch {
			case v.SHA256 == item.SHA256:
				a.State, a.Version = TransferSame, v.Version
			case a.State != TransferSame:
				a.State, a.Version = TransferChanged, v.Version
			}
		}
		fmt.Fprintln(seen, resourcePath(item.ResourceRef), item.SHA256, a.State, a.Version, a.WhyNot)
		t.Items = append(t.Items, a)
	}
	t.Seen = hex.EncodeToString(seen.Sum(nil))
	return t, nil
}
