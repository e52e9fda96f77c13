package solver

import (
	"context"
	"fmt"
	"slices"

	"loom/app/loom"
)

// maxSuggestions is how many ways out are offered; more would not be read.
const maxSuggestions = 5

// Suggest finds changes of the request that help. Each was applied to the input,
// solved and checked before it is offered; where the change needs another number
// of machines to work, it says so and includes it. The smallest changes come
// first. When ctx ends, what was found until then is returned.
func Suggest(ctx context.Context, in Input, unsat *loom.Unsat) []loom.Suggestion {
	if unsat == nil {
		return nil
	}
	g := suggester{ctx: ctx, in: in.withDefaults(), unsat: unsat}
	if unsat.Sizes != nil {
		g.try(edit{})
	}
	g.additions()
	g.types()
	g.removals()
	return g.found
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
	}
	if unsat != nil {
		unsat.Suggestions = Suggest(ctx, in, unsat)
	}
	return p, layout, unsat, nil
}

// edit is a change of an input, apart from its number of machines.
type edit struct {
	add, remove     []string
	hardware, image string
	label           string
}

type suggester struct {
	ctx   context.Context
	in    Input // with its defaults
	unsat *loom.Unsat
	found []loom.Suggestion
}

// try solves the input with the edit, with another number of machines if need be,
// and keeps what works. It reports whether the edit is part of a suggestion.
func (g *suggester) try(e edit) bool {
	if len(g.found) >= maxSuggestions || g.ctx.Err() != nil {
		return false
	}
	in := g.in
	in.Services = sortedSet(append(slices.Clone(in.Services), e.add...))
	in.Services = slices.DeleteFunc(in.Services, func(s string) bool { return slices.Contains(e.remove, s) })
	if len(in.Services) == 0 {
		return false
	}
	in.HardwareType, in.ImageType = firstSet(e.hardware, in.HardwareType), firstSet(e.image, in.ImageType)
	p, unsat := NewProblem(in)
	if unsat != nil {
		return false
	}
	sizes, ok, err := Sizes(g.ctx, p)
	if err != nil || !ok {
		return false
	}
	s := loom.Suggestion{Label: e.label, AddServices: e.add, RemoveServices: e.remove, HardwareType: e.hardware, ImageType: e.image}
	if n := min(max(p.Machines, sizes.Min), sizes.Max); n != p.Machines {
		p.Machines, s.Machines = n, n
		use := "use " + count(n, "machine")
		if s.Label == "" {
			s.Label = capital(use)
		} else {
			s.Label += " and " + use
		}
	}
	layout, unsat, err := Solve(g.ctx, p)
	if err != nil || unsat != nil || len(Valid(p, layout)) > 0 || s.Label == "" {
		return false
	}
	if !slices.ContainsFunc(g.found, func(f loom.Suggestion) bool { return f.Label == s.Label }) {
		g.found = append(g.found, s)
	}
	return true
}

// additions offers the services that others require, with what these require.
func (g *suggester) additions() {
	missing := g.in.missing()
	if len(missing) == 0 {
		return
	}
	// A choice is offered only for the first name; the rest takes the first that fits.
	for _, first := range g.providers(missing[0].name) {
		in := g.in
		in.Services = sortedSet(append(slices.Clone(in.Services), first))
		added, by := []string{first}, missing[0].service
		for again := true; again; {
			again = false
			for _, m := range in.missing() {
				if found := g.providers(m.name); len(found) > 0 {
					in.Services = sortedSet(append(slices.Clone(in.Services), found[0]))
					added = append(added, found[0])
					again = true
					break
				}
			}
		}
		label := fmt.Sprintf("Add %s (required by %s)", added[0], by)
		if len(added) > 1 {
			label = "Add " + list(sortedSet(added))
		}
		g.try(edit{add: sortedSet(added), label: label})
	}
}

// providers lists the services that may be added for a required name: the one of
// that name first.
func (g *suggester) providers(name string) []string {
	allowed := g.in.Template.Compatibility.Services
	var out []string
	for s, service := range g.in.Catalog {
		if (s == name || slices.Contains(service.Dependencies.Provides, name)) && (len(allowed) == 0 || slices.Contains(allowed, s)) {
			out = append(out, s)
		}
	}
	return byPreference(out, []string{name})
}

// types offers other types for the whole cluster where one was chosen; both at once
// only if neither alone helps.
func (g *suggester) types() {
	var hardware, image []edit
	if was := g.in.HardwareType; was != "" {
		in := g.in
		in.HardwareType = ""
		names, _ := in.checkHardware()
		for _, name := range names {
			if name != was {
				hardware = append(hardware, edit{hardware: name, label: fmt.Sprintf("Choose %s instead of %s", name, was)})
			}
		}
	}
	if was := g.in.ImageType; was != "" {
		in := g.in
		in.ImageType = ""
		names, _ := in.checkImages()
		for _, name := range names {
			if name != was {
				image = append(image, edit{image: name, label: fmt.Sprintf("Choose %s instead of %s", name, was)})
			}
		}
	}
	if g.firstOf(hardware) || g.firstOf(image) {
		return
	}
	var both []edit
	for _, h := range hardware {
		for _, i := range image {
			both = append(both, edit{hardware: h.hardware, image: i.image,
				label: fmt.Sprintf("Choose %s and %s instead of %s and %s", h.hardware, i.image, g.in.HardwareType, g.in.ImageType)})
		}
	}
	g.firstOf(both)
}

// firstOf keeps the first edit that works among a bounded number.
func (g *suggester) firstOf(edits []edit) bool {
	for _, e := range edits[:min(len(edits), 20)] {
		if g.try(e) {
			return true
		}
	}
	return false
}

// removals offers to leave out what the reasons name: all that cannot be used at
// once, else one service at a time, each with what requires it.
func (g *suggester) removals() {
	var unusable, named []string
	allowed := g.in.Template.Compatibility.Services
	for _, s := range g.in.Services {
		_, known := g.in.Catalog[s]
		if !known || len(allowed) > 0 && !slices.Contains(allowed, s) {
			unusable = append(unusable, s)
		}
	}
	if len(unusable) > 0 {
		g.remove(unusable)
	}
	for _, m := range g.in.missing() {
		named = append(named, m.service)
	}
	for _, c := range g.in.clashes() {
		named = append(named, c.service, c.other)
	}
	for _, r := range g.unsat.Reasons {
		named = append(named, g.in.namedBy(r.ID)...)
	}
	done := map[string]bool{}
	for _, s := range named {
		if !done[s] && len(done) < 20 {
			done[s] = true
			g.remove(append(slices.Clone(unusable), s))
		}
	}
}

// remove tries to leave out the services and all that cannot be without them.
func (g *suggester) remove(services []string) {
	in := g.in
	was := in.missing()
	gone := slices.Clone(services)
	for again := true; again; {
		in.Services = slices.DeleteFunc(slices.Clone(g.in.Services), func(s string) bool { return slices.Contains(gone, s) })
		again = false
		for _, m := range in.missing() {
			if !slices.Contains(was, m) {
				gone = append(gone, m.service)
				again = true
			}
		}
	}
	gone = sortedSet(gone)
	g.try(edit{remove: gone, label: "Remove " + list(gone)})
}

// namedBy gives the services that a reason's id speaks of.
func (in Input) namedBy(id string) []string {
	var out []string
	layout := in.Template.Constraints.Layout
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
	for _, s := range in.Services {
		switch id {
		case "hardware(" + s + ")", "image(" + s + ")", "quantity(" + s + ").min", "quantity(" + s + ").max":
			out = append(out, s)
		}
	}
	out = sortedSet(out)
	return slices.DeleteFunc(out, func(s string) bool { return !slices.Contains(in.Services, s) })
}
