package solver

import (
	"context"
	"slices"

	"loom/app/loom"
)

// Solve returns the preferred layout, or why there is none. The
// cost does not depend on the number of machines. The error is loom.Unavailable
// when ctx ends before the answer is certain, and loom.Invalid when there are more
// constrained services than the solver handles (256 after must-coexist sets); it
// never stands for a "no". The Unsat has no suggestions: Suggest finds them.
func Solve(ctx context.Context, p Problem) (loom.Layout, *loom.Unsat, error) {
	m, err := reduce(p)
	if err != nil {
		return nil, nil, err
	}
	s := newSearch(ctx, m)
	inSize := p.Machines >= p.Size.Min && p.Machines <= p.Size.Max
	ok := inSize && s.solvable(int64(p.Machines))
	if s.err != nil {
		return nil, nil, s.err
	}
	if !ok {
		unsat, err := explain(ctx, p, s)
		return nil, unsat, err
	}
	layout := s.walk(int64(p.Machines))
	if s.err != nil {
		return nil, nil, s.err
	}
	return layout, nil, nil
}

// walk builds the lexicographically greatest layout of n nodes, which exists. It
// jumps from one used layout to the next. What is left may use
// any set: one that comes earlier could only be used if its count had not been the
// largest possible.
func (s *search) walk(n int64) loom.Layout {
	m := s.m
	d, most := slices.Clone(m.demand), slices.Clone(m.most)
	top := int64(0)
	for _, w := range s.size {
		top += w
	}
	var layout loom.Layout
	for n > 0 {
		set, kind, ok := s.next(d, most, n, top)
		if s.err != nil {
			return nil
		}
		if !ok {
			s.err = loom.NewError(loom.Internal, "The solver lost its way.")
			return nil
		}
		k := s.largest(d, most, n, set)
		g := loom.LayoutGroup{Count: int(k)}
		g.HardwareType, g.ImageType = m.hwNames[kind.hw], m.imNames[kind.im]
		g.Services = slices.Clone(m.free)
		top = 0
		for c := set; !c.empty(); {
			i := c.pop()
			g.Services = append(g.Services, m.groups[i].members...)
			d[i] = max(d[i]-k, 0)
			if most[i] < unlimited {
				most[i] -= k
			}
			top += s.size[i]
		}
		slices.Sort(g.Services)
		layout = append(layout, g)
		n -= k
	}
	return layout
}

// next finds the first layout, in the order of preference, that one of the n nodes
// can have; no set weighs more than top.
func (s *search) next(d, most []int64, n, top int64) (bitset, domain, bool) {
	m := s.m
	var alive bitset
	for g := range most {
		if most[g] > 0 {
			alive.add(g)
		}
	}
	// Each group on a node beyond the first uses up room that other nodes need.
	limit := int(min(int64(len(m.groups)), m.room(most)-n+1))
	var heaviest int64
	for _, wide := range m.widest {
		_, heaviest = s.findHeaviest(s.size, bitset{}, wide.and(alive), limit, heaviest)
	}
	top = min(top, heaviest)
	pick := picker{s: s, d: d, n: n}
	if pick.tight = !s.fits(d, n-1); pick.tight {
		pick.mustMeet = s.tightCliques(d, n)
	}
	for weight := top; weight >= 0 && s.err == nil; weight-- {
		if weight == 0 && len(m.free) == 0 {
			break
		}
		for _, kind := range m.domains {
			pick.weight = weight
			if set, ok := pick.first(bitset{}, kind.groups.and(alive), limit, 0, nil); ok {
				return set, kind, true
			}
		}
	}
	return bitset{}, domain{}, false
}

// tightCliques lists cliques whose demands fill all n nodes: each node has one of
// their groups.
func (s *search) tightCliques(d []int64, n int64) []bitset {
	var support bitset
	for g := range d {
		if d[g] > 0 {
			support.add(g)
		}
	}
	var found []bitset
	c := cliqueSearch{m: s.m, d: d, best: n - 1, left: 2000, each: func(q bitset) { found = append(found, q) }}
	c.grow(bitset{}, support, 0)
	return found
}

// picker finds, among sets of one weight, the first by service names that leaves a
// solvable rest.
type picker struct {
	s        *search
	d        []int64
	n        int64
	weight   int64
	tight    bool // all n nodes are needed, so the set must help with the demands
	mustMeet []bitset
}

// first decides group by group, the smallest name first, whether it is in the set.
// witness, when given, is a set within cand that reaches the weight.
func (p *picker) first(chosen, cand bitset, limit int, sum int64, witness *bitset) (bitset, bool) {
	if p.s.tick() {
		return bitset{}, false
	}
	if sum == p.weight {
		return chosen, !p.tight || p.s.fits(after(p.d, chosen, 1), p.n-1)
	}
	for _, q := range p.mustMeet {
		if !q.meets(chosen) && !q.meets(cand) {
			return bitset{}, false
		}
	}
	if witness == nil {
		set, ok := p.s.reaches(chosen, cand, limit, p.weight-sum)
		if !ok {
			return bitset{}, false
		}
		witness = &set
	}
	g := cand.first()
	if size := p.s.size[g]; sum+size <= p.weight {
		var rest *bitset
		if witness.has(g) {
			w := *witness
			w.drop(g)
			rest = &w
		}
		with := chosen.with(g)
		if set, ok := p.first(with, p.s.m.compatible(with, cand, g), limit-1, sum+size, rest); ok {
			return set, true
		}
	}
	cand.drop(g)
	if witness.has(g) {
		witness = nil
	}
	return p.first(chosen, cand, limit, sum, witness)
}

// after returns the demands that remain once k nodes have the set.
func after(d []int64, set bitset, k int64) []int64 {
	d = slices.Clone(d)
	for !set.empty() {
		g := set.pop()
		d[g] = max(d[g]-k, 0)
	}
	return d
}

// largest is how often the set can be used; once is possible. More copies never
// make the rest easier, so it can be halved.
func (s *search) largest(d, most []int64, n int64, set bitset) int64 {
	high := n
	for c := set; !c.empty(); {
		high = min(high, most[c.pop()])
	}
	if room := s.m.room(most); room < unlimited && set.count() > 1 {
		high = min(high, (room-n)/int64(set.count()-1))
	}
	if s.fits(after(d, set, high), n-high) {
		return high
	}
	low := int64(1)
	for high-low > 1 && s.err == nil {
		mid := low + (high-low)/2
		if s.fits(after(d, set, mid), n-mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
