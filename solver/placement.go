package solver

import (
	"cmp"
	"slices"

	"loom/app/loom"
)

// placeServices places the new services: one service after the
// other, on as many nodes as can be, of those on the preferred kinds first, on the
// node with the lowest number among equals. Some placement must exist. nodes lists
// the machines of each column.
func (s *search) placeServices(p Problem, st *clusterModel, nodes [][]int) []placement {
	low, high := slices.Clone(st.low), slices.Clone(st.high)
	spots := st.placements()
	for i := range spots {
		spots[i].nodes = nodes[st.kinds[i].column]
	}
	order := byTypes(p.Preferred)
	var placed []string
	// later takes off what comes after the service in turn: it is on no node yet
	// when nodes are compared.
	later := func(l loom.NodeLayout) loom.NodeLayout {
		l.Services = slices.DeleteFunc(l.Services, func(s string) bool {
			return slices.Contains(p.New, s) && !slices.Contains(placed, s)
		})
		return l
	}
	for _, name := range p.New {
		g, first := st.firstOf(name)
		if !first {
			placed = append(placed, name)
			continue
		}
		var room int64
		for _, sp := range spots {
			if sp.open.has(g) {
				room += sp.count
			}
		}
		// More is never easier: "at least n" can be halved.
		n := s.most(low[g], min(high[g], room), func(n int64) bool {
			try := slices.Clone(low)
			try[g] = n
			return s.fill(st, spots, try, high)
		})
		low[g], high[g] = n, n
		slices.SortStableFunc(spots, func(a, b placement) int { return order(later(st.layout(a)), later(st.layout(b))) })
		spots = s.distribute(st, spots, g, low, high)
		placed = append(placed, name)
		if s.err != nil {
			return nil
		}
	}
	return spots
}

// distribute puts low[g] copies of g on the spots, as many as can be on the first, then
// on the second, and so on.
func (s *search) distribute(st *clusterModel, spots []placement, g int, low, high []int64) []placement {
	var done []placement
	for i, sp := range spots {
		if !sp.open.has(g) {
			done = append(done, sp)
			continue
		}
		n := s.most(0, min(low[g], sp.count), func(n int64) bool {
			with, without := st.take(sp, g, n)
			try := slices.Concat(done, []placement{with, without}, spots[i+1:])
			few, many := slices.Clone(low), slices.Clone(high)
			few[g], many[g] = few[g]-n, many[g]-n
			return s.fill(st, try, few, many)
		})
		with, without := st.take(sp, g, n)
		without.open.drop(g)
		for _, part := range []placement{with, without} {
			if part.count > 0 {
				done = append(done, part)
			}
		}
		low[g], high[g] = low[g]-n, high[g]-n
	}
	return done
}

// most is the largest n from low to high with works(n), which holds for low and
// for all below one for which it holds.
func (s *search) most(low, high int64, works func(int64) bool) int64 {
	if low >= high || works(high) {
		return max(low, high)
	}
	for high-low > 1 && s.err == nil {
		if mid := low + (high-low)/2; works(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// layout is what a node of the placement holds.
func (st *clusterModel) layout(sp placement) loom.NodeLayout {
	l := st.kinds[sp.kind].NodeLayout
	l.Services = slices.Clone(l.Services)
	for c := sp.set; !c.empty(); {
		l.Services = append(l.Services, st.groups[c.pop()].members...)
	}
	slices.Sort(l.Services)
	return l
}

// byTypes compares node layouts in the order of preference.
func byTypes(preferred *loom.Preferences) func(a, b loom.NodeLayout) int {
	rank := func(list []string, name string) int {
		if i := slices.Index(list, name); i >= 0 {
			return i
		}
		return len(list)
	}
	var hardware, images []string
	if preferred != nil {
		hardware, images = preferred.HardwareTypes, preferred.ImageTypes
	}
	return func(a, b loom.NodeLayout) int {
		return cmp.Or(
			len(b.Services)-len(a.Services),
			rank(hardware, a.HardwareType)-rank(hardware, b.HardwareType),
			rank(images, a.ImageType)-rank(images, b.ImageType),
			cmp.Compare(a.HardwareType, b.HardwareType),
			cmp.Compare(a.ImageType, b.ImageType),
			slices.Compare(a.Services, b.Services),
		)
	}
}
