package solver

import (
	"context"
	"errors"
	"slices"

	"loom/app/loom"
)

// ruleKind is a sort of constraint that a reason can name. Their order is the
// order of reasons.
type ruleKind int

const (
	mustRule ruleKind = iota
	cantRule
	hardwareRule
	imageRule
	minRule
	maxRule
	// Only nodes that exist can break these two.
	compatHardwareRule
	compatImageRule
)

// rule is one constraint that can be dropped: at is its index in Problem.Must,
// Cant or Services.
type rule struct {
	kind ruleKind
	at   int
}

// rules lists the constraints of a problem in the order of reasons. That a
// requested service is on one node at least is not among them, nor are the types:
// they are the question, not a constraint.
func rules(p Problem) []rule {
	var out []rule
	for i := range p.Must {
		out = append(out, rule{mustRule, i})
	}
	for i := range p.Cant {
		out = append(out, rule{cantRule, i})
	}
	for _, kind := range []ruleKind{hardwareRule, imageRule, minRule, maxRule} {
		for i, s := range p.Services {
			if kind == hardwareRule && len(s.HardwareTypes) > 0 || kind == imageRule && len(s.ImageTypes) > 0 ||
				kind == minRule && s.Min > 1 || kind == maxRule && s.Max < loom.Unlimited {
				out = append(out, rule{kind, i})
			}
		}
	}
	if len(p.Nodes) > 0 && len(p.OnlyHardware) > 0 {
		out = append(out, rule{compatHardwareRule, 0})
	}
	if len(p.Nodes) > 0 && len(p.OnlyImages) > 0 {
		out = append(out, rule{compatImageRule, 0})
	}
	return out
}

// restrictTo is the problem with no other constraints than the given ones.
func (p Problem) restrictTo(keep []rule) Problem {
	q := p
	q.OnlyHardware, q.OnlyImages = nil, nil
	q.Must, q.Cant, q.Services = nil, nil, make([]Service, len(p.Services))
	for i, s := range p.Services {
		q.Services[i] = Service{Name: s.Name, Min: min(s.Min, 1), Max: loom.Unlimited}
	}
	keep = slices.Clone(keep)
	slices.SortFunc(keep, compareRules)
	for _, r := range keep {
		switch r.kind {
		case mustRule:
			q.Must = append(q.Must, p.Must[r.at])
		case cantRule:
			q.Cant = append(q.Cant, p.Cant[r.at])
		case hardwareRule:
			q.Services[r.at].HardwareTypes = p.Services[r.at].HardwareTypes
		case imageRule:
			q.Services[r.at].ImageTypes = p.Services[r.at].ImageTypes
		case minRule:
			q.Services[r.at].Min = p.Services[r.at].Min
		case maxRule:
			q.Services[r.at].Max = p.Services[r.at].Max
		case compatHardwareRule:
			q.OnlyHardware = p.OnlyHardware
		case compatImageRule:
			q.OnlyImages = p.OnlyImages
		}
	}
	return q
}

func compareRules(a, b rule) int {
	if a.kind != b.kind {
		return int(a.kind - b.kind)
	}
	return a.at - b.at
}

// conflict looks for a minimal set of rules without layout.
type conflict struct {
	ctx context.Context
	p   Problem
	// machines counts the wanted number among the constraints.
	machines bool
	// grows says that machines are to be added to those that exist.
	grows bool
	// test, when set, answers for problems with machines: solvable, and the steps.
	test func(Problem) (bool, int, error)
	// left bounds the work, counted in steps so that it is the same everywhere.
	left int
	err  error
}

// An explanation may take this many steps in all, and per question: far more than
// templates need. A question beyond that counts as "no clash", which keeps a rule
// that might not be needed; the clash stays one. So does the end of ctx.
const (
	explainSteps  = 2_000_000
	questionSteps = 20_000
)

// clashes reports that the rules alone leave no layout.
func (c *conflict) clashes(keep []rule) bool {
	if c.ctx.Err() != nil {
		c.left = 0 // as decided says
	}
	if c.err != nil || c.left <= 0 {
		return false
	}
	p := c.p.restrictTo(keep)
	if len(p.Nodes) > 0 {
		return c.clashesNodes(p)
	}
	m, err := reduce(p)
	if err != nil {
		c.err = err
		return false
	}
	s := newSearch(c.ctx, m)
	s.limit = questionSteps
	var ok bool
	if c.machines {
		ok = s.solvable(int64(c.p.Machines))
	} else {
		low, high := s.span()
		ok = low <= high
	}
	c.left -= s.steps + 20
	return c.decided(ok, s.err)
}

// decided turns the end of a search into an answer. That time is up ends the
// explanation, not the answer: what clashes is certain, that all of it is needed
// is not.
func (c *conflict) decided(ok bool, err error) bool {
	switch {
	case err == nil:
		return !ok
	case errors.Is(err, errLimit):
	case errors.Is(err, loom.Unavailable):
		c.left = 0
	default:
		c.err = err
	}
	return false
}

// minimal finds a minimal clash among the given rules, which clash, keeping the
// earlier ones where there is a choice (Junker's QuickXplain, AAAI 2004).
func (c *conflict) minimal(from []rule) []rule {
	if c.clashes(nil) {
		return nil
	}
	return c.split(nil, false, from)
}

func (c *conflict) split(base []rule, grown bool, from []rule) []rule {
	if c.err != nil || grown && c.clashes(base) {
		return nil
	}
	if len(from) == 1 {
		return from
	}
	half := len(from) / 2
	second := c.split(join(base, from[:half]), true, from[half:])
	first := c.split(join(base, second), len(second) > 0, from[:half])
	return join(first, second)
}

func join(a, b []rule) []rule { return append(a[:len(a):len(a)], b...) }

// Which kinds of rules an explanation prefers; each order is tried and the
// shortest result wins.
var preferences = [][]ruleKind{
	{cantRule, hardwareRule, imageRule, minRule, maxRule, mustRule, compatHardwareRule, compatImageRule},
	{mustRule, hardwareRule, imageRule, cantRule, minRule, maxRule, compatHardwareRule, compatImageRule},
	{compatHardwareRule, compatImageRule, maxRule, minRule, mustRule, cantRule, imageRule, hardwareRule},
}

// few is up to how many rules an explanation tries all orders.
const few = 120

// smallest tries several orders and returns the clash with the fewest rules; the
// first in the order of rules among equals. hint, when it clashes too, is a small
// part of all to look at first.
func (c *conflict) smallest(all, hint []rule) []rule {
	var best []rule
	found := false
	try := func(from []rule, kinds []ruleKind) {
		ordered := slices.Clone(from)
		slices.SortStableFunc(ordered, func(a, b rule) int {
			return slices.Index(kinds, a.kind) - slices.Index(kinds, b.kind)
		})
		result := c.minimal(ordered)
		slices.SortFunc(result, compareRules)
		if !found || len(result) < len(best) || len(result) == len(best) && slices.CompareFunc(result, best, compareRules) < 0 {
			best, found = result, true
		}
	}
	if len(hint) < len(all) && c.clashes(hint) {
		for _, kinds := range preferences {
			try(hint, kinds)
		}
	}
	if len(all) <= few {
		for _, kinds := range preferences {
			try(all, kinds)
		}
	} else if !found {
		try(c.fewerServices(all), preferences[0])
	}
	return best
}

// fewerServices drops all rules about a service at once where the rest clashes
// still: a quick first cut through many rules.
func (c *conflict) fewerServices(all []rule) []rule {
	for _, s := range c.p.Services {
		rest := slices.DeleteFunc(slices.Clone(all), func(r rule) bool {
			switch r.kind {
			case mustRule:
				return slices.Contains(c.p.Must[r.at].Services, s.Name)
			case cantRule:
				return slices.Contains(c.p.Cant[r.at].Services, s.Name)
			case compatHardwareRule, compatImageRule:
				return false
			default:
				return c.p.Services[r.at].Name == s.Name
			}
		})
		if len(rest) < len(all) && c.clashes(rest) {
			all = rest
		}
	}
	return all
}

// explain says why the problem has no layout; s is a search over all of it.
func explain(ctx context.Context, p Problem, s *search) (*loom.Unsat, error) {
	low, high := s.span()
	if s.err != nil {
		return nil, s.err
	}
	if p.Machines < p.Size.Min || p.Machines > p.Size.Max {
		return p.outOfSize(sizesWithin(p, low, high)), nil
	}
	c := conflict{ctx: ctx, p: p, machines: low <= high, left: explainSteps}
	keep := c.smallest(rules(p), s.witnessRules(p, low))
	if c.err != nil {
		return nil, c.err
	}
	q := p.restrictTo(keep)
	small, err := reduce(q)
	if err != nil {
		return nil, err
	}
	w := words{p: p, q: q, keep: keep, low: low, high: high, s: newSearch(ctx, small)}
	unsat := w.unsat()
	unsat.Sizes = sizesWithin(p, low, high)
	return unsat, w.s.err
}

func sizesWithin(p Problem, low, high int64) *loom.SizeRange {
	r := loom.SizeRange{Min: int(max(low, int64(p.Size.Min))), Max: int(min(high, int64(p.Size.Max)))}
	if r.Min > r.Max {
		return nil
	}
	return &r
}

// witnessRules are the rules about services of the clique that needs the most
// nodes, if it needs too many; else none.
func (s *search) witnessRules(p Problem, low int64) []rule {
	if s.m.impossible || int64(p.Machines) >= low {
		return nil
	}
	set, _ := s.m.findClique(s.m.demand, upTo(len(s.m.groups)), int64(p.Machines))
	in := map[string]bool{}
	for !set.empty() {
		for _, name := range s.m.groups[set.pop()].members {
			in[name] = true
		}
	}
	inside := func(names []string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !in[n] })
	}
	return slices.DeleteFunc(rules(p), func(r rule) bool {
		switch r.kind {
		case mustRule:
			return !inside(p.Must[r.at].Services)
		case cantRule:
			return !inside(p.Cant[r.at].Services)
		default:
			return !in[p.Services[r.at].Name]
		}
	})
}
