package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"loom/app/loom"
)

// Sign says what a Difference does to a value.
type Sign string

// The signs.
const (
	SignAdded   Sign = "+"
	SignChanged Sign = "~"
	SignRemoved Sign = "-"
)

// Difference is one value that two documents do not share. Path is a JSON pointer:
// into the old document for what is removed, else into the new one. Old and New
// are JSON values, numbers as json.Number, and nil where there is none.
type Difference struct {
	Path     string
	Sign     Sign
	Old, New any
}

// CompareInput names two versions of an entry; 0 in From is the one before To, in
// To the newest.
type CompareInput struct {
	Kind     loom.EntityKind
	Name     string
	From, To int
}

// Compare says what changed from one version of an entry to another, version
// numbers left aside. NotFound, also when there is no version to compare with.
func (c *Catalog) Compare(ctx context.Context, actor loom.Actor, in CompareInput) ([]Difference, error) {
	infos, err := c.Versions(ctx, actor, in.Kind, in.Name) // newest first
	if err != nil {
		return nil, err
	}
	if in.To == 0 {
		in.To = infos[0].Version
	}
	if in.From == 0 {
		before := slices.IndexFunc(infos, func(v loom.VersionInfo) bool { return v.Version < in.To })
		if before < 0 {
			return nil, loom.NewError(loom.NotFound, "There is no version of the %s “%s” before version %d to compare it with.", in.Kind.Word(), in.Name, in.To)
		}
		in.From = infos[before].Version
	}
	from, _, err := c.Entry(ctx, actor, in.Kind, in.Name, in.From)
	if err != nil {
		return nil, err
	}
	to, _, err := c.Entry(ctx, actor, in.Kind, in.Name, in.To)
	if err != nil {
		return nil, err
	}
	return CompareEntries(from, to)
}

// CompareEntries says what changed from one entry to another, version numbers
// left aside. The entries stay as they are.
func CompareEntries(from, to loom.Entry) ([]Difference, error) {
	a, err := tree(from)
	if err != nil {
		return nil, err
	}
	b, err := tree(to)
	if err != nil {
		return nil, err
	}
	for _, document := range []any{a, b} {
		if object, ok := document.(map[string]any); ok {
			delete(object, "version")
		}
	}
	return Differences(a, b), nil
}

// tree gives a value as maps and slices, numbers as they are written.
func tree(v any) (any, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var document any
	err = d.Decode(&document)
	return document, err
}

// Differences lists what changes from one JSON document to another, by path;
// numbers are json.Number. What comes behind in an array stays the same where
// something was put in or taken out. Removals of elements of one array come last
// and from the end, so that the list can be carried out in its order.
func Differences(from, to any) []Difference { return differ([]Difference{}, "", from, to) }

func differ(found []Difference, path string, from, to any) []Difference {
	switch a := from.(type) {
	case map[string]any:
		b, ok := to.(map[string]any)
		if !ok {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(union(a, b))) {
			at := path + pointer(key)
			x, before := a[key]
			y, after := b[key]
			switch {
			case before && after:
				found = differ(found, at, x, y)
			case before:
				found = append(found, Difference{Path: at, Sign: SignRemoved, Old: x})
			default:
				found = append(found, Difference{Path: at, Sign: SignAdded, New: y})
			}
		}
		return found
	case []any:
		if b, ok := to.([]any); ok {
			return differElements(found, path, a, b)
		}
	}
	if same(from, to) {
		return found
	}
	return append(found, Difference{Path: path, Sign: SignChanged, Old: from, New: to})
}

// differElements compares arrays between their common beginning and end.
func differElements(found []Difference, path string, a, b []any) []Difference {
	start := 0
	for start < len(a) && start < len(b) && same(a[start], b[start]) {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && same(a[endA-1], b[endB-1]) {
		endA, endB = endA-1, endB-1
	}
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	for i := start; i < endA && i < endB; i++ {
		found = differ(found, at(i), a[i], b[i])
	}
	for i := endA; i < endB; i++ {
		found = append(found, Difference{Path: at(i), Sign: SignAdded, New: b[i]})
	}
	for i := endA - 1; i >= endB; i-- {
		found = append(found, Difference{Path: at(i), Sign: SignRemoved, Old: a[i]})
	}
	return found
}

func union(a, b map[string]any) map[string]any {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, b)
	return keys
}

// same compares JSON values; maps are written with sorted keys.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}
