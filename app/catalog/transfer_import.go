package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Choice is what an import does with an entry.
type Choice struct {
	// Action is skip, write or rename. Write makes a new entry, or a new version of
	// the one that is there.
	Action string
	// Name is the new one of a renamed entry.
	Name string
}

// The actions of a choice.
const (
	ChoiceSkip   = "skip"
	ChoiceWrite  = "write"
	ChoiceRename = "rename"
)

// KeptInput says what to do with a kept bundle. Seen is that of its preview; entries
// without a choice are skipped.
type KeptInput struct {
	Seen    string
	Choices map[EntryName]Choice
	// LeaveInvalid leaves out what is invalid; without it that stops the import.
	LeaveInvalid bool
}

// ImportKept stores the chosen entries of the kept bundle, all or none of them, and
// forgets the bundle. Where an entry is renamed, the others of the bundle name it by
// its new name; macros in configurations do not. Errors: Forbidden; NotFound when no
// bundle is kept; Conflict when the catalog or the bundle changed since its preview;
// Invalid for a new name that is none, or taken, and when nothing was chosen.
func (c *Catalog) ImportKept(ctx context.Context, actor loom.Actor, in KeptInput, now time.Time) (Report, error) {
	return c.importKept(ctx, actor, in, now, func(Report) error { return nil })
}

// CompareKept says what ImportKept would store, and stores nothing. Errors: as ImportKept.
func (c *Catalog) CompareKept(ctx context.Context, actor loom.Actor, in KeptInput, now time.Time) (Report, error) {
	var report Report
	_, err := c.importKept(ctx, actor, in, now, func(r Report) error {
		report = r
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return Report{}, err
	}
	return report, nil
}

// importKept imports as ImportKept does, unless then fails.
func (c *Catalog) importKept(ctx context.Context, actor loom.Actor, in KeptInput, now time.Time, then func(Report) error) (Report, error) {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return Report{}, err
	}
	b, sum, err := c.kept(ctx, actor, now)
	if err != nil {
		return Report{}, err
	}
	clean, invalid, err := checkBundle(b)
	if err != nil {
		return Report{}, err
	}
	if !in.LeaveInvalid {
		if err := invalidBundle(invalid); err != nil {
			return Report{}, err
		}
	}
	return store.InTx(ctx, c.db, func(tx *sqlx.Tx) (Report, error) {
		before, err := c.storedOf(ctx, tx, actor.Tenant, clean)
		if err != nil {
			return Report{}, err
		}
		if seenOf(sum, before) != in.Seen {
			return Report{}, loom.NewError(loom.Conflict, "The catalog or the bundle changed since this preview; nothing was imported. Look at the new preview.")
		}
		chosen, err := c.chosen(ctx, tx, actor.Tenant, clean, in.Choices)
		if err != nil {
			return Report{}, err
		}
		report, err := c.importBundle(ctx, tx, actor, chosen, Merge)
		if err != nil {
			return Report{}, err
		}
		if !in.LeaveInvalid {
			if err := invalidBundle(report.Invalid); err != nil {
				return Report{}, err
			}
		}
		if err := store.DeleteSecrets(ctx, tx, actor.Tenant, store.ImportEntity(actor.User), keptField); err != nil {
			return Report{}, err
		}
		return report, then(report)
	})
}

// chosen gives the entries to store, under their new names.
func (c *Catalog) chosen(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, clean map[loom.EntityKind][]loom.Entry, choices map[EntryName]Choice) (map[loom.EntityKind][]loom.Entry, error) {
	taken := map[EntryName]bool{}
	stored, err := store.NewestCatalogEntries(ctx, tx, tenant, loom.TenantKinds...)
	if err != nil {
		return nil, err
	}
	for _, s := range stored {
		taken[EntryName{s.Kind, s.Entry.Meta().Name}] = true
	}
	kept, renamed := map[loom.EntityKind][]loom.Entry{}, map[EntryName]string{}
	var errs []loom.FieldError
	n := 0
	for _, kind := range loom.TenantKinds {
		for _, entry := range clean[kind] {
			name := EntryName{kind, entry.Meta().Name}
			choice := choices[name]
			switch choice.Action {
			case "", ChoiceSkip:
				continue
			case ChoiceWrite:
				taken[name] = true
			case ChoiceRename:
				to := EntryName{kind, choice.Name}
				if why := renameError(name, to, taken); why != "" {
					errs = append(errs, loom.FieldError{Field: RenameField(name), Message: why})
					continue
				}
				taken[to], renamed[name] = true, to.Name
			default:
				errs = append(errs, loom.FieldError{Field: string(kind) + "/" + name.Name, Message: fmt.Sprintf("“%.20s” is none of skip, write and rename.", choice.Action)})
				continue
			}
			kept[kind] = append(kept[kind], entry)
			n++
		}
	}
	if len(errs) == 0 && n == 0 {
		return nil, loom.NewError(loom.Invalid, "Nothing to import. Choose at least one entry to create or overwrite.")
	}
	if err := loom.InvalidFields(errs); err != nil {
		return nil, err
	}
	return kept, rename(kept, renamed)
}

// RenameField names the field in which the new name of an entry is given.
func RenameField(name EntryName) string { return "name:" + string(name.Kind) + "/" + name.Name }

func renameError(name, to EntryName, taken map[EntryName]bool) string {
	if errs := loom.CheckName("", to.Name); len(errs) > 0 {
		return "The new name of “" + name.Name + "”: " + errs[0].Message
	}
	if taken[to] {
		return fmt.Sprintf("There is a %s “%s” already; give another name.", name.Kind.Word(), to.Name)
	}
	return ""
}

// rename gives entries their new names and follows them through the bundle.
func rename(entries map[loom.EntityKind][]loom.Entry, renamed map[EntryName]string) error {
	if len(renamed) == 0 {
		return nil
	}
	for kind, list := range entries {
		for i, entry := range list {
			followed, err := follow(kind, entry, renamed)
			if err != nil {
				return err
			}
			if to := renamed[EntryName{kind, followed.Meta().Name}]; to != "" {
				followed.Meta().Name = to
			}
			list[i] = followed
		}
	}
	return nil
}

// follow gives an entry in which renamed ones are named anew. Those that name none
// stay as they are: a provider, which may hold secrets, is never written out.
func follow(kind loom.EntityKind, entry loom.Entry, renamed map[EntryName]string) (loom.Entry, error) {
	var names []reference
	for _, r := range references(entry) {
		if renamed[EntryName{r.kind, r.name}] != "" {
			names = append(names, r)
		}
	}
	if len(names) == 0 {
		return entry, nil
	}
	document, err := tree(entry)
	if err != nil {
		return nil, err
	}
	// Keys change last: fields below them are found by the old ones.
	slices.SortStableFunc(names, func(a, b reference) int { return strings.Count(b.field, "/") - strings.Count(a.field, "/") })
	for _, r := range names {
		replaceAt(document, r.field, r.name, renamed[EntryName{r.kind, r.name}])
	}
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return Decode(kind, body)
}

var pointerPlain = strings.NewReplacer("~1", "/", "~0", "~")

// replaceAt puts a new name where a pointer leads: in place of a text, or of the key
// at its end.
func replaceAt(document any, field, old, name string) {
	parts := strings.Split(strings.TrimPrefix(field, "/"), "/")
	for i, part := range parts {
		part = pointerPlain.Replace(part)
		last := i == len(parts)-1
		switch at := document.(type) {
		case map[string]any:
			if last {
				if at[part] == old {
					at[part] = name
				} else if part == old {
					at[name] = at[old]
					delete(at, old)
				}
				return
			}
			document = at[part]
		case []any:
			n, err := strconv.Atoi(part)
			if err != nil || n < 0 || n >= len(at) {
				return
			}
			if last {
				if at[n] == old {
					at[n] = name
				}
				return
			}
			document = at[n]
		default:
			return
		}
	}
}

// ExportOf gives the newest versions of some entries of the actor's tenant, and with
// needs all that they name, directly or by others. Names that there are not are left
// out.
func (c *Catalog) ExportOf(ctx context.Context, actor loom.Actor, names []EntryName, needs bool) (Bundle, error) {
	all, err := c.Export(ctx, actor)
	if err != nil {
		return Bundle{}, err
	}
	wanted := map[EntryName]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	if needs {
		wanted = closure(all, wanted)
	}
	b := Bundle{Entries: map[loom.EntityKind][]loom.Entry{}}
	for _, kind := range loom.TenantKinds {
		for _, entry := range all.Entries[kind] {
			if wanted[EntryName{kind, entry.Meta().Name}] {
				b.Entries[kind] = append(b.Entries[kind], entry)
			}
		}
	}
	return b, nil
}

// closure adds what entries name, again and again. That a type has settings for a
// provider does not make it need that provider.
func closure(all Bundle, wanted map[EntryName]bool) map[EntryName]bool {
	entries, provides := map[EntryName]loom.Entry{}, map[string][]EntryName{}
	for kind, list := range all.Entries {
		for _, e := range list {
			name := EntryName{kind, e.Meta().Name}
			entries[name] = e
			if s, ok := e.(*loom.Service); ok {
				for _, word := range s.Dependencies.Provides {
					provides[word] = append(provides[word], name)
				}
			}
		}
	}
	found := map[EntryName]bool{}
	var add func(name EntryName)
	add = func(name EntryName) {
		entry := entries[name]
		if entry == nil || found[name] {
			return
		}
		found[name] = true
		for _, r := range references(entry) {
			if r.kind == loom.KindProvider && (name.Kind == loom.KindHardwareType || name.Kind == loom.KindImageType) || strings.HasPrefix(r.field, "/dependencies/conflicts/") {
				continue
			}
			add(EntryName{r.kind, r.name})
			if r.provided {
				for _, p := range provides[r.name] {
					add(p)
				}
			}
		}
	}
	for name := range wanted {
		add(name)
	}
	return found
}
