package solver

import (
	"context"
	"slices"

	"loom/app/loom"
)

// Way is a suggestion for a change of a cluster's machines. Of loom.Suggestion,
// Machines is the total to ask for and HardwareType the type: that of new machines
// of an expansion, or the one to resize to.
type Way struct {
	loom.Suggestion
	// Nodes are the ids to take away in place of those named.
	Nodes []string `json:"nodes,omitempty"`
	// Services are the ones to name in the resize.
	Services []string `json:"services,omitempty"`
}

// SuggestExpand finds ways out of a "no" of Expand, in the manner of Suggest: the
// nearest total that works, other types for new machines where one was chosen;
// where neither helps, changes of the template and at last of catalog entries.
// There is none where the cluster holds a service that the catalog does not know,
// or a node without services.
func SuggestExpand(ctx context.Context, c Cluster, total int, unsat *loom.Unsat) []Way {
	g := newMoveSuggester(ctx, c, move{kind: expandMove, total: total}, unsat)
	if unsat == nil {
		return nil
	}
	if r := unsat.Sizes; r != nil {
		g.try([]part{machines(min(max(total, r.Min), r.Max))})
	}
	g.suggestTypes()
	g.suggestChanges()
	return g.found
}

// SuggestShrink does so for Shrink: the nearest totals below and above that work.
func SuggestShrink(ctx context.Context, c Cluster, total int, unsat *loom.Unsat) []Way {
	g := newMoveSuggester(ctx, c, move{kind: shrinkMove, total: total}, unsat)
	if unsat == nil {
		return nil
	}
	for _, n := range g.ask.between(ctx, &g.left) {
		g.try([]part{machines(n)})
	}
	g.suggestChanges()
	return g.found
}

// SuggestShrinkNodes does so for ShrinkNodes: as many nodes, named ones first, and
// the most of the named ones that can go.
func SuggestShrinkNodes(ctx context.Context, c Cluster, ids []string, unsat *loom.Unsat) []Way {
	g := newMoveSuggester(ctx, c, move{kind: nodesMove, ids: sortedSet(ids)}, unsat)
	if unsat == nil {
		return nil
	}
	others, fewer := g.ask.instead(ctx, &g.left)
	for _, nodes := range [][]string{fewer, others} {
		if len(nodes) > 0 {
			g.try([]part{taking(nodes)})
		}
	}
	g.suggestChanges()
	return g.found
}

// SuggestResize does so for Resize: other hardware types, then the most of the
// services whose nodes can have the type. There is none where the type is unknown
// and no other can be used.
func SuggestResize(ctx context.Context, c Cluster, hardware string, services []string, unsat *loom.Unsat) []Way {
	g := newMoveSuggester(ctx, c, move{kind: resizeMove, hardware: hardware, services: sortedSet(services)}, unsat)
	if unsat == nil {
		return nil
	}
	for _, other := range g.resizeTypes() {
		if len(g.found) < 3 {
			g.try([]part{other})
		}
	}
	present := c.services()
	asked := slices.DeleteFunc(slices.Clone(present), func(s string) bool { return len(services) > 0 && !slices.Contains(services, s) })
	if keep := g.leastConstrained(asked); len(keep) > 0 {
		g.try([]part{resizing(keep)})
	}
	for _, s := range present {
		if len(asked) == 0 {
			g.try([]part{resizing([]string{s})})
		}
	}
	g.suggestChanges()
	return g.found
}

func newMoveSuggester(ctx context.Context, c Cluster, m move, unsat *loom.Unsat) suggester {
	in := c.Input
	in.Provider = firstSet(in.Provider, in.Template.Defaults.Provider)
	return suggester{ctx: ctx, ask: request{in: in, nodes: c.Nodes, move: m}, unsat: unsat, left: allSuggestSteps}
}

// resizeTypes are the hardware types to resize to in place of the one asked for.
func (g *suggester) resizeTypes() []part {
	in := g.ask.in
	in.HardwareType = ""
	names, _ := in.checkHardware()
	var out []part
	for _, name := range names {
		differs := func(n Node) bool { return n.HardwareType != name }
		if was := g.ask.move.hardware; name != was && slices.ContainsFunc(g.ask.nodes, differs) {
			out = append(out, choosing(name, was, true))
		}
	}
	return out
}

// suggestChanges are those of the template and of the catalog, where nothing else helps.
func (g *suggester) suggestChanges() {
	for _, more := range []func() []part{
		func() []part { return nil }, g.corrected,
		func() []part { return append(g.entries(), g.releases()...) },
		func() []part { return slices.Concat(g.corrected(), g.entries(), g.releases()) },
	} {
		if len(g.found) == 0 {
			g.suggestRelaxations(more())
		}
	}
}

// corrected is the move without what makes no sense for the cluster: types that
// cannot be used, nodes and services that are not there.
func (g *suggester) corrected() []part {
	c, m := g.ask.cluster(), g.ask.move
	switch m.kind {
	case expandMove:
		return g.usableTypes()
	case nodesMove:
		var known []string
		for _, n := range c.Nodes {
			if g.ask.keeps(n) {
				known = append(known, n.ID)
			}
		}
		switch {
		case len(known) == len(c.Nodes):
			known = known[1:]
		case len(known) == 0:
			known = []string{c.Nodes[len(c.Nodes)-1].ID}
		}
		if known = sortedSet(known); len(known) > 0 && !slices.Equal(known, m.ids) {
			return []part{taking(known)}
		}
	case resizeMove:
		var parts []part
		made, _ := g.ask.asInput()
		if _, reasons := made.checkHardware(); len(reasons) > 0 {
			parts = firstPart(g.resizeTypes())
		}
		if present := c.services(); len(m.services) > 0 && !slices.ContainsFunc(m.services, func(s string) bool { return slices.Contains(present, s) }) {
			parts = append(parts, resizing(present))
		}
		return parts
	}
	return nil
}
