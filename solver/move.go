package solver

import (
	"context"
	"slices"

	"loom/app/loom"
)

// move is a change of a cluster's machines that was refused, for suggestions: one
// of the four below; noMove for a change of services.
type move struct {
	kind     moveKind
	total    int      // of expandMove and shrinkMove
	ids      []string // of nodesMove, sorted
	hardware string   // of resizeMove
	services []string // whose nodes a resizeMove is for; none for all
	other    bool     // that is not as it was asked for
}

type moveKind int

const (
	noMove moveKind = iota
	expandMove
	shrinkMove
	nodesMove
	resizeMove
)

func (m move) verb() string {
	switch m.kind {
	case expandMove:
		return "expand to"
	case shrinkMove:
		return "shrink to"
	}
	return "use"
}

// machines is the number of machines that there would be on an existing cluster.
func (a *request) machines() int {
	switch a.move.kind {
	case expandMove, shrinkMove:
		return a.move.total
	case nodesMove:
		return len(slices.DeleteFunc(slices.Clone(a.nodes), a.keeps))
	}
	return len(a.nodes)
}

// keeps reports that a nodesMove takes the node.
func (a *request) keeps(n Node) bool {
	_, ok := slices.BinarySearch(a.move.ids, n.ID)
	return ok
}

// asInput is the input with the types that the move makes machines of; it reports
// false when it makes none.
func (a *request) asInput() (Input, bool) {
	in := a.in
	if a.move.kind == resizeMove {
		in.HardwareType = a.move.hardware
	}
	return in, !a.onCluster() || a.move.kind == expandMove || a.move.kind == resizeMove
}

// solvesMove reports that the move is possible. Too long a search counts as no.
func (a *request) solvesMove(ctx context.Context, left *int) bool {
	switch c := a.cluster(); a.move.kind {
	case expandMove:
		return a.expands(ctx, c, left)
	case shrinkMove:
		p, nodes, _ := c.problem(nil, nil, a.move.total)
		less := len(nodes) - a.move.total
		if less < 1 || a.move.total < 1 || len(sizeReasons(a.move.total, p.Size)) > 0 {
			return false
		}
		p, _ = columns(p, nodes)
		t := newNodeRemover(ctx, p, c.shrinkRules())
		t.s.limit = max(min(suggestSteps, *left), 1)
		defer func() { *left -= t.s.steps }()
		return t.solve(int64(less)) && t.s.err == nil
	case nodesMove:
		after, unsat := c.without(a.move.ids)
		return len(a.move.ids) > 0 && unsat == nil && after.holds()
	default:
		after, unsat := c.resized(a.move.hardware, a.move.services)
		changed := unsat == nil && !slices.EqualFunc(after.Nodes, c.Nodes, func(n, was Node) bool { return n.HardwareType == was.HardwareType })
		return unsat == nil && (changed || !a.move.other) && after.holds()
	}
}

func (a *request) expands(ctx context.Context, c Cluster, left *int) bool {
	p, nodes, unsat := c.problem(nil, nil, a.move.total)
	if unsat != nil || a.move.total <= len(nodes) {
		return false
	}
	p, _ = columns(p, nodes)
	g, err := newGrowth(ctx, p)
	if err != nil {
		return false
	}
	g.rest.limit = max(min(suggestSteps, *left), 1)
	defer func() { *left -= g.rest.steps }()
	low, high := g.span()
	if g.err != nil || int64(a.move.total) < low || int64(a.move.total) > high {
		return false
	}
	for _, l := range g.rest.walk(int64(a.move.total - len(nodes))) {
		for range l.Count {
			nodes = append(nodes, Node{NodeLayout: l.NodeLayout})
		}
	}
	c.Nodes = nodes
	return g.rest.err == nil && c.holds()
}

// holds reports that the cluster is valid as it is.
func (c Cluster) holds() bool {
	p, nodes, unsat := c.problem(nil, nil, len(c.Nodes))
	if unsat != nil {
		return false
	}
	p, _ = columns(p, nodes)
	st, err := newClusterModel(p, false)
	return err == nil && !st.broken
}

// between returns the totals next to the one asked for to which the cluster can
// shrink, nearest first; none on a side where there is none.
func (a *request) between(ctx context.Context, left *int) []int {
	c := a.cluster()
	p, nodes, _ := c.problem(nil, nil, a.move.total)
	p, _ = columns(p, nodes)
	t := newNodeRemover(ctx, p, c.shrinkRules())
	t.s.limit = max(min(suggestSteps, *left), 1)
	defer func() { *left -= t.s.steps }()
	have, less := int64(len(nodes)), int64(len(nodes)-a.move.total)
	least, most := max(have-int64(p.Size.Max), 1), have-int64(max(p.Size.Min, 1))
	var out []int
	if n, ok := t.greatest(least, min(less-1, most)); ok {
		out = append(out, int(have-n))
	}
	if n, ok := t.least(max(less+1, least), most); ok {
		out = append(out, int(have-n))
	}
	slices.SortStableFunc(out, func(x, y int) int { return distance(x, a.move.total) - distance(y, a.move.total) })
	return out
}

func distance(a, b int) int { return max(a-b, b-a) }

// instead gives nodes to take away in place of those named: as many, named ones
// first, and the most of the named ones that can go. Each is nil when there is none.
func (a *request) instead(ctx context.Context, left *int) (others, fewer []string) {
	c := a.cluster()
	p, _, _ := c.problem(nil, nil, a.machines())
	first := slices.DeleteFunc(slices.Clone(c.Nodes), a.keeps)
	last := slices.DeleteFunc(slices.Clone(c.Nodes), func(n Node) bool { return !a.keeps(n) })
	p, at := columns(p, first)
	fixed := len(at)
	p, more := columns(p, last) // the last columns are taken first
	at = append(at, more...)
	pick := func(less int64, only bool) []string {
		t := newNodeRemover(ctx, p, c.shrinkRules())
		t.s.limit = max(min(suggestSteps, *left), 1)
		defer func() { *left -= t.s.steps }()
		most := min(int64(len(c.Nodes)-max(p.Size.Min, 1)), less)
		least := max(less, int64(len(c.Nodes)-p.Size.Max))
		if only {
			clear(t.counts[:fixed])
			least = max(1, int64(len(c.Nodes)-p.Size.Max))
		}
		n, ok := t.greatest(least, most)
		if !ok || !t.solve(n) || t.s.err != nil {
			return nil
		}
		var ids []string
		for i := len(at) - 1; i >= 0; i-- {
			from := first
			if i >= fixed {
				from = last
			}
			for k := range t.gone[i] {
				ids = append(ids, from[at[i][len(at[i])-1-int(k)]].ID)
			}
		}
		return sortedSet(ids)
	}
	return pick(int64(len(a.move.ids)), false), pick(int64(len(last)), true)
}

// leastConstrained are those of the services whose nodes can have the hardware type together:
// with any other of them they could not.
func (g *suggester) leastConstrained(from []string) []string {
	var keep []string
	for again := true; again; {
		again = false
		for _, s := range from {
			with := sortedSet(append(slices.Clone(keep), s))
			if !slices.Contains(keep, s) && g.helps([]part{resizing(with)}) {
				keep, again = with, true
			}
		}
	}
	return keep
}

// releases are changes of catalog entries that let nodes go which do not, or let
// services go that others require.
func (g *suggester) releases() []part {
	if g.ask.move.kind != shrinkMove && g.ask.move.kind != nodesMove {
		return nil
	}
	c, in := g.ask.cluster(), g.ask.targetInput()
	var out []part
	for _, name := range c.refusing() {
		out = append(out, part{kind: entryPart, words: "let nodes of service " + name + " go (shrink)",
			merge: map[string]any{"services": map[string]any{name: map[string]any{"shrink": "allow"}}},
			entry: func(in *Input) { in.Catalog = changed(in.Catalog, name, func(s *loom.Service) { s.Shrink = "allow" }) }})
	}
	for _, b := range c.shrinkRules() {
		if b.kind == needsOther && len(b.others) > 0 {
			d := in.Catalog[b.service].Dependencies
			for _, name := range sortedSet(slices.Concat(d.Install.Requires, d.Runtime.Requires)) {
				if b.reason.ID == "requires("+b.service+","+name+")" {
					out = append(out, withoutDependency(in, b.service, name, "requires"))
				}
			}
		}
	}
	return out
}
