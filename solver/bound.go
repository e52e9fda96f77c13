package solver

// findHeaviest finds a valid set of groups from cand, which lies within one domain,
// of the greatest weight above floor and of at most limit members; cur is on the
// node already. It returns floor and nothing when there is none.
func (s *search) findHeaviest(weight []int64, cur, cand bitset, limit int, floor int64) (bitset, int64) {
	h := weightSearch{s: s, weight: weight, best: floor, cur: cur}
	if limit > 0 {
		h.grow(bitset{}, cand, limit, 0)
	}
	return h.set, h.best
}

// reaches finds a set as heaviest does, of at least the given weight.
func (s *search) reaches(cur, cand bitset, limit int, weight int64) (bitset, bool) {
	h := weightSearch{s: s, weight: s.size, best: weight - 1, cur: cur, enough: weight}
	if limit > 0 {
		h.grow(bitset{}, cand, limit, 0)
	}
	return h.set, h.best >= weight
}

type weightSearch struct {
	s      *search
	weight []int64
	cur    bitset // given, never part of the answer
	set    bitset
	best   int64
	enough int64 // ends the search, unless 0
}

func (h *weightSearch) grow(chosen, cand bitset, limit int, sum int64) {
	if h.s.tick() || h.enough > 0 && h.best >= h.enough {
		return
	}
	if sum > h.best {
		h.best, h.set = sum, chosen
	}
	if limit == 0 || cand.empty() || sum+h.bound(cand, limit) <= h.best {
		return
	}
	m := h.s.m
	pick, most := -1, -1
	for rest := cand; !rest.empty(); {
		g := rest.pop()
		degree := 2*m.conf[g].and(cand).count() + min(len(m.hyperOf[g]), 1)
		if degree > most || degree == most && h.weight[g] > h.weight[pick] {
			pick, most = g, degree
		}
	}
	with := chosen.with(pick)
	h.grow(with, m.compatible(h.cur.or(with), cand, pick), limit-1, sum+h.weight[pick])
	if most == 0 && limit >= cand.count() {
		return // nothing in the way of taking all, which the line above did
	}
	cand.drop(pick)
	h.grow(chosen, cand, limit, sum)
}

// bound covers cand with cliques; a node has at most one group of each.
func (h *weightSearch) bound(cand bitset, limit int) int64 {
	m := h.s.m
	var total, top int64
	for rest := cand; !rest.empty(); {
		g := rest.pop()
		best := h.weight[g]
		for c := m.conf[g].and(rest); !c.empty(); {
			u := c.pop()
			rest.drop(u)
			best = max(best, h.weight[u])
			c = c.and(m.conf[u])
		}
		total += best
		top = max(top, best)
	}
	return min(total, top*int64(limit))
}

// compatible returns the groups of cand that may join a node once g did; set is the node
// with g.
func (m *model) compatible(set, cand bitset, g int) bitset {
	cand = cand.minus(m.conf[g])
	cand.drop(g)
	for _, i := range m.hyperOf[g] {
		if left := m.hyper[i].minus(set); left.count() == 1 {
			cand = cand.minus(left)
		}
	}
	return cand
}

// findClique finds groups that pairwise cannot share a node and whose demands sum to
// the most above floor: that many nodes are needed. It gives up improving after a
// fixed number of steps; a smaller clique is a weaker bound, never a wrong one.
func (m *model) findClique(d []int64, cand bitset, floor int64) (bitset, int64) {
	c := cliqueSearch{m: m, d: d, best: floor, left: 20000}
	c.grow(bitset{}, cand, 0)
	return c.set, c.best
}

type cliqueSearch struct {
	m    *model
	d    []int64
	set  bitset
	best int64
	left int
	// each, when set, is called for every clique above best instead of keeping
	// the best one.
	each func(bitset)
}

func (c *cliqueSearch) grow(chosen, cand bitset, sum int64) {
	c.left--
	if c.left < 0 {
		return
	}
	if sum > c.best {
		if c.each != nil {
			c.each(chosen)
		} else {
			c.best, c.set = sum, chosen
		}
	}
	for !cand.empty() {
		if sum+c.bound(cand) <= c.best {
			return
		}
		pick, most := -1, int64(-1)
		for rest := cand; !rest.empty(); {
			g := rest.pop()
			reach := c.d[g]*int64(maxGroups) + int64(c.m.conf[g].and(cand).count())
			if reach > most {
				pick, most = g, reach
			}
		}
		cand.drop(pick)
		c.grow(chosen.with(pick), cand.and(c.m.conf[pick]), sum+c.d[pick])
		if c.left < 0 {
			return
		}
	}
}

// bound covers cand with sets free of pair conflicts; a clique has at most one
// group of each.
func (c *cliqueSearch) bound(cand bitset) int64 {
	var total int64
	for !cand.empty() {
		g := cand.pop()
		best := c.d[g]
		for class := cand.minus(c.m.conf[g]); !class.empty(); {
			u := class.pop()
			cand.drop(u)
			best = max(best, c.d[u])
			class = class.minus(c.m.conf[u])
		}
		total += best
	}
	return total
}
