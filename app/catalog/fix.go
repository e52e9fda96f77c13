package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// FixInput says which findings to fix, and how.
type FixInput struct {
	Code   loom.FindingCode
	Values []string
	// Missing is the kind of what the values name; it may be left out where only one kind
	// misses them.
	Missing loom.EntityKind
	Fix     loom.FindingFix
	// To is the entry to name instead, for loom.FixReplace.
	To string
	// Digest, unless empty, is that of the Fixed that was shown: the fix is refused if it
	// would do anything else now.
	Digest string
	// DryRun changes nothing.
	DryRun bool
	// Entries, unless nil, are those whose references are replaced, whether what they name
	// exists or not.
	Entries []EntryName
}

// Fixed is what a fix does.
type Fixed struct {
	Entries []FixedEntry
	// Digest identifies the entries as they were and what changes in them.
	Digest string
}

// FixedEntry is an entry that a fix changes, with the version that it had.
type FixedEntry struct {
	EntryName
	Version int
	Changes []Difference
}

// Fix changes all entries with the given findings, in one transaction, and leaves none of
// these findings. Each entry gets its next version, as Save stores it. Errors: Forbidden;
// Invalid with the fields "code", "value", "kind", "fix" and "to"; Conflict when there are no
// such findings, or others than those of Digest; those of Save.
func (c *Catalog) Fix(ctx context.Context, actor loom.Actor, in FixInput) (Fixed, error) {
	if err := actor.May(loom.Publish, actor.InTenant()); err != nil {
		return Fixed{}, err
	}
	if err := in.check(); err != nil {
		return Fixed{}, err
	}
	if in.DryRun {
		f, err := c.quickFinder(ctx, c.db, actor.Tenant)
		if err != nil {
			return Fixed{}, err
		}
		fixed, _, err := in.draft(ctx, f)
		return fixed, err
	}
	return store.InTx(ctx, c.db, func(tx *sqlx.Tx) (Fixed, error) {
		if err := store.LockCatalog(ctx, tx, actor.Tenant); err != nil {
			return Fixed{}, err
		}
		f, err := c.quickFinder(ctx, tx, actor.Tenant)
		if err != nil {
			return Fixed{}, err
		}
		fixed, drafts, err := in.draft(ctx, f)
		if err != nil {
			return Fixed{}, err
		}
		for i, e := range fixed.Entries {
			if _, err := c.put(ctx, tx, actor, actor.Tenant, e.Kind, drafts[i], SaveInput{Expected: &e.Version, OnlyThere: true, AsNewest: true}); err != nil {
				return Fixed{}, fixError(e.EntryName, err)
			}
		}
		return fixed, c.fixedAll(ctx, tx, actor.Tenant, in, fixed)
	})
}

func (c *Catalog) quickFinder(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (*finder, error) {
	f, err := c.finder(ctx, q, tenant, loom.TenantKinds)
	if err == nil {
		f.quick = true
	}
	return f, err
}

// fixError names the entry that keeps a fix from being made.
func fixError(name EntryName, err error) error {
	e := loom.AsError(err)
	return &loom.Error{Kind: e.Kind, Message: fmt.Sprintf("Nothing was changed, because of the %s “%s”: %s", name.Kind.Word(), name.Name, e.Message), Err: err}
}

// fixedAll makes sure that a fix leaves none of its findings.
func (c *Catalog) fixedAll(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, in FixInput, fixed Fixed) error {
	after, err := c.quickFinder(ctx, tx, tenant)
	if err != nil {
		return err
	}
	found, err := in.find(ctx, after, fixed.has)
	if err != nil {
		return err
	}
	if left := in.chosen(found); len(left) > 0 {
		return loom.InvalidFields([]loom.FieldError{{Field: "to", Message: fmt.Sprintf("The %s “%s” cannot take this: %s", left[0].Kind.Word(), left[0].Name, left[0].Message)}})
	}
	return nil
}

func (f Fixed) has(kind loom.EntityKind, name string) bool {
	return slices.ContainsFunc(f.Entries, func(e FixedEntry) bool { return e.EntryName == EntryName{kind, name} })
}

// check looks at the input alone.
func (in FixInput) check() error {
	var errs []loom.FieldError
	wrong := func(field, message string) {
		errs = append(errs, loom.FieldError{Field: field, Message: message})
	}
	if in.Code == "" {
		wrong("code", "Name the code of the findings.")
	}
	if len(in.Values) == 0 || slices.Contains(in.Values, "") {
		wrong("value", "Give the value of the findings.")
	}
	switch {
	case !slices.Contains(loom.FindingFixes, in.Fix):
		wrong("fix", "A fix is one of "+loom.Or(loom.FindingFixes)+".")
	case in.Fix == loom.FixReplace && in.To == "":
		wrong("to", "Name the entry to use instead.")
	case in.Fix == loom.FixRemove && in.To != "":
		wrong("to", "Only the fix “replace” takes another entry.")
	}
	return loom.InvalidFields(errs)
}

// chosen gives the findings that the input names.
func (in FixInput) chosen(found []loom.Finding) []loom.Finding {
	var chosen []loom.Finding
	for _, f := range found {
		if f.Code == in.Code && slices.Contains(in.Values, f.Value) && slices.Contains(f.Fixes(), in.Fix) && (in.Missing == "" || f.Missing == in.Missing) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// find gives the findings to choose from, or the references of Entries as such.
func (in FixInput) find(ctx context.Context, f *finder, wanted func(kind loom.EntityKind, name string) bool) ([]loom.Finding, error) {
	if in.Entries == nil {
		return f.find(ctx, wanted)
	}
	f.index()
	var found []loom.Finding
	for _, name := range in.Entries {
		entry, there := f.entries[name.Kind][name.Name]
		if !there {
			continue
		}
		for _, r := range references(entry) {
			found = append(found, loom.Finding{Code: loom.FindingDangling, Kind: name.Kind, Name: name.Name, Field: r.field, Value: r.name, Missing: r.kind,
				Message: fmt.Sprintf("It names the %s “%s”.", r.kind.Word(), r.name)})
		}
	}
	return found, nil
}

// draft works out what a fix does, and the entries as it leaves them.
func (in FixInput) draft(ctx context.Context, f *finder) (Fixed, []loom.Entry, error) {
	found, err := in.find(ctx, f, always)
	if err != nil {
		return Fixed{}, nil, err
	}
	chosen := in.chosen(found)
	if len(chosen) == 0 {
		return Fixed{}, nil, loom.NewError(loom.Conflict, "The catalog changed: it has no findings “%s” of “%s” that “%s” fixes. Check it again.", in.Code, strings.Join(in.Values, "”, “"), in.Fix)
	}
	missing := chosen[0].Missing
	if i := slices.IndexFunc(chosen, func(f loom.Finding) bool { return f.Missing != missing }); i >= 0 {
		return Fixed{}, nil, loom.InvalidFields([]loom.FieldError{{Field: "kind",
			Message: fmt.Sprintf("Both %s and %s of this name are missing. Say which: “%s” or “%s”.", missing.OneWord(), chosen[i].Missing.OneWord(), missing, chosen[i].Missing)}})
	}
	if in.Fix == loom.FixReplace && !f.there(reference{kind: missing, name: in.To, provided: true}) {
		return Fixed{}, nil, loom.InvalidFields([]loom.FieldError{{Field: "to", Message: fmt.Sprintf("There is no %s “%.100s”.", missing.Word(), in.To)}})
	}
	byEntry := map[EntryName][]loom.Finding{}
	var order []EntryName
	for _, c := range chosen {
		name := EntryName{c.Kind, c.Name}
		if byEntry[name] == nil {
			order = append(order, name)
		}
		byEntry[name] = append(byEntry[name], c)
	}
	var fixed Fixed
	var drafts []loom.Entry
	for _, name := range order {
		before := f.entries[name.Kind][name.Name]
		after, err := in.apply(name.Kind, before, byEntry[name])
		if err != nil {
			return Fixed{}, nil, fixError(name, err)
		}
		changes, err := CompareEntries(before, after)
		if err != nil {
			return Fixed{}, nil, err
		}
		fixed.Entries = append(fixed.Entries, FixedEntry{name, before.Meta().Version, changes})
		drafts = append(drafts, after)
	}
	if fixed.Digest, err = digest(fixed.Entries); err != nil {
		return Fixed{}, nil, err
	}
	if in.Digest != "" && in.Digest != fixed.Digest {
		return Fixed{}, nil, loom.NewError(loom.Conflict, "The catalog changed since these changes were shown. Look at them again.")
	}
	return fixed, drafts, nil
}

func digest(entries []FixedEntry) (string, error) {
	body, err := json.Marshal(entries)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16]), nil
}

// apply gives an entry as a fix leaves it.
func (in FixInput) apply(kind loom.EntityKind, entry loom.Entry, found []loom.Finding) (loom.Entry, error) {
	document, err := tree(entry)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if !in.edit(document, f) {
			return nil, fmt.Errorf("the %s “%s” has no “%s” at %s", kind, entry.Meta().Name, f.Value, f.Field)
		}
	}
	body, err := json.Marshal(swept(document))
	if err != nil {
		return nil, err
	}
	return Decode(kind, body)
}

// removed stands for an element that is taken out of an array once all edits are made, so
// that the places of the others hold until then.
type removed struct{}

// edit makes the change at the place of a finding, and reports whether there was what it names.
func (in FixInput) edit(document any, f loom.Finding) bool {
	path := strings.Split(strings.TrimPrefix(f.Field, "/"), "/")
	for i := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(path[i])
	}
	if in.Fix == loom.FixRemove && path[len(path)-1] == "name" { // what an entry extends or includes is its name in an object
		path = path[:len(path)-1]
	}
	place := document
	for _, step := range path[:len(path)-1] {
		switch p := place.(type) {
		case map[string]any:
			place = p[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(p) {
				return false
			}
			place = p[i]
		}
	}
	last := path[len(path)-1]
	switch p := place.(type) {
	case map[string]any:
		value, there := p[last]
		_, isText := value.(string)
		switch {
		case !there:
			return false
		case in.Fix == loom.FixRemove:
			delete(p, last)
		case isText:
			p[last] = in.To
		default: // the name is the key
			delete(p, last)
			if _, taken := p[in.To]; !taken {
				p[in.To] = value
			}
		}
		return true
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil || i >= len(p) {
			return false
		}
		if in.Fix == loom.FixRemove || slices.Contains(p, any(in.To)) {
			p[i] = removed{}
		} else {
			p[i] = in.To
		}
		return true
	}
	return false
}

// swept takes removed elements out of a document. A set of names inside an array goes as well
// if fewer than two are left: it says nothing about one service alone.
func swept(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = swept(inner)
		}
	case []any:
		kept := make([]any, 0, len(v))
		for _, inner := range v {
			now := swept(inner)
			set, isSet := now.([]any)
			before, _ := inner.([]any)
			_, isRemoved := now.(removed)
			if isRemoved || isSet && len(set) < 2 && len(set) < len(before) {
				continue
			}
			kept = append(kept, now)
		}
		return kept
	}
	return value
}
