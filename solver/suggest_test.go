package solver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// applied is the input with what a suggestion says, its template changed by the
// JSON merge patch as any client would.
func applied(t testing.TB, in Input, s loom.Suggestion) Input {
	t.Helper()
	in = in.withDefaults()
	in.Services = slices.DeleteFunc(append(slices.Clone(in.Services), s.AddServices...), func(n string) bool { return slices.Contains(s.RemoveServices, n) })
	if s.Machines > 0 {
		in.Machines = s.Machines
	}
	in.HardwareType = firstSet(s.HardwareType, in.HardwareType)
	in.ImageType = firstSet(s.ImageType, in.ImageType)
	in.Provider = firstSet(s.Provider, in.Provider)
	if patches, ok := s.Catalog["services"].(map[string]any); ok {
		in.Catalog = maps.Clone(in.Catalog)
		for name, change := range patches {
			var was map[string]any
			if err := json.Unmarshal([]byte(toJSON(t, in.Catalog[name])), &was); err != nil {
				t.Fatal(err)
			}
			var is loom.Service
			if err := json.Unmarshal([]byte(toJSON(t, loom.MergePatch(was, change.(map[string]any)))), &is); err != nil {
				t.Fatal(err)
			}
			in.Catalog[name] = is
		}
	}
	if s.Template != nil {
		var was, change map[string]any
		if err := json.Unmarshal([]byte(toJSON(t, in.Template)), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(toJSON(t, s.Template)), &change); err != nil {
			t.Fatal(err)
		}
		var is loom.Template
		if err := json.Unmarshal([]byte(toJSON(t, loom.MergePatch(was, change))), &is); err != nil {
			t.Fatal(err)
		}
		in.Template = is
	}
	return in
}

// drops are the suggestions with one part less.
func drops(s loom.Suggestion) []loom.Suggestion {
	var out []loom.Suggestion
	for i := range s.AddServices {
		d := s
		d.AddServices = slices.Delete(slices.Clone(s.AddServices), i, i+1)
		out = append(out, d)
	}
	for i := range s.RemoveServices {
		d := s
		d.RemoveServices = slices.Delete(slices.Clone(s.RemoveServices), i, i+1)
		out = append(out, d)
	}
	for _, field := range []func(*loom.Suggestion) bool{
		func(d *loom.Suggestion) bool { was := d.Machines; d.Machines = 0; return was > 0 },
		func(d *loom.Suggestion) bool { was := d.HardwareType; d.HardwareType = ""; return was != "" },
		func(d *loom.Suggestion) bool { was := d.ImageType; d.ImageType = ""; return was != "" },
		func(d *loom.Suggestion) bool { was := d.Provider; d.Provider = ""; return was != "" },
		func(d *loom.Suggestion) bool { was := d.Catalog; d.Catalog = nil; return was != nil },
		func(d *loom.Suggestion) bool { was := d.Template; d.Template = nil; return was != nil },
	} {
		d := s
		if field(&d) {
			out = append(out, d)
		}
	}
	return out
}

func oracleSolves(in Input) bool {
	p, unsat := NewProblem(in)
	if unsat != nil {
		return false
	}
	_, ok := oracle(p)
	return ok
}

// refused is a corpus of requests without an answer, of every kind.
func refused(t testing.TB, seed uint64, n int, use func(in Input, unsat *loom.Unsat)) {
	t.Helper()
	r := rand.New(rand.NewPCG(8, seed))
	for found, tries := 0, 0; found < n; tries++ {
		if tries > 20*n {
			t.Fatalf("only %d refusals in %d requests", found, tries)
		}
		in := randomInput(r, 5, 6)
		if r.IntN(3) == 0 {
			in.HardwareType = "h1"
		}
		if r.IntN(4) == 0 {
			in.ImageType = "i1"
		}
		if r.IntN(4) == 0 {
			low := 1 + r.IntN(5)
			in.Template.Constraints.Size = loom.SizeConstraint{Min: low, Max: low + r.IntN(3)}
		}
		in.Template.Defaults.Services = slices.Clone(in.Services)
		if r.IntN(3) == 0 {
			in.Services = in.Services[:1]
		}
		if r.IntN(3) == 0 {
			for _, s := range slices.Clone(in.Services) {
				service := in.Catalog[s]
				switch r.IntN(6) {
				case 0:
					service.Dependencies.Install.Requires = []string{"extra"}
				case 1:
					service.Dependencies.Conflicts = []string{in.Services[0]}
				case 2:
					in.Services = append(in.Services, "gone")
				}
				in.Catalog[s] = service
			}
			in.Catalog["more"] = loom.Service{Base: loom.Base{Name: "more"}, Dependencies: loom.Dependencies{Provides: []string{"extra"}}}
		}
		_, layout, unsat, err := Create(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		if (layout == nil) == (unsat == nil) {
			t.Fatal("neither or both of layout and unsat")
		}
		if unsat != nil {
			found++
			use(in, unsat)
		}
	}
}

func TestEveryRefusalHasReasonsAndSuggestions(t *testing.T) {
	t.Parallel()
	codes, offered, changes := map[string]int{}, 0, 0
	refused(t, 1, rounds(t, 600), func(in Input, unsat *loom.Unsat) {
		codes[unsat.Code]++
		if p, no := NewProblem(in); no == nil {
			checkMinimal(t, p, unsat)
		} else if len(unsat.Reasons) == 0 {
			t.Fatalf("no reasons: %+v", unsat)
		}
		if len(unsat.Suggestions) == 0 {
			t.Fatalf("no suggestion for %s\nreasons %+v", toJSON(t, in), unsat.Reasons)
		}
		for _, s := range unsat.Suggestions {
			offered++
			if s.Template != nil {
				changes++
			}
			if !oracleSolves(applied(t, in, s)) {
				t.Fatalf("%+v does not help: %s", s, toJSON(t, in))
			}
			for _, d := range drops(s) {
				if oracleSolves(applied(t, in, d)) {
					t.Fatalf("%+v holds more than is needed, %+v would do: %s", s, d, toJSON(t, in))
				}
			}
		}
	})
	t.Logf("%v, %d suggestions, %d of them of the template", codes, offered, changes)
	if len(codes) < 4 || changes == 0 {
		t.Errorf("the corpus says little: %v", codes)
	}
}

// A refusal to change a cluster has suggestions too; they are applied and checked
// by the oracle for nodes.
func TestSuggestionsForClusters(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(26, 1))
	refusals, without, offered := 0, 0, 0
	for range rounds(t, 800) {
		c, add := randomCluster(r, 4)
		var remove []string
		if r.IntN(3) == 0 {
			remove = c.services()[:1]
		}
		if r.IntN(3) == 0 {
			add = nil
		}
		_, unsat, err := Alter(context.Background(), c, add, remove)
		if err != nil {
			t.Fatal(err)
		}
		if unsat == nil {
			continue
		}
		refusals++
		all := SuggestChange(context.Background(), c, add, remove, unsat)
		if len(all) == 0 {
			without++
			t.Logf("no suggestion to add %v, remove %v of %s: %+v", add, remove, toJSON(t, c), unsat.Reasons)
		}
		helps := func(s loom.Suggestion) bool {
			in := applied(t, c.Input, loom.Suggestion{Template: s.Template})
			newAdd, newRemove := Adjust(add, remove, s)
			nodes := bare(c.Nodes)
			for i := range nodes {
				nodes[i].Services = slices.DeleteFunc(nodes[i].Services, func(s string) bool { return slices.Contains(newRemove, s) })
			}
			return alterOracle(in, nodes, newAdd)
		}
		for _, s := range all {
			offered++
			if !helps(s) {
				t.Fatalf("%+v does not help to add %v, remove %v of %s", s, add, remove, toJSON(t, c))
			}
			for _, d := range drops(s) {
				if helps(d) {
					t.Fatalf("%+v holds more than is needed, %+v would do to add %v, remove %v of %s", s, d, add, remove, toJSON(t, c))
				}
			}
		}
	}
	t.Logf("%d refusals, %d suggestions, %d without", refusals, offered, without)
	if refusals < 100 || without > 0 {
		t.Errorf("%d refusals, %d without a suggestion", refusals, without)
	}
}

// One service alone, which may be on fewer nodes than the template wants machines:
// the way out is to add what goes with it.
func TestOneSidedRequest(t *testing.T) {
	t.Parallel()
	one := 1
	in := testInput(3, []string{"app", "lb", "db"}, []string{"large", "small"}, []string{"deb"}, loom.Constraints{
		Size:     loom.SizeConstraint{Min: 2, Max: 9},
		Services: map[string]loom.ServiceConstraint{"lb": {Quantities: &loom.Quantities{Max: &one}}, "db": {Quantities: &loom.Quantities{Max: &one}}},
	})
	in.Template.Defaults = loom.Defaults{Services: []string{"app", "db"}, HardwareType: "small"}
	in.Services = []string{"lb"}
	_, _, unsat, err := Create(context.Background(), in)
	if err != nil || unsat == nil {
		t.Fatal(unsat, err)
	}
	got := labels(unsat.Suggestions)
	if len(got) == 0 || got[0] != "Add app" || strings.Contains(fmt.Sprint(got), "Choose") {
		t.Errorf("suggestions %q", got)
	}
}
