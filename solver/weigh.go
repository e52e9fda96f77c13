package solver

import "slices"

// share is a set of groups on a fractional number of nodes.
type share struct {
	set   bitset
	nodes float64
}

// bound is a proof that outlives its demands: no node weighs more than most.
type bound struct {
	weight []int64
	most   int64
}

// known applies the proofs of earlier calls: it reports that one of them forbids
// to meet the demands with so few nodes.
func (s *search) known(d []int64, nodes int64) bool {
	for _, b := range s.bounds {
		var total int64
		for g, w := range b.weight {
			total += w * d[g]
		}
		if (total+b.most-1)/b.most > nodes {
			return true
		}
	}
	return false
}

// weigh bounds the nodes that part needs from below by weighting its groups: if no
// node can carry more than a weight of a, a total weighted demand of t needs t/a
// nodes. The best weights come from a linear program whose rows, the possible
// nodes, are added as they are violated; its other half is a fractional packing.
// Floating point only proposes: the bound is computed in whole numbers, from the
// exactly heaviest node. It stops as soon as the bound exceeds enough.
func (s *search) weigh(d []int64, part bitset, enough int64) (int64, []share) {
	const scale = 1 << 20
	var groups []int
	for c := part; !c.empty(); {
		groups = append(groups, c.pop())
	}
	p := newProgram(d, groups)
	seen := map[bitset]bool{}
	add := func(set bitset) {
		if set = s.widen(set, part); !seen[set] {
			seen[set] = true
			p.add(set)
		}
	}
	for _, known := range s.packing {
		if set := known.set.and(part); known.nodes > 0 && !set.empty() {
			add(set)
		}
	}
	for _, g := range groups {
		add(bitset{}.with(g))
	}
	weight := make([]int64, len(d))
	var best int64
	var packing []share
	for range 4*len(groups) + 20 {
		y, x := p.solve()
		s.steps += p.cost() // a program costs more than a step of search
		packing = packing[:0]
		for i, set := range p.rows {
			packing = append(packing, share{set, x[i]})
		}
		var total int64
		var heavy bitset
		for i, g := range groups {
			weight[g] = int64(y[i] * scale)
			total += weight[g] * d[g]
			if weight[g] > 0 {
				heavy.add(g)
			}
		}
		var most int64
		var node bitset
		for _, wide := range s.m.widest {
			if set, w := s.findHeaviest(weight, bitset{}, heavy.and(wide), len(d), most); w > most {
				node, most = set, w
			}
		}
		if s.err != nil || most == 0 {
			break
		}
		best = max(best, (total+most-1)/most)
		if best > enough {
			s.bounds = append(s.bounds, bound{slices.Clone(weight), most})
			break
		}
		if most <= scale+scale>>10 {
			break
		}
		add(node)
		// More rows that are too heavy save programs.
		heaviest := slices.Clone(groups)
		slices.SortStableFunc(heaviest, func(a, b int) int { return int(weight[b] - weight[a]) })
		for _, g := range heaviest[:min(len(heaviest), 12)] {
			c := s.m.put(s.m.blank(), g, 1)
			sum := weight[g]
			for _, h := range heaviest {
				if !c.set.has(h) && s.m.accepts(&c, h) {
					c = s.m.put(c, h, 1)
					sum += weight[h]
				}
			}
			if sum > scale+scale>>10 {
				add(c.set)
			}
		}
	}
	s.packing = packing
	return best, packing
}

// widen adds to a node whatever else of part fits, in order.
func (s *search) widen(set, part bitset) bitset {
	c := s.m.blank()
	for t := set; !t.empty(); {
		c = s.m.put(c, t.pop(), 1)
	}
	for rest := part.minus(set); !rest.empty(); {
		if g := rest.pop(); s.m.accepts(&c, g) {
			c = s.m.put(c, g, 1)
		}
	}
	return c.set
}
