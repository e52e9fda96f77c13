// Package catalog holds the use cases of the catalog: the eight versioned kinds,
// export and import, plugin types, and plugin resources with their bucket.
//
// Every write of an entry is a new version; who started from an older one gets a
// Conflict. Entries may name things that do not exist: that is a warning, never
// a refusal. Sensitive fields of providers are sealed apart, never stored in a
// version and never given back. The package makes no clusters and runs no
// plugin. A newcomer's usual mistake: looking for plugin types in a tenant; they
// are global and live under loom.SuperTenant.
package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/jmoiron/sqlx"
	"gocloud.dev/blob"

	"loom/app/cache"
	"loom/app/diskspace"
	"loom/app/lenient"
	"loom/app/loom"
	"loom/app/places"
	"loom/app/secret"
	"loom/app/store"
)

// Catalog is the way in to the use cases; make it with New.
type Catalog struct {
	db     *sqlx.DB
	ring   *secret.Ring
	bucket *blob.Bucket
	s3     *s3Bucket // nil: files of this host
	// checking are the archives that are looked through: a small one may unpack to
	// gigabytes.
	checking *places.Places
	// read are texts of files that were read to find out what they name.
	read cache.Cache[textKey, string]
	// PlainHTTP takes addresses of providers without HTTPS, as the operator's option
	// LOOM_ALLOW_INSECURE_ENDPOINTS says.
	PlainHTTP bool
	// MaxBytes is what the plugin resources of a tenant may take, 0 for any number.
	MaxBytes int64
	// Reserve is what stays free of the disk of the bucket, where that is a directory.
	Reserve   diskspace.Reserve
	bucketDir string
}

// New opens the bucket of plugin resources, a URL such as "file:///var/lib/loom/bucket" or
// "s3://loom?region=us-east-1", and makes the directory if it is not there; whether S3
// answers is not asked, see CheckBucket. Close it in the end. Errors: Invalid.
func New(db *sqlx.DB, ring *secret.Ring, bucketURL string) (*Catalog, error) {
	bucket, s3, err := openBucket(bucketURL)
	if err != nil {
		return nil, err
	}
	c := &Catalog{db: db, ring: ring, bucket: bucket, s3: s3, checking: places.New(2),
		read: cache.Cache[textKey, string]{Most: keptTexts, Weight: func(k textKey) int { return int(k.size) + len(k.object) }}}
	if u, err := url.Parse(bucketURL); err == nil && u.Scheme == "file" {
		c.bucketDir = u.Path
	}
	return c, nil
}

// Close closes the bucket.
func (c *Catalog) Close() error { return c.bucket.Close() }

// readTenant gives the tenant whose entries of a kind the actor reads.
func readTenant(actor loom.Actor, kind loom.EntityKind) (loom.TenantID, error) {
	if !kind.Valid() {
		return "", loom.NewError(loom.NotFound, "There is no catalog kind “%s”.", kind)
	}
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return "", err
	}
	if kind.Global() {
		return loom.SuperTenant, nil
	}
	return actor.Tenant, nil
}

// writeTenant gives the tenant whose entries of a kind the actor writes.
func writeTenant(actor loom.Actor, kind loom.EntityKind) (loom.TenantID, error) {
	tenant, err := readTenant(actor, kind)
	if err != nil {
		return "", err
	}
	if kind.Global() {
		return tenant, actor.May(loom.Install, loom.Installation)
	}
	return tenant, actor.May(loom.Publish, actor.InTenant())
}

// Resolve merges a template, which need not be stored, with all that it extends
// and includes. Errors: those of loom.ResolveTemplate.
func (c *Catalog) Resolve(ctx context.Context, actor loom.Actor, t loom.Template) (loom.Template, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return loom.Template{}, err
	}
	return loom.ResolveTemplate(t, store.TemplateLookup(ctx, c.db, actor.Tenant))
}

// ResolveDraft is Resolve for a template that somebody is writing, with what a
// check would say if it were stored. The answer has version 1.
func (c *Catalog) ResolveDraft(ctx context.Context, actor loom.Actor, t *loom.Template) (loom.Template, []loom.Finding, error) {
	merged, err := c.Resolve(ctx, actor, *t)
	if err != nil {
		return loom.Template{}, nil, err
	}
	merged.Version = 1
	found, err := c.CheckEntry(ctx, actor, loom.KindTemplate, t)
	return merged, found, err
}

// SaveInput is an entry to store. Expected is the version that the author
// started from, 0 for "there was none", nil for whatever is there; OnlyNew
// refuses a name that exists, OnlyThere one that does not. AskRotate refuses, with a
// Conflict about FieldRotate, to replace credentials of a provider while operations
// use it.
type SaveInput struct {
	Entry     loom.Entry
	Expected  *int
	OnlyNew   bool
	OnlyThere bool
	AskRotate bool
	// Unreleased saves a version that clusters are not made of until it is released; AsNewest does
	// so if the newest version is unreleased.
	Unreleased, AsNewest bool
}

// VersionConflict is the cause of a Conflict of Save: what is stored by now and
// what was given, for a comparison. Stored is nil when the entry is gone.
type VersionConflict struct {
	Kind       loom.EntityKind
	Expected   int
	Stored     loom.Entry
	StoredInfo loom.VersionInfo
	Given      loom.Entry
}

// Error says which versions clash.
func (e *VersionConflict) Error() string {
	return fmt.Sprintf("%s %s is at version %d, not %d", e.Kind, e.Given.Meta().Name, e.StoredInfo.Version, e.Expected)
}

// Save stores an entry as a new version and gives it back as stored, with the
// findings of a check: those of the entry itself, then those of templates that
// are made from it. Errors: Forbidden; Invalid with fields; Conflict, with a
// *VersionConflict in its chain.
func (c *Catalog) Save(ctx context.Context, actor loom.Actor, kind loom.EntityKind, in SaveInput) (loom.Entry, []loom.Finding, error) {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return nil, nil, err
	}
	if in.Unreleased {
		if err := checkReleasable(kind, "release"); err != nil {
			return nil, nil, err
		}
	}
	entry, fields, err := normalize(kind, in.Entry)
	if err != nil {
		return nil, nil, err
	}
	if err := loom.InvalidFields(fields); err != nil {
		return nil, nil, err
	}
	saved, err := store.InTx(ctx, c.db, func(tx *sqlx.Tx) (loom.Entry, error) {
		if t, ok := entry.(*loom.PluginType); ok {
			if err := amend(ctx, tx, kind, t); err != nil {
				return nil, err
			}
		}
		return c.put(ctx, tx, actor, tenant, kind, entry, in)
	})
	if err != nil {
		return nil, nil, err
	}
	found, err := c.findings(ctx, tenant, kind, saved)
	return saved, found, err
}

// Create is Save for a body whose name must be new. That it is taken comes before
// a breach of the rule on leases, as clients of the predecessor know it. Errors: those of Decode and Save.
func (c *Catalog) Create(ctx context.Context, actor loom.Actor, kind loom.EntityKind, body []byte, unreleased bool) (loom.Entry, []loom.Finding, error) {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return nil, nil, err
	}
	entry, err := Decode(kind, body)
	if e := loom.AsError(err); err != nil && entry != nil && len(importErrors(slices.Clone(e.Fields), entry)) == 0 {
		name := entry.Meta().Name
		highest, failed := store.CatalogVersionNumber(ctx, c.db, tenant, kind, name)
		if failed != nil {
			return nil, nil, failed
		}
		if highest > 0 {
			return nil, nil, taken(kind, name)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return c.Save(ctx, actor, kind, SaveInput{Entry: entry, OnlyNew: true, Unreleased: unreleased})
}

func taken(kind loom.EntityKind, name string) error {
	return loom.NewError(loom.Conflict, "There is %s “%s” already; change it instead, or choose another name.", kind.OneWord(), name)
}

// put stores the next version of an entry with all that belongs to it.
func (c *Catalog) put(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, tenant loom.TenantID, kind loom.EntityKind, entry loom.Entry, in SaveInput) (loom.Entry, error) {
	name := entry.Meta().Name
	if err := store.LockCatalogName(ctx, tx, tenant, kind, name); err != nil {
		return nil, err
	}
	highest, err := store.CatalogVersionNumber(ctx, tx, tenant, kind, name)
	if err != nil {
		return nil, err
	}
	if in.OnlyNew && highest > 0 {
		return nil, taken(kind, name)
	}
	if in.OnlyThere && highest == 0 {
		return nil, loom.NewError(loom.Conflict, "There is no %s “%s” that could get another version; leave If-Match out to make it.", kind.Word(), name)
	}
	if in.Expected != nil && *in.Expected != highest {
		return nil, c.conflict(ctx, tx, tenant, kind, entry, *in.Expected, highest)
	}
	var before any
	if highest > 0 {
		if before, err = c.shown(ctx, tx, tenant, kind, name, 0); err != nil {
			return nil, err
		}
	}
	if in.AsNewest {
		stored, err := store.CatalogEntry(ctx, tx, tenant, kind, name, 0)
		if err != nil {
			return nil, err
		}
		in.Unreleased = !stored.Released
	}
	entry.Meta().Version = highest + 1
	after := any(entry)
	if p, ok := entry.(*loom.Provider); ok {
		may, err := store.Permits(ctx, tx, tenant)
		if err != nil {
			return nil, err
		}
		if err := permitted(ctx, tx, tenant, may, p); err != nil {
			return nil, err
		}
		if after, err = c.sealProvider(ctx, tx, actor, p, in.AskRotate); err != nil {
			return nil, err
		}
	}
	if err := weighed(ctx, tx, tenant, func() error {
		_, err := store.InsertCatalogVersion(ctx, tx, tenant, kind, entry, actor.User)
		if err == nil && in.Unreleased {
			_, err = store.SetReleased(ctx, tx, tenant, kind, name, highest+1, false)
		}
		return err
	}); err != nil {
		return nil, err
	}
	verb := "update"
	if highest == 0 {
		verb = "create"
	}
	return entry, record(ctx, tx, actor, tenant, verb, kind, name, before, after)
}

// permitted refuses a provider that needs what the tenant may not use. One that is there
// and needed the same before may still be changed: its machines must be deleted
// with credentials that work, and nothing new is made with it.
func permitted(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, may loom.Permits, p *loom.Provider) error {
	errs := may.Check(*p)
	if len(errs) == 0 {
		return nil
	}
	before, err := store.Provider(ctx, tx, tenant, p.Name)
	if err != nil && !errors.Is(err, loom.NotFound) {
		return err
	}
	if err == nil && before.Type == p.Type {
		had := may.Check(before)
		errs = slices.DeleteFunc(errs, func(e loom.FieldError) bool { return slices.Contains(had, e) })
	}
	return loom.InvalidFields(errs)
}

func (c *Catalog) conflict(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, given loom.Entry, expected, highest int) error {
	cause := &VersionConflict{Kind: kind, Expected: expected, Given: given}
	name := given.Meta().Name
	if highest == 0 {
		return &loom.Error{Kind: loom.Conflict, Err: cause,
			Message: fmt.Sprintf("The %s “%s” was deleted since you loaded version %d.", kind.Word(), name, expected)}
	}
	stored, err := store.CatalogEntry(ctx, tx, tenant, kind, name, 0)
	if err != nil {
		return err
	}
	cause.Stored, cause.StoredInfo = stored.Entry, stored.VersionInfo
	return &loom.Error{Kind: loom.Conflict, Err: cause,
		Message: fmt.Sprintf("The %s “%s” is at version %d, saved by %s; you started from version %d.", kind.Word(), name, highest, stored.Author, expected)}
}

// record writes the audit row and the event of a change of an entry.
func record(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, tenant loom.TenantID, verb string, kind loom.EntityKind, name string, before, after any) error {
	if err := store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: verb, Kind: kind.Word(), Object: name, Before: before, After: after}); err != nil {
		return err
	}
	return store.InsertEvents(ctx, tx, changed(tenant, string(kind)+"/"+name))
}

// changed is the event of a change in a tenant's catalog. Ids hold no commas, and
// names have none.
func changed(tenant loom.TenantID, what string) loom.Event {
	return loom.Event{Tenant: tenant, Topic: "tenant", IDs: []string{what}}
}

// Delete deletes one version of an entry, or all with version 0, and with the
// last version of a provider its sealed fields. What is not there is no error.
func (c *Catalog) Delete(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string, version int) error {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return err
	}
	if version < 0 {
		return badVersion()
	}
	if len(loom.CheckName("name", name)) > 0 {
		return nil // a name that cannot be is not there
	}
	return store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		if err := store.LockCatalogName(ctx, tx, tenant, kind, name); err != nil {
			return err
		}
		before, err := c.shown(ctx, tx, tenant, kind, name, version)
		if errors.Is(err, loom.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var newest loom.Provider
		if kind == loom.KindProvider {
			if newest, err = store.Provider(ctx, tx, tenant, name); err != nil {
				return err
			}
		}
		gone, err := store.DeleteCatalogVersions(ctx, tx, tenant, kind, name, version)
		if err != nil || gone == 0 {
			return err
		}
		left, err := store.CatalogVersionNumber(ctx, tx, tenant, kind, name)
		if err != nil {
			return err
		}
		if kind == loom.KindProvider && left > 0 && left < version {
			if err := c.mayFallBack(ctx, tx, tenant, newest); err != nil {
				return err
			}
		}
		if kind == loom.KindProvider && left == 0 {
			used, err := inUse(ctx, tx, tenant, name)
			if err != nil {
				return err
			}
			if used != "" {
				return loom.NewError(loom.Conflict, "The provider “%s” stays: %s it. Delete them first; what is deleted needs it too.", name, used)
			}
			if err := store.DeleteSecrets(ctx, tx, tenant, store.ProviderSecrets(name)); err != nil {
				return err
			}
		}
		if kind == loom.KindTemplate && left == 0 {
			if err := store.DropBindingsOfTemplates(ctx, tx, tenant); err != nil {
				return err
			}
		}
		object := name
		if version > 0 {
			object = fmt.Sprintf("%s version %d", name, version)
		}
		if err := store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "delete", Kind: kind.Word(), Object: object, Before: before}); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, changed(tenant, string(kind)+"/"+name))
	})
}

// normalize sends an entry through the same door as what clients send, so that
// what is stored is complete whoever made it. It copies: the caller's entry stays.
func normalize(kind loom.EntityKind, entry loom.Entry) (loom.Entry, []loom.FieldError, error) {
	if entry == nil || fmt.Sprintf("%T", entry) != fmt.Sprintf("%T", loom.NewEntry(kind)) {
		return nil, nil, loom.NewError(loom.Invalid, "The body is no %s.", kind.Word())
	}
	body, err := json.Marshal(entry)
	if err != nil {
		return nil, nil, err
	}
	o, err := lenient.Read(body)
	if err != nil {
		return nil, nil, err
	}
	clean, err := decodeObject(kind, o)
	if err != nil {
		return nil, nil, err
	}
	return clean, shapeErrors(clean, o.Errors()), nil
}

func badVersion() error {
	return loom.InvalidFields([]loom.FieldError{{Field: "version", Message: "A version is a whole number above 0."}})
}
