package solver

import (
	"context"
	"fmt"
	"slices"

	"loom/app/loom"
)

// refuses marks a service whose nodes stay when a cluster shrinks.
const refuses = "refuse"

// Shrink takes machines away down to the given total. Of all sets of nodes whose
// removal leaves a valid layout it takes the one that holds as many nodes as can be
// of the layout which comes last in preference, then of the one before, and so on,
// with the highest numbers first. Outcome.Leaving are their ids, the last first.
// Every service keeps its minimum of nodes, 1 unless that is an explicit 0 (Input.problem).
// Unsat.Sizes are the totals below the present one that work, where they are a
// range: it is nil too when there are gaps; SuggestShrink gives the nearest.
func Shrink(ctx context.Context, c Cluster, total int) (Outcome, *loom.Unsat, error) {
	if total >= len(c.Nodes) || total < 1 {
		return Outcome{}, nil, loom.NewError(loom.Invalid, "The cluster has %s; shrink it to fewer, to 1 at least.", count(len(c.Nodes), "node"))
	}
	// What the checks of the whole cluster find may go with the nodes that go.
	p, nodes, _ := c.problem(nil, nil, total)
	p, at := columns(p, nodes)
	t := newNodeRemover(ctx, p, c.shrinkRules())
	reasons := sizeReasons(total, p.Size)
	ok := len(reasons) == 0 && t.solve(int64(len(nodes)-total))
	if t.s.err != nil {
		return Outcome{}, nil, t.s.err
	}
	if !ok {
		var unsat *loom.Unsat
		var err error
		if len(reasons) > 0 {
			unsat = &loom.Unsat{Code: CodeSize, Headline: checkHeadline(reasons), Reasons: reasons}
		} else if unsat, err = cannotShrink(ctx, p, c.shrinkRules(), total); err != nil {
			return Outcome{}, nil, err
		}
		if unsat.Sizes, err = t.totals(p.Size); err != nil {
			return Outcome{}, nil, err
		}
		return Outcome{}, unsat, nil
	}
	var leaving, why []string
	for i := len(at) - 1; i >= 0; i-- {
		list := slices.Clone(at[i])
		slices.Reverse(list)
		for _, n := range list[:t.gone[i]] {
			leaving = append(leaving, nodes[n].ID)
		}
		if n := int(t.gone[i]); n > 0 {
			why = append(why, fmt.Sprintf("Chosen: %d of the %s with %s on %s and %s: the newest of the layout that the template prefers least.",
				n, count(p.Nodes[i].Count, "node"), list2(p.Nodes[i].Services), p.Nodes[i].HardwareType, p.Nodes[i].ImageType))
		}
	}
	out, unsat, err := ShrinkNodes(ctx, c, leaving)
	out.Why = why
	return out, unsat, err
}

func list2(names []string) string {
	if len(names) > 5 {
		names = append(slices.Clone(names[:4]), fmt.Sprintf("%d more", len(names)-4))
	}
	return list(names)
}

// ShrinkNodes takes exactly these nodes away and checks what is left.
func ShrinkNodes(ctx context.Context, c Cluster, ids []string) (Outcome, *loom.Unsat, error) {
	c, unsat := c.without(ids)
	if unsat != nil {
		return Outcome{}, unsat, nil
	}
	out, unsat, err := Check(ctx, c)
	if unsat == nil && err == nil {
		out.Leaving = slices.Clone(ids)
	}
	return out, unsat, err
}

// without is the cluster without some nodes, not checked as a whole.
func (c Cluster) without(ids []string) (Cluster, *loom.Unsat) {
	var left []Node
	leaving := sortedSet(ids)
	for _, id := range leaving {
		if !slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.ID == id }) {
			return c, refusal(CodeUnknownID, "node("+id+")", fmt.Sprintf("The cluster has no node %s.", id))
		}
	}
	stays := c.refusing()
	var reasons []loom.Reason
	for _, n := range c.Nodes {
		if _, goes := slices.BinarySearch(leaving, n.ID); !goes {
			left = append(left, n)
			continue
		}
		for _, s := range n.Services {
			if slices.Contains(stays, s) {
				reasons = append(reasons, loom.Reason{Code: CodeUnsat, ID: "shrink(" + s + ")",
					Message: fmt.Sprintf("Node %s has %s, which does not let its nodes go (service %s, shrink).", n.ID, s, s)})
			}
		}
	}
	p, _, _ := c.problem(nil, nil, len(left))
	if len(left) == 0 {
		reasons = append(reasons, loom.Reason{Code: CodeSize, ID: "size.min", Message: "No node would be left; delete the cluster instead."})
	} else {
		reasons = append(sizeReasons(len(left), p.Size), reasons...)
	}
	if len(reasons) == 0 {
		reasons = tooFewNodes(p, left)
	}
	if len(reasons) > 0 {
		return c, &loom.Unsat{Code: reasons[0].Code, Headline: "These nodes cannot be taken away.", Reasons: reasons}
	}
	c.Nodes = left
	return c, nil
}

// tooFewNodes names services that would be on too few nodes.
func tooFewNodes(p Problem, left []Node) []loom.Reason {
	var out []loom.Reason
	for _, s := range p.Services {
		n := 0
		for _, node := range left {
			if slices.Contains(node.Services, s.Name) {
				n++
			}
		}
		if n < s.Min {
			out = append(out, loom.Reason{Code: CodeUnsat, ID: "quantity(" + s.Name + ").min",
				Message: fmt.Sprintf("%s would be on %s and must be on at least %d.", s.Name, count(n, "node"), s.Min)})
		}
	}
	return out
}

// refusing lists the services whose nodes stay.
func (c Cluster) refusing() []string {
	return slices.DeleteFunc(c.services(), func(s string) bool { return c.Input.Catalog[s].Shrink != refuses })
}

// cannotShrink returns a minimal set of rules under which too few nodes can go. That
// each service stays on one node at least is no rule but the question.
func cannotShrink(ctx context.Context, p Problem, all []shrinkRule, total int) (*loom.Unsat, error) {
	less := int64(-total)
	for _, col := range p.Nodes {
		less += int64(col.Count)
	}
	c := conflict{ctx: ctx, p: p, left: explainSteps}
	c.test = func(q Problem) (bool, int, error) {
		t := newNodeRemover(ctx, q, all)
		t.s.limit = questionSteps
		ok := t.solve(less)
		return ok, t.s.steps, t.s.err
	}
	u := &loom.Unsat{Code: CodeUnsat, Headline: fmt.Sprintf("The cluster cannot shrink to %s.", count(total, "node"))}
	// Without any bond first, which is the usual case; then one after the other.
	held := all
	if all = nil; len(held) > 0 && !c.clashes(rules(p)) {
		all = held
	}
	for i := 0; i < len(all); i++ {
		held = all
		if all = slices.Delete(slices.Clone(all), i, i+1); c.clashes(rules(p)) {
			i--
		} else {
			all = held
		}
	}
	for _, b := range all {
		u.Reasons = append(u.Reasons, b.reason)
	}
	w := words{p: p}
	for _, r := range c.smallest(rules(p), nil) {
		u.Reasons = append(u.Reasons, w.reason(r))
	}
	if len(u.Reasons) == 0 {
		u.Reasons = append(u.Reasons, loom.Reason{Code: CodeUnsat, ID: "services",
			Message: "Each service of the cluster stays on one node at least, and each node has a service; remove services first."})
	}
	u.Code = u.Reasons[0].Code
	return u, c.err
}
