package solver

// nodeClass is a number of equal nodes in the making.
type nodeClass struct {
	set    bitset
	hw, im bitset // types that suit all groups of the set
	count  int64
}

// blank is a node with nothing on it.
func (m *model) blank() nodeClass {
	all := ^uint64(0)
	types := bitset{all, all, all, all}
	return nodeClass{hw: types, im: types}
}

// accepts reports whether nodes of the class can take g as well.
func (m *model) accepts(c *nodeClass, g int) bool {
	if c.set.meets(m.conf[g]) || !c.hw.meets(m.groups[g].hw) || !c.im.meets(m.groups[g].im) {
		return false
	}
	for _, i := range m.hyperOf[g] {
		if m.hyper[i].within(c.set.with(g)) {
			return false
		}
	}
	return true
}

// put gives n nodes of the class with g added.
func (m *model) put(c nodeClass, g int, n int64) nodeClass {
	c.set.add(g)
	c.hw, c.im = c.hw.and(m.groups[g].hw), c.im.and(m.groups[g].im)
	c.count = n
	return c
}

// spread decides whether the groups of part fit on nodes nodes. It takes the group
// with the least choice, tries every way to spread it over the kinds of nodes so
// far, and goes on with the rest. Unless budget is 0 it gives up after that many
// steps, which is then not certain.
func (s *search) spread(d []int64, part bitset, nodes, budget int64) (fits, certain bool) {
	x := spreader{s: s, d: d, budget: budget}
	fits = x.place(nil, part, nodes)
	return fits, fits || !x.spent()
}

type spreader struct {
	s             *search
	d             []int64
	steps, budget int64
}

func (x *spreader) spent() bool { return x.budget > 0 && x.steps > x.budget }

// stop counts a step and reports that the search is over.
func (x *spreader) stop() bool {
	x.steps++
	return x.spent() || x.s.tick()
}

// place goes on with classes done, groups rest to do and blank nodes left.
func (x *spreader) place(classes []nodeClass, rest bitset, blank int64) bool {
	if x.stop() {
		return false
	}
	if rest.empty() {
		return true
	}
	pick, least := -1, int64(0)
	for r := rest; !r.empty(); {
		g := r.pop()
		slack := blank - x.d[g]
		for i := range classes {
			if x.s.m.accepts(&classes[i], g) {
				slack += classes[i].count
			}
		}
		if slack < 0 {
			return false
		}
		if pick < 0 || slack < least || slack == least && x.d[g] > x.d[pick] {
			pick, least = g, slack
		}
	}
	rest.drop(pick)
	var open []int
	for i := range classes {
		if x.s.m.accepts(&classes[i], pick) {
			open = append(open, i)
		}
	}
	return x.share(classes, open, pick, x.d[pick], rest, blank)
}

// share spreads left nodes of g over the open classes from the first on, fullest
// first, and what remains over blank nodes.
func (x *spreader) share(classes []nodeClass, open []int, g int, left int64, rest bitset, blank int64) bool {
	if x.stop() {
		return false
	}
	if left == 0 {
		return x.place(classes, rest, blank)
	}
	if len(open) == 0 {
		if left > blank {
			return false
		}
		next := append(classes[:len(classes):len(classes)], x.s.m.put(x.s.m.blank(), g, left))
		return x.place(next, rest, blank-left)
	}
	room := blank
	for _, i := range open[1:] {
		room += classes[i].count
	}
	i := open[0]
	for n := min(left, classes[i].count); n >= 0 && left-n <= room; n-- {
		next := classes
		if n > 0 {
			next = append(make([]nodeClass, 0, len(classes)+2), classes...)
			next[i] = x.s.m.put(classes[i], g, n)
			if n < classes[i].count {
				old := classes[i]
				old.count -= n
				next = append(next, old)
			}
		}
		if x.share(next, open[1:], g, left-n, rest, blank) {
			return true
		}
		if x.s.err != nil || x.spent() {
			return false
		}
	}
	return false
}
