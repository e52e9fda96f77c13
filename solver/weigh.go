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
	var rows []bitset
	seen := map[bitset]bool{}
	add := func(set bitset) {
		if set = s.widen(set, part); !seen[set] {
			seen[set] = true
			rows = append(rows, set)
		}
	}
	for _, p := range s.packing {
		if set := p.set.and(part); p.nodes > 0 && !set.empty() {
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
		y, x := packLP(d, groups, rows)
		packing = packing[:0]
		for i, set := range rows {
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
			if set, w := s.heaviest(weight, bitset{}, heavy.and(wide), len(d), most); w > most {
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
		s.steps += len(rows) * len(rows) / 32 // a program costs more than a step of search
		// More rows that are too heavy save programs.
		slices.SortStableFunc(groups, func(a, b int) int { return int(weight[b] - weight[a]) })
		for _, g := range groups[:min(len(groups), 12)] {
			c := s.m.put(s.m.blank(), g, 1)
			sum := weight[g]
			for _, h := range groups {
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

// packLP maximizes the demand-weighted sum of y, such that no row's groups sum to
// more than 1, by the simplex method: y = 0 is a start, every group is in a row. It
// returns y per group and the dual, the use of each row.
func packLP(d []int64, groups []int, rows []bitset) (y, x []float64) {
	n, k := len(groups), len(rows)
	width := n + k + 1
	table := make([][]float64, k+1)
	basis := make([]int, k)
	for i := range table {
		table[i] = make([]float64, width)
	}
	for i, set := range rows {
		for j, g := range groups {
			if set.has(g) {
				table[i][j] = 1
			}
		}
		table[i][n+i], table[i][width-1] = 1, 1
		basis[i] = n + i
	}
	goal := table[k]
	for j, g := range groups {
		goal[j] = -float64(d[g])
	}
	const tiny = 1e-9
	for pivots := range 50 * (n + k) {
		in := -1
		for j := range n + k {
			// The steepest column first; the first one later, which never cycles.
			if goal[j] < -tiny && (in < 0 || pivots < 5*(n+k) && goal[j] < goal[in]) {
				in = j
			}
		}
		if in < 0 {
			break
		}
		out := -1
		for i := range k {
			if table[i][in] > tiny && (out < 0 || ratio(table[i], in) < ratio(table[out], in)-tiny ||
				ratio(table[i], in) <= ratio(table[out], in)+tiny && basis[i] < basis[out]) {
				out = i
			}
		}
		if out < 0 {
			break
		}
		by := table[out][in]
		for j := range table[out] {
			table[out][j] /= by
		}
		for i, row := range table {
			if f := row[in]; i != out && f != 0 {
				for j, v := range table[out] {
					if v != 0 {
						row[j] -= f * v
					}
				}
			}
		}
		basis[out] = in
	}
	y, x = make([]float64, n), make([]float64, k)
	for i, b := range basis {
		if b < n {
			y[b] = max(table[i][width-1], 0)
		}
	}
	for i := range x {
		x[i] = max(goal[n+i], 0)
	}
	return y, x
}

func ratio(row []float64, in int) float64 { return row[len(row)-1] / row[in] }
