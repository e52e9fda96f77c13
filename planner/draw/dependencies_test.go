package draw

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/planner/dependencies"
)

// checkWeb holds for every picture of edges.
func checkWeb(t *testing.T, w dependencies.Graph, d DependencyGraph) {
	t.Helper()
	if len(d.Vertices) != len(w.Vertices) || len(d.Edges) != len(w.Edges) {
		t.Fatalf("%d of %d vertices and %d of %d edges are drawn", len(d.Vertices), len(w.Vertices), len(d.Edges), len(w.Edges))
	}
	at := map[string]VertexBox{}
	var taken []area
	for _, b := range d.Vertices {
		if b.Vertex != w.Vertices[b.Index] {
			t.Fatalf("%+v is not vertex %d", b, b.Index)
		}
		if b.X < Margin || b.Y < Margin || b.X+BoxWidth+Margin > d.Width || b.Y+BoxHeight+Margin > d.Height {
			t.Fatalf("box %s at %d, %d leaves the picture of %d × %d", b.ID, b.X, b.Y, d.Width, d.Height)
		}
		room := area{b.X, b.Y, b.X + BoxWidth, b.Y + BoxHeight}
		if slices.ContainsFunc(taken, room.meets) {
			t.Fatalf("box %s overlaps another", b.ID)
		}
		taken = append(taken, room)
		at[b.ID] = b
	}
	if len(at) != len(w.Vertices) {
		t.Fatal("an id is given twice")
	}
	for i, l := range d.Edges {
		if l.Edge != w.Edges[i] {
			t.Fatalf("line %d is %+v, not %+v", i, l.Edge, w.Edges[i])
		}
		a, b := at[l.FromID], at[l.ToID]
		if a.Index != l.From || b.Index != l.To {
			t.Fatalf("line %d joins other vertices", i)
		}
		checkEnds(t, a, b, l)
		if l.Text == "" {
			continue
		}
		half := LabelWidth(l.Text) / 2
		room := area{l.X - half, l.Y - LabelHeight/2, l.X + half, l.Y + LabelHeight/2}
		if slices.ContainsFunc(taken, room.meets) || room.left < 0 || room.top < 0 || room.right > d.Width || room.bottom > d.Height {
			t.Fatalf("label %q at %d, %d meets something", l.Text, l.X, l.Y)
		}
		taken = append(taken, room)
	}
}

// checkEnds sees that a line begins and ends at the sides of its boxes.
func checkEnds(t *testing.T, a, b VertexBox, l EdgeLine) {
	t.Helper()
	if l.Backwards {
		a, b = b, a
	}
	right, left := a.X+BoxWidth, b.X
	if a.X == b.X {
		left = right // a bow
	}
	var x, y, toX, toY int
	if _, err := fmt.Sscanf(l.Path, "M%d %dC", &x, &y); err != nil {
		t.Fatalf("path %q: %v", l.Path, err)
	}
	numbers := strings.FieldsFunc(l.Path, func(r rune) bool { return strings.ContainsRune("MCH ", r) })
	fmt.Sscan(numbers[len(numbers)-2], &toX)
	fmt.Sscan(numbers[len(numbers)-1], &toY)
	within := func(y int, box VertexBox) bool { return y >= box.Y && y <= box.Y+BoxHeight }
	if x != right || toX != left || !within(y, a) || !within(toY, b) || a.X > b.X {
		t.Fatalf("the line from %+v to %+v runs %s", a, b, l.Path)
	}
}

// randomServices makes a catalog in which anything may name anything.
func randomServices(r *rand.Rand, n int) map[string]loom.Service {
	some := func(most int, pool string) []string {
		var picked []string
		for range r.IntN(most + 1) {
			picked = append(picked, fmt.Sprintf("%c%d", pool[r.IntN(len(pool))], r.IntN(n)))
		}
		return picked
	}
	services := map[string]loom.Service{}
	for i := range n {
		s := loom.Service{Base: loom.Base{Name: fmt.Sprintf("s%d", i)}, Follows: some(1, "sp")}
		s.Dependencies = loom.Dependencies{Provides: some(1, "ps"), Conflicts: some(1, "ps"),
			Install: loom.PhaseDependency{Requires: some(1, "sssp"), Uses: some(1, "sp")}, Runtime: loom.PhaseDependency{Requires: some(1, "sp"), Uses: some(1, "sp")}}
		services[s.Name] = s
	}
	return services
}

func TestTiesProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 2))
		services := randomServices(r, 1+r.IntN(30))
		for _, w := range []dependencies.Graph{dependencies.Of(services), dependencies.Around(services, "s0", 1+r.IntN(3))} {
			d := Dependencies(w)
			checkWeb(t, w, d)
			if again := Dependencies(w); !reflect.DeepEqual(d, again) {
				t.Fatalf("seed %d: the same web gives another picture", seed)
			}
		}
	}
}

// TestTiesReading says how pictures are read: needs to the right, those that stand
// alone below.
func TestTiesReading(t *testing.T) {
	t.Parallel()
	services := map[string]loom.Service{}
	define := func(name string, requires, provides, conflicts []string) {
		s := loom.Service{Base: loom.Base{Name: name}}
		s.Dependencies = loom.Dependencies{Provides: provides, Conflicts: conflicts, Runtime: loom.PhaseDependency{Requires: requires}}
		services[name] = s
	}
	define("front", []string{"app"}, nil, nil)
	define("app", []string{"store"}, nil, nil)
	define("redis", nil, []string{"store"}, []string{"mongo"})
	define("mongo", nil, []string{"store"}, nil)
	define("alone", nil, nil, nil)
	d := Dependencies(dependencies.Of(services))
	at := map[string]VertexBox{}
	for _, b := range d.Vertices {
		at[b.Name] = b
	}
	if !(at["front"].X < at["app"].X && at["app"].X < at["store"].X && at["store"].X < at["redis"].X && at["redis"].X == at["mongo"].X) {
		t.Errorf("columns: %+v", at)
	}
	for name, b := range at {
		if name != "alone" && b.Y >= at["alone"].Y {
			t.Errorf("%s stands below what stands alone", name)
		}
	}
	for _, l := range d.Edges {
		if l.Text == "" {
			t.Errorf("the small picture has no room for %q", l.Label())
		}
		if l.Backwards != (l.Kind == dependencies.Provides) {
			t.Errorf("%s is drawn backwards: %v", l.Label(), l.Backwards)
		}
	}
	if d := Dependencies(dependencies.Graph{}); d.Width != 0 || d.Height != 0 {
		t.Errorf("nothing is %+v", d)
	}
}

// TestManyServices draws as many services as the biggest templates have.
func TestManyServices(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	w := dependencies.Of(randomServices(r, 200))
	checkWeb(t, w, Dependencies(w))
}

// TestTooMuchIsNotDrawn: a picture has a limit of vertices and of edges, and what is beyond
// it is not looked at.
func TestTooMuchIsNotDrawn(t *testing.T) {
	web := func(vertices, all int) (w dependencies.Graph) {
		w.Vertices = make([]dependencies.Vertex, vertices)
		for i := range w.Vertices {
			w.Vertices[i].Name = fmt.Sprint("s", i)
		}
		for i := range all {
			w.Edges = append(w.Edges, dependencies.Edge{From: i % vertices, To: (i%vertices + 1 + i/vertices) % vertices, Kind: dependencies.Uses})
		}
		return w
	}
	if d := Dependencies(web(MaxVertices, MaxVertices)); len(d.Vertices) != MaxVertices {
		t.Errorf("%d of %d vertices are drawn", len(d.Vertices), MaxVertices)
	}
	for _, w := range []dependencies.Graph{web(MaxVertices+1, 10), web(50, MaxEdges+1)} {
		if d := Dependencies(w); !reflect.DeepEqual(d, DependencyGraph{}) {
			t.Errorf("%d vertices and %d edges are drawn", len(w.Vertices), len(w.Edges))
		}
		if n := testing.AllocsPerRun(1, func() { Dependencies(w) }); n != 0 {
			t.Errorf("what is not drawn allocates %v times", n)
		}
	}
}
