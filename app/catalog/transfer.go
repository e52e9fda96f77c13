package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// MaxTransfer is the largest document or archive that can be kept, in bytes.
const MaxTransfer = 8 << 20

// keptBundle is a bundle between its upload and its import. It may hold secrets of
// providers, so it is sealed like them.
type keptBundle struct {
	Time time.Time `json:"time"`
	Body []byte    `json:"body"`
}

const keptField = "bundle"

// KeepBundle keeps a bundle of the actor's, sealed, for an hour; one that he kept
// before is forgotten. Errors: Forbidden; Invalid for what is no bundle, or too large.
func (c *Catalog) KeepBundle(ctx context.Context, actor loom.Actor, body []byte, now time.Time) error {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return err
	}
	if len(body) > MaxTransfer {
		return loom.NewError(loom.Invalid, "The bundle is larger than %d MiB.", MaxTransfer>>20)
	}
	b, err := ReadBundle(body)
	if err != nil {
		return err
	}
	if b.bare() {
		return loom.NewError(loom.Invalid, "The bundle is empty: it has none of the kinds %s.", emptyLists())
	}
	text, err := json.Marshal(keptBundle{Time: now, Body: body})
	if err != nil {
		return err
	}
	entity := store.ImportEntity(actor.User)
	sealed, err := c.ring.Seal(actor.Tenant, entity, keptField, loom.NewSecret(string(text)))
	if err != nil {
		return err
	}
	return store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		return store.PutSecrets(ctx, tx, actor.Tenant, entity, actor.User, map[string][]byte{keptField: sealed})
	})
}

// kept reads the bundle that the actor keeps. NotFound when there is none, or only
// one that is older than an hour.
func (c *Catalog) kept(ctx context.Context, actor loom.Actor, now time.Time) (Bundle, string, error) {
	none := loom.NewError(loom.NotFound, "There is no bundle to import; it is kept for an hour after it was given. Give it again.")
	stored, err := store.Secrets(ctx, c.db, actor.Tenant, store.ImportEntity(actor.User))
	if err != nil {
		return Bundle{}, "", err
	}
	if stored[keptField] == nil {
		return Bundle{}, "", none
	}
	opened, err := c.ring.Open(actor.Tenant, store.ImportEntity(actor.User), keptField, stored[keptField])
	if err != nil {
		return Bundle{}, "", err
	}
	var k keptBundle
	if err := json.Unmarshal([]byte(opened.Reveal()), &k); err != nil {
		return Bundle{}, "", fmt.Errorf("read the kept bundle of %s: %w", actor.User, err)
	}
	if now.Sub(k.Time) > loom.ImportLife {
		return Bundle{}, "", none
	}
	sum := sha256.Sum256(k.Body)
	b, err := ReadBundle(k.Body)
	return b, hex.EncodeToString(sum[:]), err
}

// TransferState says how an entry of a bundle stands to the catalog.
type TransferState string

// The states.
const (
	TransferNew     TransferState = "new"
	TransferChanged TransferState = "changed"
	TransferSame    TransferState = "same"
)

// TransferEntry is an entry of a kept bundle. Changes are what overwriting would
// change, without values of sensitive fields.
type TransferEntry struct {
	EntryName
	State   TransferState
	Version int
	Changes []Difference
	// Breaks are entries of the catalog that would stop working with this one.
	Breaks []EntryName
}

// Transfer is what an import of a kept bundle would do. Entries come by kind and name.
type Transfer struct {
	Entries []TransferEntry
	Invalid []InvalidEntry
	// Findings are those that the whole catalog would have and has not now.
	Findings []TransferFinding
	// Seen names the bundle and the versions that it was compared with: ImportKept is
	// refused when they are not those any more.
	Seen string
}

// PreviewKept says what an import of the kept bundle would do. Errors: Forbidden,
// NotFound when none is kept.
func (c *Catalog) PreviewKept(ctx context.Context, actor loom.Actor, now time.Time) (Transfer, error) {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return Transfer{}, err
	}
	b, sum, err := c.kept(ctx, actor, now)
	if err != nil {
		return Transfer{}, err
	}
	clean, invalid, err := checkBundle(b)
	if err != nil {
		return Transfer{}, err
	}
	t := Transfer{Invalid: invalid}
	err = store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		before, err := c.storedOf(ctx, tx, actor.Tenant, clean)
		if err != nil {
			return err
		}
		t.Seen = seenOf(sum, before)
		was, err := c.finder(ctx, tx, actor.Tenant, loom.TenantKinds)
		if err != nil {
			return err
		}
		report, err := c.importBundle(ctx, tx, actor, clean, Merge)
		if err != nil {
			return err
		}
		t.Invalid = append(t.Invalid, report.Invalid...)
		if t.Entries, err = transferEntries(report, before, clean); err != nil {
			return err
		}
		is, err := c.finder(ctx, tx, actor.Tenant, loom.TenantKinds)
		if err != nil {
			return err
		}
		if err := t.find(ctx, was, is, report); err != nil {
			return err
		}
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return Transfer{}, err
	}
	return t, nil
}

// storedOf gives the newest versions that the catalog has of the entries.
func (c *Catalog) storedOf(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, entries map[loom.EntityKind][]loom.Entry) (map[EntryName]store.StoredEntry, error) {
	if err := store.LockCatalog(ctx, tx, tenant); err != nil {
		return nil, err
	}
	stored, err := store.NewestCatalogEntries(ctx, tx, tenant, loom.TenantKinds...)
	if err != nil {
		return nil, err
	}
	given := map[EntryName]bool{}
	for kind, list := range entries {
		for _, e := range list {
			given[EntryName{kind, e.Meta().Name}] = true
		}
	}
	before := map[EntryName]store.StoredEntry{}
	for _, s := range stored {
		if name := (EntryName{s.Kind, s.Entry.Meta().Name}); given[name] {
			before[name] = s
		}
	}
	return before, nil
}

// seenOf names a bundle and the versions of what is there already.
func seenOf(sum string, before map[EntryName]store.StoredEntry) string {
	lines := make([]string, 0, len(before))
	for name, s := range before {
		lines = append(lines, fmt.Sprintf("%s/%s %d", name.Kind, name.Name, s.Version))
	}
	slices.Sort(lines)
	all := sha256.Sum256(fmt.Appendf(nil, "%s %q", sum, lines))
	return hex.EncodeToString(all[:16])
}

// transferEntries lists the entries by kind and name. Their
// sensitive values have been taken out by the import that was tried.
func transferEntries(report Report, before map[EntryName]store.StoredEntry, clean map[loom.EntityKind][]loom.Entry) ([]TransferEntry, error) {
	states := map[EntryName]TransferState{}
	for state, names := range map[TransferState][]EntryName{TransferNew: report.New, TransferChanged: report.Changed, TransferSame: report.Same} {
		for _, name := range names {
			states[name] = state
		}
	}
	var all []TransferEntry
	for _, kind := range loom.TenantKinds {
		for _, entry := range clean[kind] {
			e := TransferEntry{EntryName: EntryName{kind, entry.Meta().Name}}
			e.State, e.Version = states[e.EntryName], before[e.EntryName].Version
			if e.State == "" {
				continue // the tenant may not have it; it is among the invalid ones
			}
			if e.State == TransferChanged {
				var err error
				if e.Changes, err = CompareEntries(before[e.EntryName].Entry, entry); err != nil {
					return nil, err
				}
			}
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b TransferEntry) int {
		return cmp.Or(cmp.Compare(slices.Index(loom.TenantKinds, a.Kind), slices.Index(loom.TenantKinds, b.Kind)), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}
