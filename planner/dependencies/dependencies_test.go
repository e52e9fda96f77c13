package dependencies

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"loom/app/loom"
)

// service makes a service that needs others in one of four ways each.
func service(name string, d loom.Dependencies, follows ...string) loom.Service {
	return loom.Service{Base: loom.Base{Name: name}, Dependencies: d, Follows: follows}
}

func set(services ...loom.Service) map[string]loom.Service {
	m := map[string]loom.Service{}
	for _, s := range services {
		m[s.Name] = s
	}
	return m
}

// sentences writes a graph as sentences.
func sentences(w Graph) []string {
	var lines []string
	for _, t := range w.Edges {
		line := w.Vertices[t.From].Name + " " + t.Kind.String() + " " + w.Vertices[t.To].Name
		if t.Kind.Needs() {
			line += " (" + t.Label() + ")"
		}
		if t.SameNode {
			line += " same node"
		}
		if t.Cycle {
			line += " cycle"
		}
		lines = append(lines, line)
	}
	return lines
}

func names(w Graph) []string {
	var all []string
	for _, t := range w.Vertices {
		all = append(all, fmt.Sprintf("%s %d %d", t.Name, t.Sort, t.Distance))
	}
	return all
}

func sample() map[string]loom.Service {
	return set(
		service("front", loom.Dependencies{Install: loom.PhaseDependency{Requires: []string{"base"}, Scope: "node"}, Runtime: loom.PhaseDependency{Uses: []string{"app"}}}, "app"),
		service("app", loom.Dependencies{Conflicts: []string{"old"}, Install: loom.PhaseDependency{Requires: []string{"base"}}, Runtime: loom.PhaseDependency{Requires: []string{"base", "store", "app"}, Uses: []string{"cache"}}}),
		service("redis", loom.Dependencies{Provides: []string{"store", "redis", "unasked"}, Conflicts: []string{"mongo"}}),
		service("mongo", loom.Dependencies{Provides: []string{"store", "base"}, Conflicts: []string{"redis"}}),
		service("base", loom.Dependencies{Install: loom.PhaseDependency{Requires: []string{"kernel"}}}),
	)
}

func TestOf(t *testing.T) {
	t.Parallel()
	w := Of(sample())
	want := []string{
		"app requires base (install, run)", "app requires store (run)", "base requires kernel (install)",
		"front uses app (run)", "front follows app", "front requires base (install) same node",
		"mongo provides base", "mongo conflicts with redis", "mongo provides store", "redis provides store",
	}
	if got := sentences(w); !slices.Equal(got, want) {
		t.Errorf("edges:\n got %q\nwant %q", got, want)
	}
	wantNames := []string{"app 0 0", "base 0 0", "front 0 0", "mongo 0 0", "redis 0 0", "store 1 0", "kernel 2 0"}
	if got := names(w); !slices.Equal(got, wantNames) {
		t.Errorf("vertices:\n got %q\nwant %q", got, wantNames)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		middle   string
		distance int
		vertices []string
	}{
		{"front", 1, []string{"app 0 1", "base 0 1", "front 0 0"}},
		{"front", 2, []string{"app 0 1", "base 0 1", "front 0 0", "mongo 0 2", "redis 0 2", "store 1 2", "cache 2 2", "kernel 2 2"}},
		{"app", 1, []string{"app 0 0", "base 0 1", "front 0 1", "mongo 0 1", "redis 0 1", "store 1 1", "cache 2 1", "old 2 1"}},
		{"redis", 1, []string{"app 0 1", "mongo 0 1", "redis 0 0", "store 1 1", "unasked 1 1"}},
	} {
		if got := names(Around(sample(), c.middle, c.distance)); !slices.Equal(got, c.vertices) {
			t.Errorf("around %s, %d distance:\n got %q\nwant %q", c.middle, c.distance, got, c.vertices)
		}
	}
	if w := Around(sample(), "none", 2); len(w.Vertices) != 0 || len(w.Edges) != 0 {
		t.Errorf("around nothing: %+v", w)
	}
}

func TestCircles(t *testing.T) {
	t.Parallel()
	run := func(names ...string) loom.Dependencies {
		return loom.Dependencies{Runtime: loom.PhaseDependency{Requires: names}}
	}
	services := set(service("a", run("b")), service("b", run("bus")), service("d", run("a")),
		service("c", loom.Dependencies{Provides: []string{"bus"}, Runtime: loom.PhaseDependency{Uses: []string{"a"}}, Install: loom.PhaseDependency{Requires: []string{"a"}}}))
	w := Of(services)
	if want := []Cycle{{Path: []string{"a", "b", "c", "a"}}}; !reflect.DeepEqual(w.Cycles, want) {
		t.Fatalf("cycles: %+v", w.Cycles)
	}
	want := []string{"a requires b (run) cycle", "b requires bus (run) cycle", "c requires a (install)", "c uses a (run) cycle", "c provides bus cycle", "d requires a (run)"}
	if got := sentences(w); !slices.Equal(got, want) {
		t.Errorf("edges:\n got %q\nwant %q", got, want)
	}
	// From d one sees a only, from a the whole cycle, though c is needed by nobody
	// within the picture of b.
	if w := Around(services, "d", 1); len(w.Cycles) != 0 {
		t.Errorf("around d: %+v", w.Cycles)
	}
	long := map[string]loom.Service{}
	for i := range 6 {
		name := fmt.Sprintf("s%d", i)
		long[name] = service(name, run(fmt.Sprintf("s%d", (i+1)%6)))
	}
	w = Around(long, "s3", 1)
	if len(w.Vertices) != 3 || len(w.Cycles) != 1 || len(w.Cycles[0].Path) != 7 {
		t.Errorf("a cycle that leaves the picture is not named: %+v", w)
	}
	if got := sentences(w); !slices.Equal(got, []string{"s2 requires s3 (run) cycle", "s3 requires s4 (run) cycle"}) {
		t.Errorf("edges: %q", got)
	}
}

// random makes a catalog in which anything may name anything.
func random(r *rand.Rand, n int) map[string]loom.Service {
	some := func(most int, pool string) []string {
		var picked []string
		for range r.IntN(most + 1) {
			picked = append(picked, fmt.Sprintf("%c%d", pool[r.IntN(len(pool))], r.IntN(n)))
		}
		return picked
	}
	services := map[string]loom.Service{}
	for i := range n {
		s := loom.Service{Base: loom.Base{Name: fmt.Sprintf("s%d", i)}}
		s.Dependencies = loom.Dependencies{Provides: some(2, "ps"), Conflicts: some(1, "ps"),
			Install: loom.PhaseDependency{Requires: some(2, "sssp"), Uses: some(1, "sp")}, Runtime: loom.PhaseDependency{Requires: some(1, "sp"), Uses: some(2, "sp")}}
		s.Follows = some(1, "sp")
		services[s.Name] = s
	}
	return services
}

// TestNothingLost holds the edges of random catalogs against what their documents
// say, one relation after the other.
func TestNothingLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		services := random(r, 1+r.IntN(12))
		w := Of(services)
		index := map[string]int{}
		for i, vertex := range w.Vertices {
			index[vertex.Name] = i
		}
		has := func(from, to string, kind Kind) bool {
			f, fromThere := index[from]
			g, toThere := index[to]
			return fromThere && toThere && slices.ContainsFunc(w.Edges, func(t Edge) bool {
				return t.Kind == kind && (t.From == f && t.To == g || kind == Conflicts && t.From == g && t.To == f)
			})
		}
		provided := map[string]bool{}
		for name, s := range services {
			provided[name] = true
			for _, p := range s.Dependencies.Provides {
				provided[p] = true
			}
		}
		for name, s := range services {
			d := s.Dependencies
			for kind, lists := range map[Kind][][]string{Requires: {d.Install.Requires, d.Runtime.Requires}, Uses: {d.Install.Uses, d.Runtime.Uses}, Follows: {s.Follows}, Conflicts: {d.Conflicts}} {
				for _, to := range slices.Concat(lists...) {
					if want := to != name && (provided[to] || kind == Requires); has(name, to, kind) != want {
						t.Fatalf("seed %d: %s %s %s is %v", seed, name, kind, to, !want)
					}
				}
			}
		}
		for _, edge := range w.Edges {
			if edge.From == edge.To || edge.Kind.Needs() != (edge.Install || edge.Runtime) {
				t.Fatalf("seed %d: %+v", seed, edge)
			}
		}
		if again := Of(services); !reflect.DeepEqual(w, again) {
			t.Fatalf("seed %d: the same services give another graph", seed)
		}
		around := Around(services, "s0", MaxDistance)
		for _, vertex := range around.Vertices {
			if vertex.Distance > MaxDistance || vertex.Distance == 0 && vertex.Name != "s0" {
				t.Fatalf("seed %d: %+v", seed, vertex)
			}
		}
		if again := Around(services, "s0", MaxDistance); !reflect.DeepEqual(around, again) {
			t.Fatalf("seed %d: the same services give another surrounding", seed)
		}
	}
}
