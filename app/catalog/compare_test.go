package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

func parse(t testing.TB, body string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

func TestDifferencesAreFew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{`{"a":1}`, `{"a":1}`, ``},
		{`{"a":1}`, `{"a":2}`, `~ /a`},
		{`{"a":1}`, `{"a":1.0}`, `~ /a`},
		{`{"a":1}`, `{"b":1}`, `- /a|+ /b`},
		{`{"a":null}`, `{}`, `- /a`},
		{`{"a":{"b/c":{"~":1}}}`, `{"a":{"b/c":{"~":2}}}`, `~ /a/b~1c/~0`},
		{`{"a":["x","y","z"]}`, `{"a":["new","x","y","z"]}`, `+ /a/0`},
		{`{"a":["x","y","z"]}`, `{"a":["x","z"]}`, `- /a/1`},
		{`{"a":["x","y"]}`, `{"a":["x","q"]}`, `~ /a/1`},
		{`{"a":[1,2,3,4]}`, `{"a":[]}`, `- /a/3|- /a/2|- /a/1|- /a/0`},
		{`{"a":{}}`, `{"a":[]}`, `~ /a`},
		{`{"links":[{"url":"x"}]}`, `{"links":[{"url":"y","label":"l"}]}`, `+ /links/0/label|~ /links/0/url`},
		{`1`, `2`, `~ `},
	} {
		if got := inLine(catalog.Differences(parse(t, c.from), parse(t, c.to))); got != c.want {
			t.Errorf("%s to %s: %v, want %s", c.from, c.to, got, c.want)
		}
	}
}

// FuzzDifferences carries out what a comparison says: the old document becomes
// the new one.
func FuzzDifferences(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		random := rand.New(rand.NewPCG(a, b))
		from := document(random, 4)
		to := mutate(random, from, 4)
		x, y := text(t, from), text(t, to)
		got := parse(t, x)
		for _, d := range catalog.Differences(parse(t, x), parse(t, y)) {
			got = carryOut(t, got, d)
		}
		if text(t, got) != y {
			t.Errorf("%s by %v became %s, want %s", x, catalog.Differences(parse(t, x), parse(t, y)), text(t, got), y)
		}
	})
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(b))
}

var keys = []string{"a", "b", "a/b", "~", ""}

func document(random *rand.Rand, depth int) any {
	switch n := random.IntN(6); {
	case depth == 0 || n < 2:
		return []any{nil, "x", "y", json.Number("1"), json.Number("2.50"), true}[random.IntN(6)]
	case n < 4:
		array := []any{}
		for range random.IntN(5) {
			array = append(array, document(random, depth-1))
		}
		return array
	default:
		object := map[string]any{}
		for range random.IntN(4) {
			object[keys[random.IntN(len(keys))]] = document(random, depth-1)
		}
		return object
	}
}

// mutate changes a copy of a document here and there.
func mutate(random *rand.Rand, v any, depth int) any {
	if random.IntN(5) == 0 {
		return document(random, depth)
	}
	switch v := v.(type) {
	case []any:
		out := []any{}
		for _, item := range v {
			if random.IntN(4) == 0 {
				out = append(out, document(random, depth-1))
			}
			if random.IntN(4) > 0 {
				out = append(out, mutate(random, item, depth-1))
			}
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, item := range v {
			if random.IntN(4) > 0 {
				out[key] = mutate(random, item, depth-1)
			}
		}
		return out
	}
	return v
}

// carryOut applies one difference to a document.
func carryOut(t *testing.T, document any, d catalog.Difference) any {
	t.Helper()
	if d.Path == "" {
		return d.New
	}
	parts := strings.Split(d.Path[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	var change func(at any, parts []string) any
	change = func(at any, parts []string) any {
		key, last := parts[0], len(parts) == 1
		switch v := at.(type) {
		case map[string]any:
			switch {
			case !last:
				v[key] = change(v[key], parts[1:])
			case d.Sign == catalog.SignRemoved:
				delete(v, key)
			default:
				v[key] = d.New
			}
			return v
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil {
				t.Fatalf("%v: %q is no index", d, key)
			}
			switch {
			case !last:
				v[i] = change(v[i], parts[1:])
			case d.Sign == catalog.SignAdded:
				return slices.Insert(v, i, d.New)
			case d.Sign == catalog.SignRemoved:
				return slices.Delete(v, i, i+1)
			default:
				v[i] = d.New
			}
			return v
		}
		t.Fatalf("%v leads nowhere", d)
		return nil
	}
	return change(document, parts)
}

// inLine writes differences in a line.
func inLine(found []catalog.Difference) string {
	var all []string
	for _, d := range found {
		all = append(all, fmt.Sprintf("%s %s", d.Sign, d.Path))
	}
	return strings.Join(all, "|")
}

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{`{"name":"s","follows":["a"]}`, `{"name":"s","follows":["a","b"]}`, `{"name":"s","label":"L"}`} {
		b.save(t, b.admin, loom.KindService, "%s", body)
	}
	compare := func(from, to int) string {
		found, err := b.Compare(b.ctx, b.user, catalog.CompareInput{Kind: loom.KindService, Name: "s", From: from, To: to})
		if err != nil {
			return string(loom.AsError(err).Kind)
		}
		return inLine(found)
	}
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 0, "- /follows|+ /label"}, {1, 2, "+ /follows/1"}, {0, 2, "+ /follows/1"}, {2, 1, "- /follows/1"}, {1, 0, "- /follows|+ /label"},
		{2, 2, ""}, {0, 1, "not-found"}, {9, 1, "not-found"}, {1, 9, "not-found"},
	} {
		if got := compare(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %s, want %s", c.from, c.to, got, c.want)
		}
	}
	if err := b.Delete(b.ctx, b.admin, loom.KindService, "s", 2); err != nil {
		t.Fatal(err)
	}
	if got := compare(0, 0); got != "- /follows|+ /label" {
		t.Errorf("the version before was deleted: %s", got)
	}
}
