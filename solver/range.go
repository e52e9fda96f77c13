package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"loom/app/loom"
)

// search is one run over a model. Once err is set every answer is void.
type search struct {
	ctx   context.Context
	m     *model
	steps int
	err   error
	// limit, unless 0, ends the search after that many steps with errLimit.
	limit int
	memo  map[string]bool
	// bounds and packing are what weigh learned: proofs, and nodes to start with.
	bounds  []bound
	packing []share
	// size is the number of services of each group.
	size []int64
}

var errLimit = errors.New("solver: more steps than this question is worth")

func newSearch(ctx context.Context, m *model) *search {
	s := &search{ctx: ctx, m: m, memo: map[string]bool{}}
	for _, g := range m.groups {
		s.size = append(s.size, int64(len(g.members)))
	}
	return s
}

// tick counts a step and reports that time is up.
func (s *search) tick() bool {
	s.steps++
	if s.err == nil && s.limit > 0 && s.steps > s.limit {
		s.err = errLimit
	}
	if s.err == nil && s.steps&255 == 0 {
		s.check()
	}
	return s.err != nil
}

func (s *search) check() {
	if cause := context.Cause(s.ctx); cause != nil {
		s.err = timeout(cause, s.bestBound())
	}
}

// bestBound says what is certain of the number of machines that are needed.
func (s *search) bestBound() string {
	if s.m == nil || s.m.impossible {
		return ""
	}
	var support bitset
	low := int64(1)
	for g, n := range s.m.demand {
		if n > 0 {
			support.add(g)
			low = max(low, n)
		}
	}
	_, low = s.m.findClique(s.m.demand, support, low)
	text := fmt.Sprintf(" At least %d nodes are needed; %d are enough", low, max(low, s.firstFit(s.m.demand, support, low)))
	if room := s.m.room(s.m.most); room < loom.Unlimited {
		text += fmt.Sprintf(" and %d the most", room)
	}
	return text + "."
}

func timeout(cause error, bound string) error {
	return &loom.Error{Kind: loom.Unavailable, Message: "TIMEOUT: the search for a layout was not finished in time. Whether there is one is not known; try again with more time, or simplify the template's constraints." + bound, Err: fmt.Errorf("search for a layout: %w", cause)}
}

// Sizes is the range of machine counts for which the problem has a layout, within
// Problem.Size; Problem.Machines plays no role. It reports false when no count
// works. Errors: loom.Unavailable when ctx ends first, loom.Invalid when there are
// more constrained services than the solver handles (256 after must-coexist sets).
func Sizes(ctx context.Context, p Problem) (loom.SizeRange, bool, error) {
	m, err := reduce(p)
	if err != nil {
		return loom.SizeRange{}, false, err
	}
	s := newSearch(ctx, m)
	low, high := s.span()
	if s.err != nil {
		return loom.SizeRange{}, false, s.err
	}
	r := loom.SizeRange{Min: int(max(low, int64(p.Size.Min))), Max: int(min(high, int64(p.Size.Max)))}
	return r, r.Min <= r.Max, nil
}

// span is the range of sizes that work, empty when nothing works.
func (s *search) span() (low, high int64) {
	s.check()
	if s.m.impossible {
		return 1, 0
	}
	return max(s.least(s.m.demand), 1), min(s.m.room(s.m.most), loom.Unlimited)
}

// solvable reports whether n machines have a layout.
func (s *search) solvable(n int64) bool {
	s.check()
	return !s.m.impossible && n >= 1 && n <= s.m.room(s.m.most) && s.fits(s.m.demand, n)
}

// room is how many nodes can be given something, U.
func (m *model) room(most []int64) int64 {
	if len(m.free) > 0 {
		return unlimited
	}
	var total int64
	for _, n := range most {
		total += n
	}
	return min(total, unlimited)
}

// least is the number of nodes that hold all demands, B.
func (s *search) least(d []int64) int64 {
	var support bitset
	var low, high int64
	for g, n := range d {
		if n > 0 {
			support.add(g)
			low = max(low, n)
		}
	}
	_, low = s.m.findClique(d, support, low)
	high = max(low, s.firstFit(d, support, low))
	for low < high && s.err == nil {
		mid := low + (high-low)/2
		if s.fits(d, mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high
}

// fits reports whether nodes nodes can hold all demands.
func (s *search) fits(d []int64, nodes int64) bool {
	var rest bitset
	for g, n := range d {
		if n > nodes {
			return false
		}
		if n > 0 {
			rest.add(g)
		}
	}
	// A group whose neighbours cannot fill the nodes finds room after everybody
	// else, so it does not matter.
	for again := true; again; {
		again = false
		for c := rest; !c.empty(); {
			g := c.pop()
			sum := d[g]
			for near := s.m.near[g].and(rest); !near.empty(); {
				sum += d[near.pop()]
			}
			if sum <= nodes {
				rest.drop(g)
				again = true
			}
		}
	}
	// Parts that do not touch each other share the same nodes.
	for !rest.empty() {
		part, edge := bitset{}, bitset{}
		edge.add(rest.first())
		for !edge.empty() {
			g := edge.pop()
			part.add(g)
			rest.drop(g)
			edge = edge.or(s.m.near[g].and(rest))
		}
		if !s.partFits(d, part, nodes) {
			return false
		}
	}
	return true
}

func (s *search) partFits(d []int64, part bitset, nodes int64) bool {
	if _, needed := s.m.findClique(d, part, nodes); needed > nodes {
		return false
	}
	if s.firstFit(d, part, nodes) <= nodes {
		return true
	}
	if s.known(d, nodes) {
		return false
	}
	key := memoKey(d, part, nodes)
	if known, ok := s.memo[key]; ok {
		return known
	}
	// Small cases are quickest searched; large demands need the bound, and its
	// fractional packing to start from.
	answer, certain := s.spread(d, part, nodes, 2000)
	if !certain {
		bound, packing := s.weigh(d, part, nodes)
		switch {
		case bound > nodes:
		case s.roundPacking(d, part, nodes, packing):
			answer = true
		default:
			answer, _ = s.spread(d, part, nodes, 0)
		}
	}
	if s.err == nil {
		s.memo[key] = answer
	}
	return answer
}

// roundPacking uses the whole part of a fractional packing and packs what is left. A
// false only means that this did not work.
func (s *search) roundPacking(d []int64, part bitset, nodes int64, packing []share) bool {
	d = slices.Clone(d)
	for _, p := range packing {
		n := min(int64(p.nodes+1e-6), nodes)
		nodes -= n
		for c := p.set; !c.empty(); {
			g := c.pop()
			d[g] = max(d[g]-n, 0)
		}
	}
	for c := part; !c.empty(); {
		if g := c.pop(); d[g] == 0 {
			part.drop(g)
		}
	}
	if s.firstFit(d, part, nodes) <= nodes {
		return true
	}
	ok, _ := s.spread(d, part, nodes, 20000)
	return ok
}

func memoKey(d []int64, part bitset, nodes int64) string {
	key := make([]byte, 0, 8+4*len(d))
	put := func(n int64) { key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }
	put(nodes)
	for g, n := range d {
		if part.has(g) {
			put(n)
		} else {
			put(0)
		}
	}
	return string(key)
}

// firstFit packs greedily in a few orders and returns the number of nodes used by
// the best, stopping at one that needs no more than enough.
func (s *search) firstFit(d []int64, part bitset, enough int64) int64 {
	order := make([]int, 0, len(d))
	weight := make([]int64, len(d))
	for c := part; !c.empty(); {
		g := c.pop()
		order = append(order, g)
		for near := s.m.near[g].and(part); !near.empty(); {
			weight[g] += d[near.pop()]
		}
	}
	best := int64(-1)
	for _, less := range []func(a, b int) int{
		func(a, b int) int { return int(d[b] - d[a]) },
		func(a, b int) int { return int(weight[b] + d[b] - weight[a] - d[a]) },
	} {
		slices.SortStableFunc(order, less)
		var nodes []nodeClass
		var used int64
		for _, g := range order {
			left := d[g]
			for i := 0; i < len(nodes) && left > 0; i++ {
				if !s.m.accepts(&nodes[i], g) {
					continue
				}
				n := min(left, nodes[i].count)
				if n < nodes[i].count {
					rest := nodes[i]
					rest.count -= n
					nodes = append(nodes, rest)
				}
				nodes[i] = s.m.put(nodes[i], g, n)
				left -= n
			}
			if left > 0 {
				nodes = append(nodes, s.m.put(s.m.blank(), g, left))
				used += left
			}
		}
		if best < 0 || used < best {
			best = used
		}
		if best <= enough {
			break
		}
	}
	return best
}
