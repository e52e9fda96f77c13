package loom_test

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestLayoutClashes(t *testing.T) {
	t.Parallel()
	n := func(low, high int) *loom.Quantities {
		q := &loom.Quantities{Min: &low}
		if high > 0 {
			q.Max = &high
		}
		return q
	}
	on := func(types ...string) loom.ServiceConstraint { return loom.ServiceConstraint{HardwareTypes: types} }
	type sets = [][]string
	type limits = map[string]loom.ServiceConstraint
	foe := map[string]loom.Service{
		"a": {Dependencies: loom.Dependencies{Conflicts: []string{"data"}}},
		"b": {Dependencies: loom.Dependencies{Provides: []string{"data"}}},
	}
	for _, c := range []struct {
		name       string
		must, cant sets
		limits     limits
		allowed    []string
		want       string // messages, "~" before what is merely idle; "" for none
	}{
		{"nothing", nil, nil, nil, nil, ""},
		{"no clash", sets{{"a", "c"}}, sets{{"a", "d"}}, nil, nil, ""},
		{"both lists", sets{{"a", "c"}}, sets{{"c", "a"}}, nil, nil, "a and c are in both lists: they must share their nodes, and may not."},
		{"a part of one is not", sets{{"a", "c"}}, sets{{"a", "c", "d"}}, nil, nil, ""},
		{"both lists, three", sets{{"a", "c", "d"}}, sets{{"c", "a", "d"}}, nil, nil, "a, c and d are in both lists: they must share their nodes, and may not all do so."},
		{"by a chain", sets{{"a", "c"}, {"c", "d"}}, sets{{"a", "d"}}, nil, nil, "a and d may not share a node, but groups that must coexist chain them together: a, c and d."},
		{"hardware", sets{{"b", "c"}}, nil, limits{"b": on("small"), "c": on("large", "huge")}, nil, "b and c must coexist, but need different hardware types: b small, c large or huge."},
		{"hardware by a chain", sets{{"b", "x"}, {"x", "c"}}, nil, limits{"b": on("small"), "c": on("large")}, nil, "b and c must coexist, but need different hardware types: b small, c large."},
		{"common hardware", sets{{"b", "c"}}, nil, limits{"b": on("small", "large"), "c": on("large")}, nil, ""},
		{"three without a common one", sets{{"b", "c", "d"}}, nil, limits{"b": on("1", "2"), "c": on("2", "3"), "d": on("1", "3")}, nil,
			"b, c and d must coexist, but need different hardware types: b 1 or 2, c 2 or 3, d 1 or 3."},
		{"images", sets{{"b", "c"}}, nil, limits{"b": {ImageTypes: []string{"deb"}}, "c": {ImageTypes: []string{"ubu"}}}, nil, "b and c must coexist, but need different image types: b deb, c ubu."},
		{"counts", sets{{"c", "d"}}, nil, limits{"c": {Quantities: n(3, 0)}, "d": {Quantities: n(0, 1)}}, nil, "c and d must share their nodes, but c has to be on 3 or more and d may be on 1 at most."},
		{"counts that meet", sets{{"c", "d"}}, nil, limits{"c": {Quantities: n(2, 0)}, "d": {Quantities: n(0, 2)}}, nil, ""},
		{"one by itself is no matter of groups", sets{{"c", "d"}}, nil, limits{"c": {Quantities: n(3, 1)}}, nil, ""},
		{"foes", sets{{"a", "b"}}, nil, nil, nil, "a and b must coexist, but a conflicts with b: no cluster can have both."},
		{"alone", sets{{"a"}, {}}, sets{{"a"}, {}}, nil, nil, "~This group names a alone and is without effect.|~This group is empty and without effect.|This group names a alone, so it may be on no node at all.|~This group is empty and without effect."},
		{"larger than needed", nil, sets{{"a", "c"}, {"a", "c", "d"}}, nil, nil, "~This group adds nothing: a and c may not share a node anyway."},
	} {
		tpl := loom.Template{Constraints: loom.Constraints{Layout: loom.LayoutConstraints{MustCoexist: c.must, CantCoexist: c.cant}, Services: c.limits},
			Compatibility: loom.Compatibility{HardwareTypes: c.allowed}}
		var said []string
		for _, f := range tpl.LayoutClashes(foe) {
			mark := map[bool]string{true: "~"}[f.Idle]
			said = append(said, mark+f.Message)
			if !f.Idle && len(f.Services) > 1 && len(f.Pairs) == 0 {
				t.Errorf("%s: no pair is marked", c.name)
			}
			if len(f.Must)+len(f.Cant) == 0 {
				t.Errorf("%s: no set is named", c.name)
			}
		}
		if got := strings.Join(said, "|"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// A clash that is found between sets is one: with all services asked for, no node
// may hold any of those that must share.
func TestClashOfListsLeavesNoNode(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	tpl := loom.Template{Constraints: loom.Constraints{Layout: loom.LayoutConstraints{
		MustCoexist: [][]string{{"a", "b"}, {"b", "c"}}, CantCoexist: [][]string{{"a", "c"}},
	}}}
	found := tpl.LayoutClashes(nil)
	if len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	for bits := range 1 << len(names) {
		var node []string
		for i, name := range names {
			if bits>>i&1 == 1 {
				node = append(node, name)
			}
		}
		if share(tpl.Constraints.Layout, names, node) && fmt.Sprint(node) != "[]" && fmt.Sprint(node) != "[d]" {
			t.Errorf("a node with %v is allowed", node)
		}
	}
}
