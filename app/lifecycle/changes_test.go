package lifecycle

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	n := func(s string) json.Number { return json.Number(s) }
	for _, c := range []struct {
		before, after map[string]any
		want          []Change
	}{
		{nil, nil, nil},
		{map[string]any{"a": 1}, map[string]any{"a": n("1.0")}, nil},
		{map[string]any{"a": []any{1, map[string]any{"b": 2}}}, map[string]any{"a": []any{n("1"), map[string]any{"b": n("2")}}}, nil},
		{map[string]any{"a": n("12345678901234567890")}, map[string]any{"a": n("12345678901234567891")},
			[]Change{{Change: "change", Name: "/a", Old: n("12345678901234567890"), New: n("12345678901234567891")}}},
		{map[string]any{"a": nil}, map[string]any{}, []Change{{Change: "remove", Name: "/a"}}},
		{map[string]any{"a": map[string]any{}}, map[string]any{"a": "x"}, []Change{{Change: "change", Name: "/a", Old: map[string]any{}, New: "x"}}},
		{map[string]any{"x/y~z": 1}, map[string]any{"x/y~z": 2}, []Change{{Change: "change", Name: "/x~1y~0z", Old: 1, New: 2}}},
		// Secrets: that they differ, not what they are, at any depth.
		{map[string]any{"password": "a"}, map[string]any{"password": "b"}, []Change{{Change: "change", Name: "/password", Old: "[redacted]", New: "[redacted]"}}},
		{map[string]any{"token": map[string]any{"x": "a"}}, map[string]any{"token": map[string]any{"x": "b"}},
			[]Change{{Change: "change", Name: "/token/x", Old: "[redacted]", New: "[redacted]"}}},
		{map[string]any{}, map[string]any{"db": map[string]any{"secret": "s", "port": 1}},
			[]Change{{Change: "create", Name: "/db", New: map[string]any{"secret": "[redacted]", "port": 1}}}},
		{map[string]any{"api_key": ""}, map[string]any{"api_key": "k"}, []Change{{Change: "change", Name: "/api_key", Old: "", New: "[redacted]"}}},
	} {
		if got := differences(c.before, c.after); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v to %v:\n%+v\nwant\n%+v", c.before, c.after, got, c.want)
		}
	}
}

// Laying the differences of two documents without secrets over the first gives
// the second.
func TestDifferencesLeadFromOneToTheOther(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var document func(depth int) any
	document = func(depth int) any {
		if depth == 0 || random.IntN(3) == 0 {
			return []any{"x", json.Number("1"), true, nil, []any{"a"}, map[string]any{}}[random.IntN(6)]
		}
		m := map[string]any{}
		for range random.IntN(4) {
			m[[]string{"a", "b/c", "d~", "e"}[random.IntN(4)]] = document(depth - 1)
		}
		return m
	}
	for i := range 2000 {
		before, after := map[string]any{"r": document(3)}, map[string]any{"r": document(3)}
		got := any(before)
		for _, c := range differences(before, after) {
			got = lay(got, strings.Split(c.Name, "/")[1:], c)
		}
		if !sameJSON(got, after) {
			t.Fatalf("%d: %v to %v gives %v", i, before, after, got)
		}
	}
}

// lay applies one difference to a copy of a document.
func lay(document any, path []string, c Change) any {
	if len(path) == 0 {
		return c.New
	}
	out := map[string]any{}
	for k, v := range document.(map[string]any) {
		out[k] = v
	}
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	if len(path) == 1 && c.Change == "remove" {
		delete(out, key)
		return out
	}
	out[key] = lay(out[key], path[1:], c)
	return out
}

func TestChangeListCountsAll(t *testing.T) {
	t.Parallel()
	var nodes []loom.Node
	for i := range 700 {
		nodes = append(nodes, loom.Node{Number: 1000 + i, Hostname: fmt.Sprint(i), Services: []string{"web"}})
	}
	var l changeList
	l.wholeNodes("remove", nodes)
	if l.all != 1400 || len(l.kept) != maxChanges || l.kept[699].Object != "node" || l.kept[700].Object != "service" {
		t.Errorf("%d kept of %d", len(l.kept), l.all)
	}
}
