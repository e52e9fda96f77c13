// Package ties says what the services of a catalog, a template or a cluster have
// to do with each other: who requires, uses, provides, follows and keeps away
// whom. Pictures and tables are made of it (package draw places it).
//
// It is pure, as the planner is, and decides nothing: what may be in a cluster is
// the solver's, what comes first the planner's. What a newcomer gets wrong: a name
// that services depend on need not be that of a service. Where none has it, the
// name is a thing of its own between those that want it and those that provide it;
// where nobody provides it either, it is missing.
package ties

import (
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
)

// Kind is how two things are tied.
type Kind int

// The kinds, the strongest first. All but Conflicts lead from one to another.
const (
	// Requires demands presence and orders.
	Requires Kind = iota
	// Uses orders where both are there.
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

// Tie is one relation of two things. From and To are indexes of Web.Things and
// differ: what a service says of itself is without effect and no tie.
type Tie struct {
	From, To int
	Kind     Kind
	// Install and Runtime say for which actions a need holds.
	Install, Runtime bool
	// SameNode limits an install need to the machine of From.
	SameNode bool
	// Circle says that it is part of one of Web.Circles.
	Circle bool
}

// Label is the tie in one or two words for a picture, where the line says the
// kind already: "install", "run", "install, run", "provides".
func (t Tie) Label() string {
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

// Sort is what a thing is.
type Sort int

// The sorts of things.
const (
	Service Sort = iota
	// Name is provided by services, none of which is called so.
	Name
	// Missing is asked for and not there.
	Missing
)

// Thing is a service or a name.
type Thing struct {
	Name string
	Sort Sort
	// Hops is how far it is from the service in the middle; 0 where there is none.
	Hops int
}

// Circle is services that depend on each other in a circle: such a cluster cannot
// be planned. Path ends where it began.
type Circle struct {
	// Install says that it is one of install actions, else of initialize, start and stop.
	Install bool
	Path    []string
}

// Web is things with their ties: services by name, then names, then what is
// missing; ties by From, To and Kind.
type Web struct {
	Things  []Thing
	Ties    []Tie
	Circles []Circle
}

// Of gives the ties between all services of a set. A name that a service of it
// requires in vain is among the things as missing; one that is only used, followed
// or kept away in vain is not, and nor is one that nobody of the set asks for.
func Of(services map[string]loom.Service) Web {
	b := newBuilder(services, false)
	return b.web()
}

// builder collects things and ties.
type builder struct {
	services map[string]loom.Service
	// all says that names asked for in vain count as missing whoever asks, and that
	// provided names are things even when nobody asks for them.
	all      bool
	provided map[string]bool
	wanted   map[string]bool
	things   map[string]Sort
	ties     map[key]Tie
}

// key tells ties apart while they are merged.
type key struct {
	from, to string
	kind     Kind
}

func newBuilder(services map[string]loom.Service, all bool) *builder {
	b := &builder{services: services, all: all, provided: map[string]bool{}, wanted: map[string]bool{}, things: map[string]Sort{}, ties: map[key]Tie{}}
	for name, s := range services {
		b.things[name] = Service
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
				b.tie(name, also, Tie{Kind: Provides})
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
		tie   Tie
	}{
		{d.Install.Requires, Tie{Kind: Requires, Install: true, SameNode: d.Install.Scope == "node"}},
		{d.Install.Uses, Tie{Kind: Uses, Install: true, SameNode: d.Install.Scope == "node"}},
		{d.Runtime.Requires, Tie{Kind: Requires, Runtime: true}}, {d.Runtime.Uses, Tie{Kind: Uses, Runtime: true}},
		{s.Follows, Tie{Kind: Follows}}, {d.Conflicts, Tie{Kind: Conflicts}},
	} {
		for _, to := range need.names {
			_, is := b.services[to]
			if to == name || to == "" || !is && !b.provided[to] && !b.all && need.tie.Kind != Requires {
				continue
			}
			b.wanted[to] = true
			b.tie(name, to, need.tie)
		}
	}
}

// tie adds a tie, or what it says to the one that is there.
func (b *builder) tie(from, to string, t Tie) {
	if from == to {
		return
	}
	if _, known := b.things[to]; !known {
		b.things[to] = Missing
		if b.provided[to] {
			b.things[to] = Name
		}
	}
	k := key{from, to, t.Kind}
	if t.Kind == Conflicts {
		// A conflict is one, whoever says so.
		if _, there := b.ties[key{to, from, Conflicts}]; there || b.things[to] == Service && to < from {
			k.from, k.to = to, from
		}
	}
	before := b.ties[k]
	before.Kind, before.Install, before.Runtime, before.SameNode = t.Kind, before.Install || t.Install, before.Runtime || t.Runtime, before.SameNode || t.SameNode
	b.ties[k] = before
}

// web puts what was collected in order and looks for circles.
func (b *builder) web() Web {
	var w Web
	index := map[string]int{}
	for _, sort := range []Sort{Service, Name, Missing} {
		for _, name := range slices.Sorted(maps.Keys(b.things)) {
			if b.things[name] == sort {
				index[name] = len(w.Things)
				w.Things = append(w.Things, Thing{Name: name, Sort: sort})
			}
		}
	}
	for k, t := range b.ties {
		t.From, t.To = index[k.from], index[k.to]
		w.Ties = append(w.Ties, t)
	}
	slices.SortFunc(w.Ties, Tie.compare)
	w.findCircles(b.services)
	return w
}

func (t Tie) compare(u Tie) int {
	for _, d := range []int{t.From - u.From, t.To - u.To, int(t.Kind) - int(u.Kind)} {
		if d != 0 {
			return d
		}
	}
	return 0
}
