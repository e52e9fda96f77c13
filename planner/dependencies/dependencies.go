// Package dependencies computes how the services of a catalog, a template or a cluster
// depend on each other: which requires, uses, provides, follows or conflicts with which.
// Pictures and tables show it (package draw places the pictures).
//
// It is pure, as the planner is, and decides nothing: the solver decides what may be in a
// cluster, the planner what comes first. A newcomer's usual mistake: a name that services
// depend on need not be that of a service. If no service has it, the name is a vertex of
// its own between the services that want it and those that provide it; if no service
// provides it either, it is missing.
package dependencies

import (
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
)

// Kind is how two vertices are connected.
type Kind int

// The kinds, the strongest first. All but Conflicts lead from one to another.
const (
	// Requires demands presence and orders actions.
	Requires Kind = iota
	// Uses orders actions if both are there.
	Uses
	// Provides leads from a service to a name under which others find it.
	Provides
	// Follows configures From again when the nodes of To change.
	Follows
	// Conflicts keeps both out of one cluster.
	Conflicts
)

// String is the kind as a word between two names: "requires".
func (k Kind) String() string {
	switch k {
	case Requires:
		return "requires"
	case Uses:
		return "uses"
	case Provides:
		return "provides"
	case Follows:
		return "follows"
	}
	return "conflicts with"
}

// Needs reports whether the kind orders actions.
func (k Kind) Needs() bool { return k == Requires || k == Uses }

// Edge is one relation of two vertices. From and To are indexes of Graph.Vertices and
// differ: a relation of a service to itself has no effect and no edge.
type Edge struct {
	From, To int
	Kind     Kind
	// Install and Runtime say for which actions a need holds.
	Install, Runtime bool
	// SameNode limits an install need to the machine of From.
	SameNode bool
	// Cycle reports whether it is part of one of Graph.Cycles.
	Cycle bool
}

// Label describes the edge in one or two words for a picture, where the line shows the
// kind already: "install", "run", "install, run", "provides".
func (t Edge) Label() string {
	if !t.Kind.Needs() {
		return strings.TrimSuffix(t.Kind.String(), " with")
	}
	var phases []string
	if t.Install {
		phases = append(phases, "install")
	}
	if t.Runtime {
		phases = append(phases, "run")
	}
	return strings.Join(phases, ", ")
}

// Sort is what a vertex is.
type Sort int

// The sorts of vertices.
const (
	Service Sort = iota
	// Name is provided by services, none of which has this name.
	Name
	// Missing is wanted and not there.
	Missing
)

// Vertex is a service or a name.
type Vertex struct {
	Name string
	Sort Sort
	// Distance is the number of steps from the service in the middle, 0 without one.
	Distance int
}

// Cycle is services that depend on each other in a cycle: such a cluster cannot
// be planned. Path ends where it began.
type Cycle struct {
	// Install reports whether it is one of install actions, else of initialize, start and stop.
	Install bool
	Path    []string
}

// Graph is vertices with their edges. Vertices are sorted: services by name, then names,
// then what is missing; edges by From, To and Kind.
type Graph struct {
	Vertices []Vertex
	Edges    []Edge
	Cycles   []Cycle
}

// Of returns the graph of all services of a set. A name that a service requires and none
// has or provides is a missing vertex. One that services only use, follow or conflict with
// is not, nor is one that no service of the set wants.
func Of(services map[string]loom.Service) Graph {
	b := newBuilder(services, false)
	return b.graph()
}

// builder collects vertices and edges.
type builder struct {
	services map[string]loom.Service
	// all adds every unknown name as missing, and every provided name, wanted or not.
	all      bool
	provided map[string]bool
	wanted   map[string]bool
	vertices map[string]Sort
	edges    map[key]Edge
}

// key identifies an edge while edges are merged.
type key struct {
	from, to string
	kind     Kind
}

func newBuilder(services map[string]loom.Service, all bool) *builder {
	b := &builder{services: services, all: all, provided: map[string]bool{}, wanted: map[string]bool{}, vertices: map[string]Sort{}, edges: map[key]Edge{}}
	for name, s := range services {
		b.vertices[name] = Service
		for _, also := range s.Dependencies.Provides {
			b.provided[also] = true
		}
	}
	for name := range services {
		b.service(name)
	}
	for name, s := range services {
		for _, also := range s.Dependencies.Provides {
			if _, is := services[also]; is || all || b.wanted[also] {
				b.edge(name, also, Edge{Kind: Provides})
			}
		}
	}
	return b
}

func (b *builder) service(name string) {
	s := b.services[name]
	d := s.Dependencies
	for _, need := range []struct {
		names []string
		edge  Edge
	}{
		{d.Install.Requires, Edge{Kind: Requires, Install: true, SameNode: d.Install.Scope == "node"}},
		{d.Install.Uses, Edge{Kind: Uses, Install: true, SameNode: d.Install.Scope == "node"}},
		{d.Runtime.Requires, Edge{Kind: Requires, Runtime: true}}, {d.Runtime.Uses, Edge{Kind: Uses, Runtime: true}},
		{s.Follows, Edge{Kind: Follows}}, {d.Conflicts, Edge{Kind: Conflicts}},
	} {
		for _, to := range need.names {
			_, is := b.services[to]
			if to == name || to == "" || !is && !b.provided[to] && !b.all && need.edge.Kind != Requires {
				continue
			}
			b.wanted[to] = true
			b.edge(name, to, need.edge)
		}
	}
}

// edge adds an edge, or merges it into the one that is there.
func (b *builder) edge(from, to string, t Edge) {
	if from == to {
		return
	}
	if _, known := b.vertices[to]; !known {
		b.vertices[to] = Missing
		if b.provided[to] {
			b.vertices[to] = Name
		}
	}
	k := key{from, to, t.Kind}
	if t.Kind == Conflicts {
		// A conflict is one edge, whichever service declares it.
		if _, there := b.edges[key{to, from, Conflicts}]; there || b.vertices[to] == Service && to < from {
			k.from, k.to = to, from
		}
	}
	before := b.edges[k]
	before.Kind, before.Install, before.Runtime, before.SameNode = t.Kind, before.Install || t.Install, before.Runtime || t.Runtime, before.SameNode || t.SameNode
	b.edges[k] = before
}

// graph sorts vertices and edges and looks for cycles.
func (b *builder) graph() Graph {
	var w Graph
	index := map[string]int{}
	for _, sort := range []Sort{Service, Name, Missing} {
		for _, name := range slices.Sorted(maps.Keys(b.vertices)) {
			if b.vertices[name] == sort {
				index[name] = len(w.Vertices)
				w.Vertices = append(w.Vertices, Vertex{Name: name, Sort: sort})
			}
		}
	}
	for k, t := range b.edges {
		t.From, t.To = index[k.from], index[k.to]
		w.Edges = append(w.Edges, t)
	}
	slices.SortFunc(w.Edges, Edge.compare)
	w.findCycles(b.services)
	return w
}

func (t Edge) compare(u Edge) int {
	for _, d := range []int{t.From - u.From, t.To - u.To, int(t.Kind) - int(u.Kind)} {
		if d != 0 {
			return d
		}
	}
	return 0
}
