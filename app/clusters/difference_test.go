package clusters

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"loom/app/loom"
)

// differences lists all that leads from one document to another.
func differences(before, after map[string]any) []ChangeLine {
	c := comparison{most: math.MaxInt}
	c.compare(nil, false, before, after, true, true)
	return c.found
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	n := func(s string) json.Number { return json.Number(s) }
	for _, c := range []struct {
		before, after map[string]any
		want          []ChangeLine
	}{
		{nil, nil, nil},
		{map[string]any{"a": 1}, map[string]any{"a": n("1.0")}, nil},
		{map[string]any{"a": []any{1, map[string]any{"b": 2}}}, map[string]any{"a": []any{n("1"), map[string]any{"b": n("2")}}}, nil},
		{map[string]any{"a": n("12345678901234567890")}, map[string]any{"a": n("12345678901234567891")},
			[]ChangeLine{{Change: "change", Name: "/a", Old: n("12345678901234567890"), New: n("12345678901234567891")}}},
		{map[string]any{"a": nil}, map[string]any{}, []ChangeLine{{Change: "remove", Name: "/a"}}},
		{map[string]any{"a": map[string]any{}}, map[string]any{"a": "x"}, []ChangeLine{{Change: "change", Name: "/a", Old: map[string]any{}, New: "x"}}},
		{map[string]any{"x/y~z": 1}, map[string]any{"x/y~z": 2}, []ChangeLine{{Change: "change", Name: "/x~1y~0z", Old: 1, New: 2}}},
		// Secrets: that they differ, not what they are, at any depth.
		{map[string]any{"password": "a"}, map[string]any{"password": "b"}, []ChangeLine{{Change: "change", Name: "/password", Old: "[redacted]", New: "[redacted]"}}},
		{map[string]any{"token": map[string]any{"x": "a"}}, map[string]any{"token": map[string]any{"x": "b"}},
			[]ChangeLine{{Change: "change", Name: "/token/x", Old: "[redacted]", New: "[redacted]"}}},
		{map[string]any{}, map[string]any{"db": map[string]any{"secret": "s", "port": 1}},
			[]ChangeLine{{Change: "create", Name: "/db", New: map[string]any{"secret": "[redacted]", "port": 1}}}},
		{map[string]any{"api_key": ""}, map[string]any{"api_key": "k"}, []ChangeLine{{Change: "change", Name: "/api_key", Old: "", New: "[redacted]"}}},
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
func lay(document any, path []string, c ChangeLine) any {
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
	if l.all != 1400 || len(l.lines) != maxChanges || l.lines[699].Object != "node" || l.lines[700].Object != "service" {
		t.Errorf("%d kept of %d", len(l.lines), l.all)
	}
}

// TestChangesAreBounded: what is above the limit is counted and costs nothing, and a name
// is short, whatever key was stored.
func TestChangesAreBounded(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	before, after := map[string]any{}, map[string]any{}
	for i := range 20_000 {
		before[fmt.Sprint(i)], after[fmt.Sprint(i)] = 1, 2
	}
	key := strings.Repeat("k", 100<<10)
	var list changeList
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	list.documents("config", "", map[string]any{key: before}, map[string]any{key: after}, nil)
	runtime.ReadMemStats(&end)
	if got := end.TotalAlloc - start.TotalAlloc; got > 10<<20 {
		t.Errorf("%d bytes are allocated", got)
	}
	if len(list.lines) != maxChanges || list.all != 20_000 {
		t.Errorf("%d of %d are kept", len(list.lines), list.all)
	}
	for _, name := range append(paths(map[string]any{key: before}, map[string]any{key: after}), list.lines[0].Name) {
		if len(name) > loom.MaxConfigPath+len("…") {
			t.Fatalf("a name has %d bytes", len(name))
		}
	}
	// Behind others there is less room.
	list = changeList{lines: list.lines[:maxChanges-1], all: 5000}
	list.documents("config", "because", before, after, nil)
	if len(list.lines) != maxChanges || list.all != 25_000 || list.lines[maxChanges-1].Because != "because" {
		t.Errorf("%d of %d are kept", len(list.lines), list.all)
	}
}

// BenchmarkChanges compares configs in which every value differs.
func BenchmarkChanges(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		before, after := map[string]any{}, map[string]any{}
		for i := range n {
			before[fmt.Sprint(i)], after[fmt.Sprint(i)] = 1, 2
		}
		key := strings.Repeat("k", loom.MaxConfigKey)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var list changeList
				list.documents("config", "", map[string]any{key: before}, map[string]any{key: after}, nil)
			}
		})
	}
}
