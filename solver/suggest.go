package solver

import (
	"context"
	"slices"

	"loom/app/loom"
)

// maxSuggestions is how many ways out are offered; more would not be read.
const maxSuggestions = 5

// suggestSteps bounds the search behind one suggestion, allSuggestSteps that behind
// all of them; every try counts, with what its number of services costs. What takes longer is not offered: a suggestion is a help, never part
// of the answer.
const (
	suggestSteps    = 50_000
	allSuggestSteps = 150_000
)

// Suggest finds changes of the request that help. Each was applied to the input,
// solved and checked before it is offered, and none holds more than is needed:
// without any one of its parts it would not help. Where the change needs another
// number of machines, it says so and includes it. Changes of the template, and
// at last of catalog entries, are offered only where no change of the request helps. When ctx ends, what was found
// until then is returned.
func Suggest(ctx context.Context, in Input, unsat *loom.Unsat) []loom.Suggestion {
	if unsat == nil {
		return nil
	}
	g := suggester{ctx: ctx, ask: request{in: in.withDefaults()}, unsat: unsat, left: allSuggestSteps}
	g.suggestSize()
	g.suggestAdditions()
	g.suggestTypes()
	g.suggestProviders()
	g.suggestRemovals()
	for _, last := range []func(){g.suggestCompanions, g.suggestFewerServices, func() { g.suggestRelaxations(nil) }, func() { g.suggestRelaxations(g.withoutProblems()) },
		func() { g.suggestRelaxations(append(g.withoutProblems(), g.entries()...)) }} {
		if len(g.found) == 0 {
			last()
		}
	}
	return plain(g.found)
}

// SuggestChange is Suggest for Alter. A suggestion speaks of the services that the
// cluster would have: AddServices are to be there as well, RemoveServices are not
// to be there; Adjust puts that into the two lists of Alter.
func SuggestChange(ctx context.Context, c Cluster, add, remove []string, unsat *loom.Unsat) []loom.Suggestion {
	if unsat == nil {
		return nil
	}
	g := suggester{ctx: ctx, ask: request{in: c.Input, nodes: c.Nodes, add: sortedSet(add), remove: sortedSet(remove)}, unsat: unsat, left: allSuggestSteps}
	g.suggestCorrections()
	g.suggestAdditions()
	g.suggestRemovals()
	if len(g.found) == 0 {
		g.suggestRelaxations(nil)
	}
	if len(g.found) == 0 {
		g.suggestRelaxations(g.withoutProblems())
	}
	if len(g.found) == 0 {
		g.suggestRelaxations(append(g.withoutProblems(), g.entries()...))
	}
	return plain(g.found)
}

// plain are the suggestions that name neither nodes nor services.
func plain(ways []Way) []loom.Suggestion {
	var out []loom.Suggestion
	for _, w := range ways {
		out = append(out, w.Suggestion)
	}
	return out
}

// Adjust applies a suggestion to the lists of Alter.
func Adjust(add, remove []string, s loom.Suggestion) (newAdd, newRemove []string) {
	a := request{nodes: []Node{{}}, add: slices.Clone(add), remove: slices.Clone(remove)}
	for _, name := range s.RemoveServices {
		a.without(name)
	}
	for _, name := range s.AddServices {
		a.with(name)
	}
	return a.add, a.remove
}

// Create checks, solves and, for a "no", suggests: what a create request needs.
// Exactly one of layout, unsat and error is set; errors are those of Solve.
func Create(ctx context.Context, in Input) (Problem, loom.Layout, *loom.Unsat, error) {
	p, unsat := NewProblem(in)
	var layout loom.Layout
	if unsat == nil {
		var err error
		if layout, unsat, err = Solve(ctx, p); err != nil {
			return p, nil, nil, err
		}
	} else if wrong := in.checkSize(); len(wrong) > 0 {
		unsat.Reasons = append(wrong, unsat.Reasons...)
		unsat.Code, unsat.Headline = CodeSize, checkHeadline(unsat.Reasons)
	}
	if unsat != nil {
		unsat.Suggestions = Suggest(ctx, in, unsat)
	}
	return p, layout, unsat, nil
}

// request is what a suggestion changes: a request for a new cluster, or, with nodes,
// the services to put on one and to take off it.
type request struct {
	in          Input // with its defaults
	nodes       []Node
	add, remove []string
	// move, where it is one, is asked for in place of these lists.
	move move
}

func (a *request) onCluster() bool { return len(a.nodes) > 0 }

func (a *request) cluster() Cluster { return Cluster{Input: a.in, Nodes: a.nodes} }

// with asks for a service that was not asked for, or lets one stay.
func (a *request) with(name string) {
	switch {
	case !a.onCluster():
		a.in.Services = sortedSet(append(slices.Clone(a.in.Services), name))
	case slices.Contains(a.remove, name):
		a.remove = slices.DeleteFunc(slices.Clone(a.remove), func(s string) bool { return s == name })
	default:
		a.add = sortedSet(append(slices.Clone(a.add), name))
	}
}

// without no longer asks for a service, or takes it off.
func (a *request) without(name string) {
	drop := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
	}
	switch {
	case !a.onCluster():
		a.in.Services = drop(a.in.Services)
	case slices.Contains(a.add, name):
		a.add = drop(a.add)
	default:
		a.remove = sortedSet(append(slices.Clone(a.remove), name))
	}
}

// change does with and without for many services at once.
func (a *request) change(parts []part) {
	if len(parts) == 0 {
		return
	}
	asked, add, remove := setOf(a.in.Services), setOf(a.add), setOf(a.remove)
	for _, p := range parts {
		name, comes := p.service, p.kind == addPart || p.kind == keepPart
		switch {
		case !a.onCluster() && comes:
			asked[name] = true
		case !a.onCluster():
			delete(asked, name)
		case comes && remove[name]:
			delete(remove, name)
		case comes:
			add[name] = true
		case add[name]:
			delete(add, name)
		default:
			remove[name] = true
		}
	}
	if a.onCluster() {
		a.add, a.remove = sortedKeys(add), sortedKeys(remove)
	} else {
		a.in.Services = sortedKeys(asked)
	}
}

// targetInput is the input with the services that the cluster would have.
func (a *request) targetInput() Input {
	in := a.in
	if a.onCluster() {
		c := a.cluster()
		leaves, comes := setOf(a.remove), setOf(a.add)
		in.Services = slices.DeleteFunc(sortedSet(slices.Concat(c.services(), a.add)), func(s string) bool {
			return leaves[s] && !comes[s]
		})
	}
	return in
}

// solves reports that the answer is yes, and gives the machine counts that work
// where it is no. Too long a search counts as no.
func (a *request) solves(ctx context.Context, left *int) (bool, *loom.SizeRange) {
	if *left <= 0 || ctx.Err() != nil || !a.onCluster() && len(a.in.Services) == 0 {
		return false, nil
	}
	*left -= a.cost()
	if a.move.kind != noMove {
		return a.solvesMove(ctx, left), nil
	}
	if a.onCluster() {
		return a.solvesNodes(ctx, left), nil
	}
	p, unsat := NewProblem(a.in)
	if unsat != nil {
		return false, nil
	}
	m, err := reduce(p)
	if err != nil {
		return false, nil
	}
	s := newSearch(ctx, m)
	s.limit = max(min(suggestSteps, *left), 1)
	defer func() { *left -= s.steps }()
	if p.Machines < p.Size.Min || p.Machines > p.Size.Max || !s.solvable(int64(p.Machines)) {
		low, high := s.span()
		if s.err != nil {
			return false, nil
		}
		return false, sizesWithin(p, low, high)
	}
	layout := s.walk(int64(p.Machines))
	return s.err == nil && len(Valid(p, layout)) == 0, nil
}

// cost is what a try takes beside its search, in steps: nearly nothing, unless there
// are many services or nodes to look at.
func (a *request) cost() int {
	return 20 + (len(a.in.Services)+len(a.add)+len(a.remove))/4 + len(a.nodes)/50
}

func (a *request) solvesNodes(ctx context.Context, left *int) bool {
	c := a.cluster()
	p, nodes, unsat := c.problem(a.add, a.remove, len(a.nodes))
	if unsat != nil {
		return false
	}
	p, _ = columns(p, nodes)
	st, err := newClusterModel(p, false)
	if err != nil {
		return false
	}
	s := &search{ctx: ctx, limit: max(min(suggestSteps, *left), 1)}
	defer func() { *left -= s.steps }()
	s.check()
	return s.fill(st, st.placements(), st.low, st.high) && s.err == nil
}

type suggester struct {
	ctx   context.Context
	ask   request
	unsat *loom.Unsat
	found []Way
	left  int // steps
}

func (g *suggester) full() bool { return len(g.found) >= maxSuggestions || g.over() }

// over reports that no further try would be answered.
func (g *suggester) over() bool { return g.left <= 0 || g.ctx.Err() != nil }

// try keeps what is needed of the parts, with another number of machines if need
// be, provided that they help. It reports whether they do.
func (g *suggester) try(parts []part) bool {
	if g.full() {
		return false
	}
	ok, sizes := g.with(parts).solves(g.ctx, &g.left)
	if !ok && sizes != nil {
		n := min(max(g.ask.in.Machines, sizes.Min), sizes.Max)
		parts = append(parts[:len(parts):len(parts)], machines(n))
		ok, _ = g.with(parts).solves(g.ctx, &g.left)
	}
	if !ok || len(parts) == 0 {
		return false
	}
	s := way(g.ask, g.tune(g.needed(parts)))
	if !slices.ContainsFunc(g.found, func(f Way) bool { return f.Label == s.Label }) {
		g.found = append(g.found, s)
	}
	return true
}

func (g *suggester) with(parts []part) *request {
	a := g.ask
	var services []part
	for _, p := range parts {
		switch p.kind {
		case addPart, keepPart, removePart, leaveOutPart:
			services = append(services, p)
		default:
			p.apply(&a)
		}
	}
	a.change(services)
	return &a
}

func (g *suggester) helps(parts []part) bool {
	if g.over() {
		return false
	}
	ok, _ := g.with(parts).solves(g.ctx, &g.left)
	return ok
}

// needed drops parts as long as the others help; then a single one that would do.
func (g *suggester) needed(parts []part) []part {
	for again := true; again && !g.over(); {
		again = false
		for i := 0; i < len(parts) && len(parts) > 1 && !g.over(); i++ {
			rest := slices.Delete(slices.Clone(parts), i, i+1)
			if g.helps(rest) {
				parts, again = rest, true
				i--
			}
		}
	}
	if len(parts) > 2 {
		for _, p := range parts {
			if g.helps([]part{p}) {
				return []part{p}
			}
		}
	}
	return parts
}
