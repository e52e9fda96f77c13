package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/store"
)

// FacetChoice is what is chosen of each facet of a list, "" for any.
type FacetChoice struct {
	// Label is key=value.
	Label string
	// Provider is one that the entry names, Automator one that an action runs with.
	Provider, Automator string
	// Findings is a severity or a code.
	Findings string
	// Use is FacetUnused, or "".
	Use string
}

// FacetUnused is the value of the facet Use.
const FacetUnused = "unused"

// FacetCount is how many entries have a value.
type FacetCount = store.FacetCount

// Facets count the entries of a list by value of each facet, as the other facets are chosen,
// and say of each entry by name how many others name it, and the worst that was found of it.
type Facets struct {
	Label, Provider, Automator, Findings, Use []FacetCount
	Uses                                      map[string]int
	Worst                                     map[string]loom.FindingSeverity
}

// facets counts, and gives the names of the entries that are chosen.
func (c *Catalog) facets(ctx context.Context, actor loom.Actor, tenant loom.TenantID, kind loom.EntityKind, in ListInput) (Facets, []string, error) {
	stored, err := c.newest(ctx, actor, loom.TenantKinds...)
	if err != nil {
		return Facets{}, nil, err
	}
	f, err := c.finder(ctx, c.db, tenant, append(slices.Clone(needs(kind)), kind))
	if err != nil {
		return Facets{}, nil, err
	}
	wanted := func(k loom.EntityKind, _ string) bool { return k == kind }
	found, err := f.find(ctx, wanted)
	if err != nil {
		return Facets{}, nil, err
	}
	out := Facets{Uses: useCounts(stored, kind), Worst: map[string]loom.FindingSeverity{}}
	codes := map[string][]string{}
	for _, finding := range found {
		codes[finding.Name] = append(codes[finding.Name], string(finding.Severity), string(finding.Code))
		if out.Worst[finding.Name] != loom.FindingError {
			out.Worst[finding.Name] = finding.Severity
		}
	}
	for _, name := range f.uncheckedServices(wanted) {
		codes[name] = append(codes[name], string(loom.FindingUnchecked))
	}
	chosen := []string{in.Label, in.Provider, in.Automator, in.Findings, in.Use}
	counts := make([]map[string]int, len(chosen))
	for i := range counts {
		counts[i] = map[string]int{}
	}
	names := []string{}
	for _, s := range stored {
		meta := s.Entry.Meta()
		if s.Kind != kind || !in.matches(meta) {
			continue
		}
		use := []string{}
		if out.Uses[meta.Name] == 0 && kind != loom.KindTemplate { // clusters are made from templates
			use = append(use, FacetUnused)
		}
		values := [][]string{loom.LabelTexts(meta.Labels), namesOf(s.Entry, loom.KindProvider), namesOf(s.Entry, loom.KindAutomatorType), codes[meta.Name], use}
		missed, at := 0, 0
		for i, value := range chosen {
			if value != "" && !slices.Contains(values[i], value) {
				missed, at = missed+1, i
			}
		}
		for i := range values {
			if missed == 0 || missed == 1 && at == i {
				for _, value := range slices.Compact(slices.Sorted(slices.Values(values[i]))) {
					counts[i][value]++
				}
			}
		}
		if missed == 0 {
			names = append(names, meta.Name)
		}
	}
	out.Label, out.Provider, out.Automator, out.Findings, out.Use = counted(counts[0]), counted(counts[1]), counted(counts[2]), counted(counts[3]), counted(counts[4])
	return out, names, nil
}

// matches reports whether an entry has all words that are searched for, and is deprecated or
// not as asked.
func (in ListInput) matches(meta *loom.Base) bool {
	text := strings.ToLower(meta.Name + " " + meta.Label + " " + meta.Description)
	for word := range strings.FieldsSeq(strings.ToLower(in.Q)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return (in.Deprecated == nil || *in.Deprecated == meta.Deprecated) && (in.Names == nil || slices.Contains(in.Names, meta.Name))
}

// namesOf lists what of a kind an entry names.
func namesOf(entry loom.Entry, kind loom.EntityKind) []string {
	var names []string
	for _, r := range references(entry) {
		if r.kind == kind {
			names = append(names, r.name)
		}
	}
	return names
}

// counted lists values by how many entries have them, maxFacet of them.
func counted(counts map[string]int) []FacetCount {
	const maxFacet = 50
	var list []FacetCount
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, FacetCount{Value: value, N: counts[value]})
	}
	slices.SortStableFunc(list, func(a, b FacetCount) int { return cmp.Compare(b.N, a.N) })
	return list[:min(len(list), maxFacet)]
}
