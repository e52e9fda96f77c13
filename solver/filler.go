package solver

import "slices"

// fill decides whether every group can be on at least low nodes of the spots, and
// every bare node gets a group within high.
func (s *search) fill(st *clusterModel, spots []placement, low, high []int64) bool {
	if st.broken {
		return false
	}
	f := filler{s: s, st: st, low: low, high: high}
	var rest bitset
	for g, n := range low {
		if n > high[g] {
			return false
		}
		if n > 0 {
			rest.add(g)
		}
	}
	spots = f.merge(spots)
	if slices.ContainsFunc(spots, f.uncovered) {
		// Who covers a bare node ties all groups together.
		return f.place(spots, rest)
	}
	for !rest.empty() {
		part, edge := bitset{}, bitset{}
		edge.add(rest.first())
		for !edge.empty() {
			g := edge.pop()
			part.add(g)
			rest.drop(g)
			edge = edge.or(st.touch[g].and(rest))
		}
		if !f.place(spots, part) {
			return false
		}
	}
	return true
}

type filler struct {
	s         *search
	st        *clusterModel
	low, high []int64
}

// uncovered reports nodes that nothing is on so far.
func (f *filler) uncovered(s placement) bool {
	return f.st.kinds[s.kind].bare && s.set.empty() && s.count > 0
}

// merge joins spots that are the same to the groups not placed yet.
func (f *filler) merge(spots []placement) []placement {
	type key struct {
		like      int
		set, open bitset
	}
	at := map[key]int{}
	var out []placement
	for _, s := range spots {
		s.nodes = nil
		k := key{f.st.kinds[s.kind].like, s.set, s.open}
		if i, ok := at[k]; ok {
			out[i].count += s.count
		} else if s.count > 0 {
			at[k] = len(out)
			out = append(out, s)
		}
	}
	return out
}

// place goes on with the groups rest still to do.
func (f *filler) place(spots []placement, rest bitset) bool {
	if f.s.tick() {
		return false
	}
	if rest.empty() {
		return f.cover(spots)
	}
	pick, least := -1, int64(0)
	for r := rest; !r.empty(); {
		g := r.pop()
		slack := -f.low[g]
		for i := range spots {
			if spots[i].open.has(g) {
				slack += spots[i].count
			}
		}
		if slack < 0 {
			return false
		}
		if pick < 0 || slack < least || slack == least && f.low[g] > f.low[pick] {
			pick, least = g, slack
		}
	}
	for r := rest; !r.empty(); {
		clique := f.clique(r.pop(), rest)
		if clique.count() > 1 && !f.fitsByFlow(spots, clique, f.low, false) {
			return false
		}
		if clique == rest && !slices.ContainsFunc(spots, f.uncovered) {
			return true // a node takes one of them at most: the flow was the answer
		}
	}
	rest.drop(pick)
	var open []int
	for i := range spots {
		if spots[i].open.has(pick) {
			open = append(open, i)
		}
	}
	return f.share(spots, open, pick, f.low[pick], rest)
}

// clique grows one from g among groups that exclude each other everywhere.
func (f *filler) clique(g int, of bitset) bitset {
	q := bitset{}.with(g)
	for cand := f.st.clash[g].and(of); !cand.empty(); {
		most := -1
		for c := cand; !c.empty(); {
			if h := c.pop(); most < 0 || f.low[h] > f.low[most] {
				most = h
			}
		}
		q.add(most)
		cand = cand.and(f.st.clash[most])
	}
	return q
}

// share spreads left nodes of g over the open spots, from the first on.
func (f *filler) share(spots []placement, open []int, g int, left int64, rest bitset) bool {
	if f.s.tick() {
		return false
	}
	if left == 0 {
		return f.place(spots, rest)
	}
	if len(open) == 0 {
		return false
	}
	var room int64
	for _, i := range open[1:] {
		room += spots[i].count
	}
	i := open[0]
	for n := min(left, spots[i].count); n >= 0 && left-n <= room; n-- {
		next := spots
		if n > 0 {
			with, without := f.st.take(spots[i], g, n)
			next = append(make([]placement, 0, len(spots)+1), spots...)
			next[i] = with
			if without.count > 0 {
				next = append(next, without)
			}
		}
		if f.share(next, open[1:], g, left-n, rest) {
			return true
		}
		if f.s.err != nil {
			return false
		}
	}
	return false
}

// cover reports that further copies of groups can go where nothing is.
func (f *filler) cover(spots []placement) bool {
	bare := slices.DeleteFunc(slices.Clone(spots), func(s placement) bool { return !f.uncovered(s) })
	if len(bare) == 0 {
		return true
	}
	spare := make([]int64, len(f.high))
	all := upTo(len(f.high))
	for g := range spare {
		spare[g] = f.high[g] - f.low[g]
	}
	return f.fitsByFlow(bare, all, spare, true)
}

// fitsByFlow decides by maximum flow whether groups fit where each node takes one of
// them at most: all of amount where !full, or so that every node has one.
func (f *filler) fitsByFlow(spots []placement, groups bitset, amount []int64, full bool) bool {
	var list []int
	for g := groups; !g.empty(); {
		list = append(list, g.pop())
	}
	left := make([]int64, len(spots))
	var wanted int64
	for i := range spots {
		left[i] = spots[i].count
		if full {
			wanted += spots[i].count
		}
	}
	flow := make([][]int64, len(list)) // per group and spot
	for j := range list {
		flow[j] = make([]int64, len(spots))
	}
	for j, g := range list {
		goal := amount[g]
		if !full {
			wanted += goal
		}
		for goal > 0 {
			n := augment(spots, list, flow, left, j, goal)
			if n == 0 {
				break
			}
			goal -= n
			wanted -= n
		}
		if goal > 0 && !full {
			return false
		}
	}
	return wanted <= 0
}

// augment finds a way to place up to goal more of group j, moving others, and
// returns how many.
func augment(spots []placement, list []int, flow [][]int64, left []int64, j int, goal int64) int64 {
	fromGroup := make([]int, len(spots)) // the group that a spot was reached from
	fromSpot := make([]int, len(list))
	for i := range fromGroup {
		fromGroup[i] = -1
	}
	for i := range fromSpot {
		fromSpot[i] = -1
	}
	queue, seen := []int{j}, make([]bool, len(list))
	seen[j] = true
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for i := range spots {
			if fromGroup[i] >= 0 || !spots[i].open.has(list[at]) {
				continue
			}
			fromGroup[i] = at
			if left[i] > 0 {
				return push(flow, left, fromGroup, fromSpot, i, j, goal)
			}
			for h := range list {
				if !seen[h] && flow[h][i] > 0 {
					seen[h], fromSpot[h] = true, i
					queue = append(queue, h)
				}
			}
		}
	}
	return 0
}

func push(flow [][]int64, left []int64, fromGroup, fromSpot []int, end, j int, goal int64) int64 {
	n := min(goal, left[end])
	for i := end; ; {
		g := fromGroup[i]
		if g == j {
			break
		}
		i = fromSpot[g]
		n = min(n, flow[g][i])
	}
	left[end] -= n
	for i := end; ; {
		g := fromGroup[i]
		flow[g][i] += n
		if g == j {
			return n
		}
		i = fromSpot[g]
		flow[g][i] -= n
	}
}
