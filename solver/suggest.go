package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"loom/app/loom"
)

// maxSuggestions is how many ways out are offered; more would not be read.
const maxSuggestions = 5

// suggestSteps bounds the search behind one suggestion, allSuggestSteps that behind
// all of them. What takes longer is not offered: a suggestion is a help, never part
// of the answer.
const (
	suggestSteps    = 50_000
	allSuggestSteps = 150_000
)

// Suggest finds changes of the request that help. Each was applied to the input,
// solved and checked before it is offered, and none holds more than is needed:
// without any one of its parts it would not help. Where the change needs another
// number of machines, it says so and includes it. Changes of the template are
// offered only where no change of the request helps. When ctx ends, what was found
// until then is returned.
func Suggest(ctx context.Context, in Input, unsat *loom.Unsat) []loom.Suggestion {
	if unsat == nil {
		return nil
	}
	g := suggester{ctx: ctx, ask: ask{in: in.withDefaults()}, unsat: unsat, left: allSuggestSteps}
	g.size()
	g.additions()
	g.types()
	g.removals()
	for _, last := range []func(){g.companions, g.fewest, func() { g.relaxations(nil) }, func() { g.relaxations(g.undone()) }} {
		if len(g.found) == 0 {
			last()
		}
	}
	return g.found
}

// SuggestChange is Suggest for Alter. A suggestion speaks of the services that the
// cluster would have: AddServices are to be there as well, RemoveServices are not
// to be there; Adjust puts that into the two lists of Alter.
func SuggestChange(ctx context.Context, c Cluster, add, remove []string, unsat *loom.Unsat) []loom.Suggestion {
	if unsat == nil {
		return nil
	}
	g := suggester{ctx: ctx, ask: ask{in: c.Input, nodes: c.Nodes, add: sortedSet(add), remove: sortedSet(remove)}, unsat: unsat, left: allSuggestSteps}
	g.corrections()
	g.additions()
	g.removals()
	if len(g.found) == 0 {
		g.relaxations(nil)
	}
	if len(g.found) == 0 {
		g.relaxations(g.undone())
	}
	return g.found
}

// Adjust applies a suggestion to the lists of Alter.
func Adjust(add, remove []string, s loom.Suggestion) (newAdd, newRemove []string) {
	a := ask{nodes: []Node{{}}, add: slices.Clone(add), remove: slices.Clone(remove)}
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

// ask is what a suggestion changes: a request for a new cluster, or, with nodes,
// the services to put on one and to take off it.
type ask struct {
	in          Input // with its defaults
	nodes       []Node
	add, remove []string
}

func (a *ask) exists() bool { return len(a.nodes) > 0 }

func (a *ask) cluster() Cluster { return Cluster{Input: a.in, Nodes: a.nodes} }

// with asks for a service that was not asked for, or lets one stay.
func (a *ask) with(name string) {
	switch {
	case !a.exists():
		a.in.Services = sortedSet(append(slices.Clone(a.in.Services), name))
	case slices.Contains(a.remove, name):
		a.remove = slices.DeleteFunc(slices.Clone(a.remove), func(s string) bool { return s == name })
	default:
		a.add = sortedSet(append(slices.Clone(a.add), name))
	}
}

// without no longer asks for a service, or takes it off.
func (a *ask) without(name string) {
	drop := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
	}
	switch {
	case !a.exists():
		a.in.Services = drop(a.in.Services)
	case slices.Contains(a.add, name):
		a.add = drop(a.add)
	default:
		a.remove = sortedSet(append(slices.Clone(a.remove), name))
	}
}

// wanted is the input with the services that the cluster would have.
func (a *ask) wanted() Input {
	in := a.in
	if a.exists() {
		c := a.cluster()
		in.Services = slices.DeleteFunc(sortedSet(slices.Concat(c.services(), a.add)), func(s string) bool {
			return slices.Contains(a.remove, s) && !slices.Contains(a.add, s)
		})
	}
	return in
}

// solves reports that the answer is yes, and gives the machine counts that work
// where it is no. Too long a search counts as no.
func (a *ask) solves(ctx context.Context, left *int) (bool, *loom.SizeRange) {
	if *left <= 0 || !a.exists() && len(a.in.Services) == 0 {
		return false, nil
	}
	if a.exists() {
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
	s.limit = min(suggestSteps, *left)
	defer func() { *left -= s.steps + 20 }()
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

func (a *ask) solvesNodes(ctx context.Context, left *int) bool {
	c := a.cluster()
	p, nodes, unsat := c.problem(a.add, a.remove, len(a.nodes))
	if unsat != nil {
		return false
	}
	p, _ = columns(p, nodes)
	st, err := stand(p, false)
	if err != nil {
		return false
	}
	s := &search{ctx: ctx, limit: min(suggestSteps, *left)}
	defer func() { *left -= s.steps + 20 }()
	s.check()
	return s.fill(st, st.spots(), st.low, st.high) && s.err == nil
}

type suggester struct {
	ctx   context.Context
	ask   ask
	unsat *loom.Unsat
	found []loom.Suggestion
	left  int // steps
}

func (g *suggester) full() bool { return len(g.found) >= maxSuggestions || g.ctx.Err() != nil }

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
	s := suggestion(g.ask, g.tuned(g.needed(parts)))
	if !slices.ContainsFunc(g.found, func(f loom.Suggestion) bool { return f.Label == s.Label }) {
		g.found = append(g.found, s)
	}
	return true
}

func (g *suggester) with(parts []part) *ask {
	a := g.ask
	for _, p := range parts {
		p.apply(&a)
	}
	return &a
}

func (g *suggester) helps(parts []part) bool {
	ok, _ := g.with(parts).solves(g.ctx, &g.left)
	return ok
}

// needed drops parts as long as the others help; then a single one that would do.
func (g *suggester) needed(parts []part) []part {
	for again := true; again; {
		again = false
		for i := 0; i < len(parts) && len(parts) > 1; i++ {
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

// errNone ends a search for suggestions early.
var errNone = errors.New("none")

// size offers the nearest number of machines that works, which the search for the
// reasons has found.
func (g *suggester) size() {
	if g.unsat.Sizes == nil {
		return
	}
	n := min(max(g.ask.in.Machines, g.unsat.Sizes.Min), g.unsat.Sizes.Max)
	g.found = append(g.found, suggestion(g.ask, []part{machines(n)}))
}

// additions offers the services that others require, with what these require.
func (g *suggester) additions() {
	want := g.ask.wanted()
	missing := want.missing()
	if len(missing) == 0 {
		return
	}
	// A choice is offered only for the first name; the rest takes the first that fits.
	for _, first := range want.providers(missing[0].name) {
		added, err := want.closure(first)
		if err != nil {
			continue
		}
		var parts []part
		for _, name := range added {
			parts = append(parts, adding(name, missing[0].service))
		}
		g.try(append(parts, g.unusable()...))
	}
}

// closure gives the service and those to add so that nothing required is missing.
func (in Input) closure(first string) ([]string, error) {
	in.Services = sortedSet(append(slices.Clone(in.Services), first))
	added := []string{first}
	for {
		missing := in.missing()
		i := slices.IndexFunc(missing, func(n need) bool { return len(in.providers(n.name)) > 0 })
		if i < 0 {
			return sortedSet(added), nil
		}
		next := in.providers(missing[i].name)[0]
		if slices.Contains(added, next) || len(added) > 20 {
			return nil, errNone
		}
		in.Services = sortedSet(append(slices.Clone(in.Services), next))
		added = append(added, next)
	}
}

// providers lists the services that may be added for a required name: the one of
// that name first.
func (in Input) providers(name string) []string {
	allowed := in.Template.Compatibility.Services
	var out []string
	for s, service := range in.Catalog {
		if (s == name || slices.Contains(service.Dependencies.Provides, name)) && (len(allowed) == 0 || slices.Contains(allowed, s)) {
			out = append(out, s)
		}
	}
	return byPreference(out, []string{name})
}

// unusable are parts that take out what is unknown or not allowed.
func (g *suggester) unusable() []part {
	want := g.ask.wanted()
	allowed := want.Template.Compatibility.Services
	var out []part
	for _, s := range want.Services {
		if _, known := want.Catalog[s]; !known || len(allowed) > 0 && !slices.Contains(allowed, s) {
			out = append(out, removing(g.ask, s))
		}
	}
	return out
}

// types offers other types for the whole cluster where one was chosen; both at once
// only if neither alone helps.
func (g *suggester) types() {
	var hardware, image []part
	if was := g.ask.in.HardwareType; was != "" {
		in := g.ask.in
		in.HardwareType = ""
		names, _ := in.checkHardware()
		for _, name := range names {
			if name != was {
				hardware = append(hardware, choosing(name, was, true))
			}
		}
	}
	if was := g.ask.in.ImageType; was != "" {
		in := g.ask.in
		in.ImageType = ""
		names, _ := in.checkImages()
		for _, name := range names {
			if name != was {
				image = append(image, choosing(name, was, false))
			}
		}
	}
	if g.firstOf(single(hardware)) || g.firstOf(single(image)) {
		return
	}
	var both [][]part
	for _, h := range hardware {
		for _, i := range image {
			both = append(both, []part{h, i})
		}
	}
	g.firstOf(both)
}

func single(parts []part) [][]part {
	var out [][]part
	for _, p := range parts {
		out = append(out, []part{p})
	}
	return out
}

// firstOf keeps the first that helps among a bounded number.
func (g *suggester) firstOf(all [][]part) bool {
	for _, parts := range all[:min(len(all), 20)] {
		if g.try(parts) {
			return true
		}
	}
	return false
}

// removals offers to leave out what the reasons name: all that cannot be used at
// once, else one service at a time, each with what requires it.
func (g *suggester) removals() {
	unusable := g.unusable()
	if len(unusable) > 0 {
		g.remove(unusable, "")
	}
	want := g.ask.wanted()
	var named []string
	for _, m := range want.missing() {
		named = append(named, m.service)
	}
	for _, c := range want.clashes() {
		named = append(named, c.service, c.other)
	}
	for _, r := range g.unsat.Reasons {
		named = append(named, want.namedBy(r.ID)...)
	}
	if g.ask.exists() {
		// What was to be added goes first; the rest is there already.
		slices.SortStableFunc(named, func(a, b string) int {
			return boolInt(slices.Contains(g.ask.add, b)) - boolInt(slices.Contains(g.ask.add, a))
		})
	}
	done := map[string]bool{}
	for _, s := range named {
		if !done[s] && len(done) < 20 {
			done[s] = true
			g.remove(unusable, s)
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// remove tries to leave out a service and all that cannot be without it.
func (g *suggester) remove(parts []part, service string) {
	want := g.ask.wanted()
	was := want.missing()
	var gone []string
	for _, p := range parts {
		gone = append(gone, p.service)
	}
	if service != "" {
		gone = append(gone, service)
	}
	in := want
	for again := true; again; {
		in.Services = slices.DeleteFunc(slices.Clone(want.Services), func(s string) bool { return slices.Contains(gone, s) })
		again = false
		for _, m := range in.missing() {
			if !slices.Contains(was, m) {
				gone = append(gone, m.service)
				again = true
			}
		}
	}
	parts = nil
	for _, s := range sortedSet(gone) {
		parts = append(parts, removing(g.ask, s))
	}
	g.try(parts)
}

// companions offers services to go with those asked for: what the template has by
// default or knows, one after the other, and all of its defaults.
func (g *suggester) companions() {
	in := g.ask.in
	names := slices.Concat(in.Template.Defaults.Services, in.Template.Compatibility.Services, sortedKeys(in.Template.Constraints.Services))
	if len(in.Template.Compatibility.Services) == 0 {
		names = slices.Concat(names, sortedKeys(in.Catalog))
	}
	unusable := g.unusable()
	done, tries := map[string]bool{}, 0
	for _, name := range names {
		_, known := in.Catalog[name]
		if done[name] || !known || slices.Contains(in.Services, name) || tries >= 40 || len(g.found) >= 3 {
			continue
		}
		done[name] = true
		tries++
		if added, err := in.closure(name); err == nil {
			g.accompany(added, unusable)
		}
	}
	if len(g.found) == 0 {
		g.accompany(slices.DeleteFunc(slices.Clone(in.Template.Defaults.Services), func(s string) bool { return slices.Contains(in.Services, s) }), unusable)
	}
}

func (g *suggester) accompany(names []string, more []part) {
	var parts []part
	for _, name := range names {
		parts = append(parts, adding(name, ""))
	}
	g.try(append(parts, more...))
}

// corrections undoes what makes no sense for the cluster: adding what is there,
// removing what is not, emptying nodes.
func (g *suggester) corrections() {
	c := g.ask.cluster()
	present := c.services()
	var parts, keep []part
	for _, s := range g.ask.add {
		if slices.Contains(present, s) {
			parts = append(parts, removing(g.ask, s))
		}
	}
	for _, s := range g.ask.remove {
		if !slices.Contains(present, s) {
			parts = append(parts, keeping(s))
		} else {
			keep = append(keep, keeping(s))
		}
	}
	if len(parts) > 0 {
		g.try(parts)
	}
	if len(keep) > 0 {
		g.try(append(parts, keep...))
	}
}

// namedBy gives the services that a reason's id speaks of.
func (in Input) namedBy(id string) []string {
	out := ServicesOf(in.Template, id)
	return slices.DeleteFunc(out, func(s string) bool { return !slices.Contains(in.Services, s) })
}

// ServicesOf gives the services that the rule of a reason's id speaks of, sorted.
func ServicesOf(t loom.Template, id string) []string {
	var out []string
	layout := t.Constraints.Layout
	for i, set := range layout.MustCoexist {
		if id == fmt.Sprintf("must#%d", i) {
			out = append(out, set...)
		}
	}
	for i, set := range layout.CantCoexist {
		if id == fmt.Sprintf("cant#%d", i) {
			out = append(out, set...)
		}
	}
	return sortedSet(append(out, bracketed(id)...))
}
