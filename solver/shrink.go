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
// Every service that is there stays on a node, unless its minimum is an explicit 0.
// Unsat.Sizes is not set: totals that work need not be a range.
func Shrink(ctx context.Context, c Cluster, total int) (Outcome, *loom.Unsat, error) {
	if total >= len(c.Nodes) || total < 1 {
		return Outcome{}, nil, loom.NewError(loom.Invalid, "The cluster has %s; shrink it to fewer, to 1 at least.", count(len(c.Nodes), "machine"))
	}
	p, nodes, unsat := c.problem(nil, nil, total)
	if unsat != nil {
		return Outcome{}, unsat, nil
	}
	p, at := columns(p, nodes)
	stays := c.refusing()
	t := newTaker(ctx, p, stays)
	ok := t.solve(int64(len(nodes) - total))
	if t.s.err != nil {
		return Outcome{}, nil, t.s.err
	}
	if !ok {
		unsat, err := cannotShrink(ctx, p, stays, total)
		return Outcome{}, unsat, err
	}
	var leaving, why []string
	for i := len(at) - 1; i >= 0; i-- {
		list := slices.Clone(at[i])
		slices.Reverse(list)
		for _, n := range list[:t.gone[i]] {
			leaving = append(leaving, nodes[n].ID)
		}
		if n := int(t.gone[i]); n > 0 {
			why = append(why, fmt.Sprintf("%s of %d with %s on %s and %s: the last layout in order of preference that can go.",
				capital(count(n, "node")), p.Nodes[i].Count, list2(p.Nodes[i].Services), p.Nodes[i].HardwareType, p.Nodes[i].ImageType))
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
	var left []Node
	leaving := sortedSet(ids)
	for _, id := range leaving {
		if !slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.ID == id }) {
			return Outcome{}, refusal(CodeUnknownID, "node("+id+")", fmt.Sprintf("The cluster has no node %s.", id)), nil
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
	if len(left) == 0 {
		reasons = append(reasons, loom.Reason{Code: CodeSize, ID: "size.min", Message: "No machine would be left; delete the cluster instead."})
	}
	p, _, unsat := c.problem(nil, nil, len(left))
	if unsat != nil {
		reasons = append(unsat.Reasons, reasons...)
	}
	if len(reasons) > 0 {
		return Outcome{}, &loom.Unsat{Code: reasons[0].Code, Headline: "These nodes cannot be taken away.", Reasons: reasons}, nil
	}
	if broken := lost(p, left); len(broken) > 0 {
		return Outcome{}, &loom.Unsat{Code: CodeUnsat, Headline: "These nodes cannot be taken away.", Reasons: broken}, nil
	}
	c.Nodes = left
	out, unsat, err := Check(ctx, c)
	if unsat == nil && err == nil {
		out.Leaving = slices.Clone(ids)
	}
	return out, unsat, err
}

// lost names services that would be on too few nodes.
func lost(p Problem, left []Node) []loom.Reason {
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

// taker chooses how many nodes of each column go, the last column first.
type taker struct {
	s      *search
	counts []int64 // that may go at most
	gone   []int64
	rules  []takeRule
	dead   map[string]bool
}

// takeRule bounds how many nodes with a service may, and must, go.
type takeRule struct {
	on        []bool // per column
	low, high int64
}

func newTaker(ctx context.Context, p Problem, stays []string) *taker {
	t := &taker{s: &search{ctx: ctx}, counts: make([]int64, len(p.Nodes)), gone: make([]int64, len(p.Nodes)), dead: map[string]bool{}}
	t.s.check()
	for i, col := range p.Nodes {
		n := int64(col.Count)
		if !slices.ContainsFunc(col.Services, func(s string) bool { return slices.Contains(stays, s) }) {
			t.counts[i] = n
		}
		// Nodes that break a rule by themselves all have to go.
		q := p
		q.Nodes = []Column{col}
		if st, err := stand(q, true); err != nil || st.kindBreaks {
			r := takeRule{on: make([]bool, len(p.Nodes)), low: n, high: n}
			r.on[i] = true
			t.rules = append(t.rules, r)
		}
	}
	for _, s := range p.Services {
		t.limit(p, s)
	}
	return t
}

func (t *taker) solve(less int64) bool { return t.take(len(t.counts)-1, less) }

// limit adds the rule of a service.
func (t *taker) limit(p Problem, s Service) {
	r := takeRule{on: make([]bool, len(p.Nodes))}
	var have, free int64
	for i, col := range p.Nodes {
		if slices.Contains(col.Services, s.Name) {
			r.on[i] = true
			have += int64(col.Count)
			free += t.counts[i]
		}
	}
	r.high = have - int64(s.Min)
	if s.Max < loom.Unlimited {
		r.low = max(have-int64(s.Max), 0)
	}
	if r.low == 0 && r.high >= free {
		return // nothing to watch
	}
	t.rules = append(t.rules, r)
}

// take decides column i and those before it; left nodes have to go yet.
func (t *taker) take(i int, left int64) bool {
	if t.s.tick() {
		return false
	}
	if i < 0 {
		return left == 0 && !slices.ContainsFunc(t.rules, func(r takeRule) bool { return r.low > 0 })
	}
	var room int64
	for j := 0; j <= i; j++ {
		room += t.most(j)
	}
	if room < left {
		return false
	}
	key := fmt.Sprint(i, left)
	for _, r := range t.rules {
		if r.high < 0 {
			return false
		}
		var here int64
		for j := 0; j <= i; j++ {
			if r.on[j] {
				here += t.counts[j]
			}
		}
		if here < r.low {
			return false
		}
		// What cannot matter any more does not tell states apart.
		key += fmt.Sprint(" ", min(r.high, here), max(r.low, 0))
	}
	if t.dead[key] {
		return false
	}
	for n := min(left, t.most(i)); n >= 0; n-- {
		t.use(i, n)
		if t.take(i-1, left-n) {
			t.gone[i] = n
			t.use(i, -n)
			return true
		}
		t.use(i, -n)
		if t.s.err != nil {
			return false
		}
	}
	t.dead[key] = true
	return false
}

// most is how many nodes of the column the rules let go.
func (t *taker) most(i int) int64 {
	n := t.counts[i]
	for _, r := range t.rules {
		if r.on[i] {
			n = min(n, r.high)
		}
	}
	return max(n, 0)
}

func (t *taker) use(i int, n int64) {
	for k := range t.rules {
		if r := &t.rules[k]; r.on[i] {
			r.high -= n
			r.low -= n
		}
	}
}

// cannotShrink gives a minimal set of rules under which too few nodes can go. That
// each service stays on one node at least is no rule but the question.
func cannotShrink(ctx context.Context, p Problem, stays []string, total int) (*loom.Unsat, error) {
	less := int64(-total)
	for _, col := range p.Nodes {
		less += int64(col.Count)
	}
	c := conflict{ctx: ctx, p: p, left: explainSteps}
	c.test = func(q Problem) (bool, int, error) {
		t := newTaker(ctx, q, stays)
		t.s.limit = questionSteps
		ok := t.solve(less)
		return ok, t.s.steps, t.s.err
	}
	held := stays
	if stays = nil; len(held) > 0 && !c.clashes(rules(p)) {
		stays = held
	}
	u := &loom.Unsat{Code: CodeUnsat, Headline: fmt.Sprintf("The cluster cannot shrink to %s.", count(total, "machine"))}
	for _, s := range stays {
		u.Reasons = append(u.Reasons, loom.Reason{Code: CodeUnsat, ID: "shrink(" + s + ")",
			Message: fmt.Sprintf("%s does not let its nodes go (service %s, shrink).", s, s)})
	}
	w := words{p: p}
	for _, r := range c.smallest(rules(p), nil) {
		u.Reasons = append(u.Reasons, w.reason(r))
	}
	if len(u.Reasons) == 0 {
		u.Reasons = append(u.Reasons, loom.Reason{Code: CodeUnsat, ID: "services",
			Message: "Each service of the cluster stays on one node at least; remove services first."})
	}
	return u, c.err
}
