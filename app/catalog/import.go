package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Mode says what an import does with what is there.
type Mode string

// The modes. Merge writes the entries that differ as new versions and leaves the
// rest alone; Replace deletes everything of the six kinds first.
const (
	Merge   Mode = "merge"
	Replace Mode = "replace"
)

// EntryName names an entry.
type EntryName struct {
	Kind loom.EntityKind `json:"kind"`
	Name string          `json:"name"`
}

// Report says what an import did, or would do.
type Report struct {
	New     []EntryName `json:"new"`
	Changed []EntryName `json:"changed"`
	Same    []EntryName `json:"same"`
	// Invalid are never stored; a real import is refused because of them.
	Invalid []InvalidEntry `json:"invalid" description:"What a real import would be refused for."`
	Removed []EntryName    `json:"removed"`
	// Drafts are the new and changed entries of the kinds that clusters keep copies of, as they are
	// stored.
	Drafts []store.EntryDraft `json:"-"`
	// Findings are those of a check about what was given, after the import.
	Findings []loom.Finding `json:"-"`
	// Breaks are, of CompareImport, the findings that the whole catalog would have and has
	// not now.
	Breaks []loom.Finding `json:"-"`
}

// Export returns the newest version of every entry of the actor's tenant that he sees. It never
// holds sealed values.
func (c *Catalog) Export(ctx context.Context, actor loom.Actor) (Bundle, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return Bundle{}, err
	}
	stored, err := c.newest(ctx, actor, loom.TenantKinds...)
	if err != nil {
		return Bundle{}, err
	}
	b := Bundle{Entries: map[loom.EntityKind][]loom.Entry{}}
	for _, s := range stored {
		b.Entries[s.Kind] = append(b.Entries[s.Kind], s.Entry)
	}
	return b, nil
}

// Import stores a bundle in the actor's tenant, in one transaction. Errors:
// Forbidden; Invalid that names every invalid entry and its fields, and for a
// replacement by a bundle without any kind.
func (c *Catalog) Import(ctx context.Context, actor loom.Actor, b Bundle, mode Mode) (Report, error) {
	if err := checkImport(actor, loom.Publish, b, mode); err != nil {
		return Report{}, err
	}
	clean, invalid, err := checkBundle(b)
	if err != nil {
		return Report{}, err
	}
	if err := invalidBundle(invalid); err != nil {
		return Report{}, err
	}
	report, err := store.InTx(ctx, c.db, func(tx *sqlx.Tx) (Report, error) {
		report, err := c.importBundle(ctx, tx, actor, clean, mode)
		if err != nil {
			return report, err
		}
		return report, invalidBundle(report.Invalid)
	})
	if err != nil {
		return Report{}, err
	}
	report.Findings, err = c.importFindings(ctx, c.db, actor.Tenant, report)
	return report, err
}

// importFindings checks the entries of an import in the catalog as q sees it.
func (c *Catalog) importFindings(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, report Report) ([]loom.Finding, error) {
	given := report.given()
	f, err := c.finder(ctx, q, tenant, loom.TenantKinds)
	if err != nil {
		return nil, err
	}
	return f.find(ctx, func(kind loom.EntityKind, name string) bool { return given[EntryName{kind, name}] })
}

// given are the valid entries of an import.
func (r Report) given() map[EntryName]bool {
	given := map[EntryName]bool{}
	for _, name := range slices.Concat(r.New, r.Changed, r.Same) {
		given[name] = true
	}
	return given
}

// about gives the findings of the entries of an import.
func about(found []loom.Finding, report Report) []loom.Finding {
	given := report.given()
	return slices.DeleteFunc(slices.Clone(found), func(f loom.Finding) bool { return !given[EntryName{f.Kind, f.Name}] })
}

// errDryRun rolls back what CompareImport tried out.
var errDryRun = errors.New("dry run")

// CompareImport says what Import would do, invalid entries included, and changes
// nothing. Errors: as Import, but for invalid entries.
func (c *Catalog) CompareImport(ctx context.Context, actor loom.Actor, b Bundle, mode Mode) (Report, error) {
	if err := checkImport(actor, loom.Publish.Reading(), b, mode); err != nil {
		return Report{}, err
	}
	clean, invalid, err := checkBundle(b)
	if err != nil {
		return Report{}, err
	}
	var report Report
	err = store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		was, err := c.finder(ctx, tx, actor.Tenant, loom.TenantKinds)
		if err != nil {
			return err
		}
		before, err := was.find(ctx, always)
		if err != nil {
			return err
		}
		if report, err = c.importBundle(ctx, tx, actor, clean, mode); err != nil {
			return err
		}
		is, err := c.finder(ctx, tx, actor.Tenant, loom.TenantKinds)
		if err != nil {
			return err
		}
		after, err := is.find(ctx, always)
		if err != nil {
			return err
		}
		report.Findings, report.Breaks = about(after, report), added(before, after)
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return Report{}, err
	}
	report.Invalid = append(report.Invalid, invalid...)
	return report, nil
}

func checkImport(actor loom.Actor, verb loom.Verb, b Bundle, mode Mode) error {
	if err := actor.May(verb, actor.InTenant()); err != nil {
		return err
	}
	if mode != Merge && mode != Replace {
		return loom.InvalidFields([]loom.FieldError{{Field: "mode", Message: "The mode is “merge” or “replace”."}})
	}
	if mode == Replace && b.bare() {
		return loom.NewError(loom.Invalid, "The document has none of the kinds, so replacing the catalog by it would delete all there is; nothing was changed. "+
			"If that is what you want, give each kind as an empty list: %s. To leave the rest alone, import with mode=merge.", emptyLists())
	}
	return nil
}

// emptyLists is a document that means an empty catalog.
func emptyLists() string {
	lists := make([]string, len(loom.TenantKinds))
	for i, kind := range loom.TenantKinds {
		lists[i] = `"` + string(kind) + `": []`
	}
	return "{" + strings.Join(lists, ", ") + "}"
}

// checkBundle normalizes the entries, which may have been made by hand.
func checkBundle(b Bundle) (map[loom.EntityKind][]loom.Entry, []InvalidEntry, error) {
	clean := map[loom.EntityKind][]loom.Entry{}
	invalid := slices.Clone(b.Invalid)
	for _, kind := range loom.TenantKinds {
		for i, entry := range b.Entries[kind] {
			normal, fields, err := normalize(kind, entry)
			if err != nil {
				return nil, nil, err
			}
			if fields = importErrors(fields, normal); len(fields) > 0 {
				invalid = append(invalid, element(kind, i).invalid(kind, normal.Meta().Name, fields))
				continue
			}
			clean[kind] = append(clean[kind], normal)
		}
	}
	return clean, invalid, nil
}

func invalidBundle(invalid []InvalidEntry) error {
	if len(invalid) == 0 {
		return nil
	}
	const told = 5
	var fields []loom.FieldError
	var names []string
	for i, entry := range invalid {
		fields = append(fields, entry.Fields...)
		if i < told {
			names = append(names, fmt.Sprintf("%s “%s”", entry.Kind.Word(), entry.Name))
		}
	}
	if len(invalid) > told {
		names = append(names, fmt.Sprintf("%d more", len(invalid)-told))
	}
	message := fmt.Sprintf("%d entries are invalid: %s; nothing was imported.", len(invalid), loom.And(names))
	if len(invalid) == 1 {
		message = fmt.Sprintf("The %s is invalid; nothing was imported.", names[0])
	}
	return &loom.Error{Kind: loom.Invalid, Message: message, Fields: loom.BoundFields(fields, 0)}
}

// importBundle stores entries. Those that the tenant may not have are named as invalid in
// the report and left out.
func (c *Catalog) importBundle(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, entries map[loom.EntityKind][]loom.Entry, mode Mode) (Report, error) {
	report := Report{New: []EntryName{}, Changed: []EntryName{}, Same: []EntryName{}, Invalid: []InvalidEntry{}, Removed: []EntryName{}}
	if err := store.LockCatalog(ctx, tx, actor.Tenant); err != nil {
		return report, err
	}
	stored, err := store.NewestCatalogEntries(ctx, tx, actor.Tenant, loom.TenantKinds...)
	if err != nil {
		return report, err
	}
	may, err := store.Permits(ctx, tx, actor.Tenant)
	if err != nil {
		return report, err
	}
	versions := make(map[EntryName]int, len(stored))
	for _, s := range stored {
		versions[EntryName{s.Kind, s.Entry.Meta().Name}] = s.Version
	}
	left := make(map[EntryName]bool, len(stored))
	for name := range versions {
		left[name] = true
	}
	var writes []importWrite
	for _, kind := range loom.TenantKinds {
		for _, entry := range entries[kind] {
			name := EntryName{kind, entry.Meta().Name}
			if p, ok := entry.(*loom.Provider); ok {
				err := permitted(ctx, tx, actor.Tenant, may, p)
				if errors.Is(err, loom.Invalid) {
					report.Invalid = append(report.Invalid, InvalidEntry{Kind: kind, Name: p.Name, Fields: loom.AsError(err).Fields})
					continue
				}
				if err != nil {
					return report, err
				}
			}
			w, same, err := c.compareImport(ctx, tx, actor.Tenant, kind, entry)
			if p, ok := entry.(*loom.Provider); ok && err == nil {
				err = c.mayReplace(ctx, tx, actor.Tenant, *p, w.split)
				if errors.Is(err, loom.Invalid) {
					report.Invalid = append(report.Invalid, InvalidEntry{Kind: kind, Name: p.Name, Fields: loom.AsError(err).Fields})
					continue
				}
			}
			if err != nil {
				return report, err
			}
			switch {
			case versions[name] == 0:
				report.New = append(report.New, name)
			case same:
				report.Same = append(report.Same, name)
			default:
				report.Changed = append(report.Changed, name)
			}
			if kind != loom.KindProvider && (versions[name] == 0 || !same) { // clusters use providers as they are now
				report.Drafts = append(report.Drafts, store.EntryDraft{Kind: kind, Entry: entry})
			}
			delete(left, name)
			if !same || mode != Merge {
				writes = append(writes, w)
			}
		}
	}
	if mode == Replace {
		if err := c.clear(ctx, tx, actor.Tenant, left, &report); err != nil {
			return report, err
		}
		clear(versions)
	}
	err = weighed(ctx, tx, actor.Tenant, func() error {
		for _, w := range writes {
			meta := w.entry.Meta()
			meta.Version = versions[EntryName{w.kind, meta.Name}] + 1
			if w.kind == loom.KindProvider {
				if err := c.storeSplit(ctx, tx, actor.Tenant, meta.Name, w.split, actor.User); err != nil {
					return err
				}
			}
			if _, err := store.InsertCatalogVersion(ctx, tx, actor.Tenant, w.kind, w.entry, actor.User); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return report, err
	}
	if len(writes) == 0 && len(report.Removed) == 0 {
		return report, nil
	}
	if mode == Replace {
		if err := store.DropBindingsOfTemplates(ctx, tx, actor.Tenant); err != nil {
			return report, err
		}
	}
	if err := store.InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "import", Kind: "catalog", Object: string(mode), After: report}); err != nil {
		return report, err
	}
	return report, store.InsertEvents(ctx, tx, changed(actor.Tenant, "catalog"))
}

// importWrite is an entry that an import stores.
type importWrite struct {
	kind  loom.EntityKind
	entry loom.Entry
	split split
}

// compareImport makes an entry of an import ready to be stored, and reports whether it
// is stored already as it stands.
func (c *Catalog) compareImport(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, entry loom.Entry) (importWrite, bool, error) {
	w := importWrite{kind: kind, entry: entry}
	provider, isProvider := entry.(*loom.Provider)
	if isProvider {
		var err error
		if w.split, err = c.splitProvider(ctx, tx, tenant, provider); err != nil {
			return w, false, err
		}
	}
	same, err := store.CatalogUnchanged(ctx, tx, tenant, kind, entry)
	return w, same && (!isProvider || c.sameSecrets(tenant, provider.Name, w.split)), err
}

// clear deletes all entries but providers that clusters use; sealed fields stay with the providers that will be
// there again, left are the names that will not.
func (c *Catalog) clear(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, left map[EntryName]bool, report *Report) error {
	var kept []string
	for name := range left {
		if name.Kind == loom.KindProvider {
			used, err := inUse(ctx, tx, tenant, name.Name)
			if err != nil {
				return err
			}
			if used != "" {
				kept = append(kept, name.Name)
				continue
			}
		}
		report.Removed = append(report.Removed, name)
		if name.Kind != loom.KindProvider {
			continue
		}
		if err := store.DeleteSecrets(ctx, tx, tenant, store.ProviderSecrets(name.Name)); err != nil {
			return err
		}
	}
	slices.SortFunc(report.Removed, func(a, b EntryName) int {
		return slices.Compare([]string{string(a.Kind), a.Name}, []string{string(b.Kind), b.Name})
	})
	return store.DeleteCatalogBut(ctx, tx, tenant, kept)
}
