package solver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
)

// errNone ends a search for suggestions early.
var errNone = errors.New("none")

// suggestSize offers the nearest number of machines that works, which the search for the
// reasons has found.
func (g *suggester) suggestSize() {
	if g.unsat.Sizes == nil {
		return
	}
	n := min(max(g.ask.in.Machines, g.unsat.Sizes.Min), g.unsat.Sizes.Max)
	g.found = append(g.found, way(g.ask, []part{machines(n)}))
}

// suggestAdditions offers the services that others require, with what these require.
func (g *suggester) suggestAdditions() {
	want := g.ask.targetInput()
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

// closure returns the service and those to add so that nothing required is missing.
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
	return ByPreference(out, []string{name})
}

// unusable are parts that take out what is unknown or not allowed.
func (g *suggester) unusable() []part {
	want := g.ask.targetInput()
	allowed := setOf(want.Template.Compatibility.Services)
	var out []part
	for _, s := range want.Services {
		if _, known := want.Catalog[s]; !known || len(allowed) > 0 && !allowed[s] {
			out = append(out, removing(g.ask, s))
		}
	}
	return out
}

// suggestTypes offers other types for the whole cluster where one was chosen; both at once
// only if neither alone helps.
func (g *suggester) suggestTypes() {
	hardware, image := g.otherHardware(), g.otherImages()
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

// suggestProviders offers other providers where the one chosen has no machines to offer.
func (g *suggester) suggestProviders() {
	if !slices.ContainsFunc(g.unsat.Reasons, func(r loom.Reason) bool { return strings.HasPrefix(r.ID, "provider.") }) {
		return
	}
	was := g.ask.in.Provider
	for _, name := range g.ask.in.Providers {
		if name != was && len(g.found) < 3 {
			g.try([]part{{kind: providerPart, name: name, was: was}})
		}
	}
}

func (g *suggester) otherTypes() []part { return slices.Concat(g.otherHardware(), g.otherImages()) }

// otherHardware are the hardware types to choose in place of the one chosen.
func (g *suggester) otherHardware() []part {
	was := g.ask.in.HardwareType
	if was == "" {
		return nil
	}
	in := g.ask.in
	in.HardwareType = ""
	names, _ := in.checkHardware()
	var out []part
	for _, name := range names {
		if name != was {
			out = append(out, choosing(name, was, true))
		}
	}
	return out
}

// otherImages are the image types to choose in place of the one chosen.
func (g *suggester) otherImages() []part {
	was := g.ask.in.ImageType
	if was == "" {
		return nil
	}
	in := g.ask.in
	in.ImageType = ""
	names, _ := in.checkImages()
	var out []part
	for _, name := range names {
		if name != was {
			out = append(out, choosing(name, was, false))
		}
	}
	return out
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

// suggestRemovals offers to leave out what the reasons name: all that cannot be used at
// once, else one service at a time, each with what requires it.
func (g *suggester) suggestRemovals() {
	unusable := g.unusable()
	if len(unusable) > 0 {
		g.remove(unusable, "")
	}
	want := g.ask.targetInput()
	var named []string
	for _, m := range want.missing() {
		named = append(named, m.service)
	}
	for _, c := range want.clashes(maxClashes) {
		named = append(named, c.service, c.other)
	}
	for _, r := range g.unsat.Reasons {
		named = append(named, want.namedBy(r.ID)...)
	}
	if g.ask.onCluster() {
		// What was to be added goes first; the rest is there already.
		slices.SortStableFunc(named, func(a, b string) int {
			return boolInt(slices.Contains(g.ask.add, b)) - boolInt(slices.Contains(g.ask.add, a))
		})
	}
	done := map[string]bool{}
	for _, s := range named {
		if !done[s] && len(done) < 20 && !g.full() {
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
	want := g.ask.targetInput()
	was := map[need]bool{}
	for _, m := range want.missing() {
		was[m] = true
	}
	gone := map[string]bool{}
	for _, p := range parts {
		gone[p.service] = true
	}
	if service != "" {
		gone[service] = true
	}
	in := want
	for again := true; again && !g.over(); {
		in.Services = slices.DeleteFunc(slices.Clone(want.Services), func(s string) bool { return gone[s] })
		again = false
		for _, m := range in.missing() {
			if !was[m] {
				gone[m.service], again = true, true
			}
		}
	}
	parts = nil
	for _, s := range sortedKeys(gone) {
		parts = append(parts, removing(g.ask, s))
	}
	g.try(parts)
}

// suggestCompanions offers services to go with those asked for: what the template has by
// default or knows, one after the other, and all of its defaults.
func (g *suggester) suggestCompanions() {
	in := g.ask.in
	names := slices.Concat(in.Template.Defaults.Services, in.Template.Compatibility.Services, sortedKeys(in.Template.Constraints.Services))
	if len(in.Template.Compatibility.Services) == 0 {
		names = slices.Concat(names, sortedKeys(in.Catalog))
	}
	unusable := g.unusable()
	done, tries := map[string]bool{}, 0
	for _, name := range names {
		_, known := in.Catalog[name]
		if done[name] || !known || slices.Contains(in.Services, name) || tries >= 40 || len(g.found) >= 3 || g.over() {
			continue
		}
		done[name] = true
		tries++
		if added, err := in.closure(name); err == nil {
			g.tryCompanions(added, unusable)
		}
	}
	if len(g.found) == 0 {
		g.tryCompanions(slices.DeleteFunc(slices.Clone(in.Template.Defaults.Services), func(s string) bool { return slices.Contains(in.Services, s) }), unusable)
	}
}

func (g *suggester) tryCompanions(names []string, more []part) {
	var parts []part
	for _, name := range names {
		parts = append(parts, adding(name, ""))
	}
	g.try(append(parts, more...))
}

// suggestCorrections undoes what makes no sense for the cluster: adding what is there,
// removing what is not, emptying nodes.
func (g *suggester) suggestCorrections() {
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

// namedBy returns the services that a reason's id speaks of.
func (in Input) namedBy(id string) []string {
	out := ServicesOf(in.Template, id)
	return slices.DeleteFunc(out, func(s string) bool { return !slices.Contains(in.Services, s) })
}

// ServicesOf returns the services that the rule of a reason's id speaks of, sorted.
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
