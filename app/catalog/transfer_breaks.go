package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"loom/app/loom"
)

// TransferFinding is something that the whole catalog would have after an import and has
// not now. It depends on what is done with the entries that are there and differ: Kept says
// that it comes when they are kept, Overwritten that it comes when they are overwritten.
type TransferFinding struct {
	loom.Finding
	Kept, Overwritten bool
	// Known says that the entry it is about is in the catalog now: an error breaks it.
	Known bool
	// By are the entries of the bundle that it comes from, as far as that can be told.
	By []EntryName
}

// Breaks reports whether something that works now would stop working.
func (f TransferFinding) Breaks() bool { return f.Known && f.Severity == loom.FindingError }

// find fills in what the whole catalog would have of findings, and which entries they come
// from. Was is the catalog as it is, is the one in which everything is overwritten.
func (t *Transfer) find(ctx context.Context, was, is *finder, report Report) error {
	kept := was.copied()
	for _, name := range report.New {
		kept.add(name.Kind, is.entries[name.Kind][name.Name])
	}
	known := map[EntryName]bool{}
	for kind, entries := range was.entries {
		for name := range entries {
			known[EntryName{kind, name}] = true
		}
	}
	before, err := was.find(ctx, always)
	if err != nil {
		return err
	}
	whenKept, err := kept.find(ctx, always)
	if err != nil {
		return err
	}
	overwritten, err := is.find(ctx, always)
	if err != nil {
		return err
	}
	at := map[loom.Finding]int{}
	for i, found := range [][]loom.Finding{added(before, overwritten), added(before, whenKept)} {
		for _, f := range found {
			n, again := at[trouble(f)]
			if !again {
				n = len(t.Findings)
				at[trouble(f)] = n
				t.Findings = append(t.Findings, TransferFinding{Finding: f, Known: known[EntryName{f.Kind, f.Name}]})
			}
			t.Findings[n].Overwritten = t.Findings[n].Overwritten || i == 0
			t.Findings[n].Kept = t.Findings[n].Kept || i == 1
		}
	}
	t.blame(was, is)
	slices.SortStableFunc(t.Findings, func(a, b TransferFinding) int {
		return cmp.Or(-compareBool(a.Breaks(), b.Breaks()), cmp.Compare(slices.Index(loom.FindingSeverities, a.Severity), slices.Index(loom.FindingSeverities, b.Severity)))
	})
	return nil
}

// maxBlamed is of how many broken entries is told which entries of the bundle they need.
const maxBlamed = 200

// blame finds the entries of the bundle that each finding depends on, before or after the import.
func (t *Transfer) blame(was, is *finder) {
	place := map[EntryName]int{}
	for i, e := range t.Entries {
		if e.State != TransferSame {
			place[e.EntryName] = i
		}
	}
	needs := map[EntryName][]EntryName{}
	for i := range t.Findings {
		f := &t.Findings[i]
		name := EntryName{f.Kind, f.Name}
		if !f.Breaks() || needs[name] == nil && len(needs) == maxBlamed {
			continue
		}
		if needs[name] == nil {
			needs[name] = []EntryName{}
			found := closure(was.bundle(), map[EntryName]bool{name: true})
			maps.Copy(found, closure(is.bundle(), map[EntryName]bool{name: true}))
			for _, e := range t.Entries {
				if _, differs := place[e.EntryName]; differs && found[e.EntryName] {
					needs[name] = append(needs[name], e.EntryName)
				}
			}
		}
		f.By = needs[name]
		for _, by := range f.By {
			e := &t.Entries[place[by]]
			if !f.Overwritten && e.State == TransferChanged || slices.Contains(e.Breaks, name) {
				continue // it comes from keeping that entry
			}
			e.Breaks = append(e.Breaks, name)
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func always(loom.EntityKind, string) bool { return true }

// added gives the findings that were not there before.
func added(before, after []loom.Finding) []loom.Finding {
	known := map[loom.Finding]bool{}
	for _, f := range before {
		known[trouble(f)] = true
	}
	return slices.DeleteFunc(slices.Clone(after), func(f loom.Finding) bool { return known[trouble(f)] })
}

// trouble is what stays of a finding when it is found again, at whatever place of a list:
// as rule, and how grave it is.
func trouble(f loom.Finding) loom.Finding {
	same := rule(f)
	if same.Severity = f.Severity; same.Value != "" {
		same.Field = ""
	}
	return same
}

// copied is a catalog of the same entries, to which others can be added.
func (f *finder) copied() *finder {
	c := newFinder()
	for kind, entries := range f.entries {
		c.entries[kind] = maps.Clone(entries)
	}
	c.resources = f.resources
	return c
}

// bundle is the catalog's entries as closure takes them.
func (f *finder) bundle() Bundle {
	b := Bundle{Entries: map[loom.EntityKind][]loom.Entry{}}
	for kind, entries := range f.entries {
		b.Entries[kind] = slices.Collect(maps.Values(entries))
	}
	return b
}
