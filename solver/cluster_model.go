package solver

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// clusterModel is the reduced form of a problem with machines that exist: what they
// have is fixed, new services are placed on them.
type clusterModel struct {
	// broken is set when a rule is broken wherever the new services go.
	broken bool
	// kindBreaks is set when one of the nodes does so by itself, numbers apart.
	kindBreaks bool
	// groups are the new services that share every node and go with none that is
	// there already; leads names the first of each to be placed.
	groups []group
	leads  []string
	kinds  []kind
	// clash holds per group those it can be on no node with, anywhere; touch those
	// that it meets in any set at all.
	clash, touch []bitset
	low, high    []int64
}

// kind is a number of equal machines.
type kind struct {
	loom.NodeLayout // with the new services that must be there
	column          int
	count           int64
	bare            bool   // without any service yet
	accept          bitset // groups that may join by themselves
	conf            []bitset
	hyper           []bitset
	// like is the first kind that accepts the same and sees the same conflicts.
	like int
}

// newClusterModel builds the model. growing says that further machines follow, which may
// make up for minima. It fails with loom.Invalid when there are too many groups.
func newClusterModel(p Problem, growing bool) (*clusterModel, error) {
	st := &clusterModel{}
	bound, of := st.join(p)
	if len(st.groups) > maxGroups {
		return nil, tooLarge()
	}
	on := map[string]int64{}
	for i, c := range p.Nodes {
		k := st.kind(p, c, bound, of)
		k.column = i
		st.kinds = append(st.kinds, k)
		for _, name := range k.Services {
			on[name] += k.count
		}
	}
	st.kindBreaks = st.broken
	for _, s := range p.Services {
		if _, free := of[s.Name]; free {
			continue
		}
		low := int64(s.Min)
		if slices.Contains(p.New, s.Name) {
			low = max(low, 1)
		}
		if on[s.Name] > int64(s.Max) && s.Max < loom.Unlimited || on[s.Name] < low && !growing {
			st.broken = true
		}
	}
	st.relate()
	return st, nil
}

// join groups the services. It returns the groups that hold a service which is
// there already, and for the services of the others their group.
func (st *clusterModel) join(p Problem) (bound [][]string, of map[string]int) {
	find := leaders(p)
	members := map[string][]Service{}
	for _, s := range p.Services {
		members[find(s.Name)] = append(members[find(s.Name)], s)
	}
	of = map[string]int{}
	for _, s := range p.Services {
		all := members[s.Name]
		if slices.ContainsFunc(all, func(s Service) bool { return !slices.Contains(p.New, s.Name) }) {
			var names []string
			for _, m := range all {
				names = append(names, m.Name)
			}
			bound = append(bound, names)
			continue
		}
		if len(all) == 0 {
			continue
		}
		// What is added is on one node at least, even with an explicit minimum of 0.
		g := group{min: 1, max: unlimited}
		for _, m := range all {
			of[m.Name] = len(st.groups)
			g.members = append(g.members, m.Name)
			g.min = max(g.min, int64(m.Min))
			if m.Max < loom.Unlimited {
				g.max = min(g.max, int64(m.Max))
			}
		}
		st.groups = append(st.groups, g)
		st.low, st.high = append(st.low, g.min), append(st.high, g.max)
		if g.min > g.max {
			st.broken = true
		}
	}
	st.leads = make([]string, len(st.groups))
	for _, name := range p.New {
		if g, free := of[name]; free && st.leads[g] == "" {
			st.leads[g] = name
		}
	}
	return bound, of
}

// firstOf returns the group whose place is chosen when the service is placed.
func (st *clusterModel) firstOf(name string) (int, bool) {
	g := slices.Index(st.leads, name)
	return g, g >= 0
}

func (st *clusterModel) kind(p Problem, c Column, bound [][]string, of map[string]int) kind {
	k := kind{NodeLayout: c.NodeLayout, count: int64(c.Count), conf: make([]bitset, len(st.groups))}
	k.Services = slices.Clone(c.Services)
	for _, names := range bound {
		here := slices.ContainsFunc(names, func(n string) bool { return slices.Contains(c.Services, n) })
		for _, n := range names {
			switch {
			case !here || slices.Contains(c.Services, n):
			case slices.Contains(p.New, n):
				k.Services = append(k.Services, n)
			default:
				st.broken = true // one that is there lacks its companion
			}
		}
	}
	slices.Sort(k.Services)
	k.bare = len(k.Services) == 0
	if len(p.OnlyHardware) > 0 && !slices.Contains(p.OnlyHardware, c.HardwareType) ||
		len(p.OnlyImages) > 0 && !slices.Contains(p.OnlyImages, c.ImageType) {
		st.broken = true
	}
	k.accept = upTo(len(st.groups))
	for _, s := range p.Services {
		if allows(s.HardwareTypes, c.HardwareType) && allows(s.ImageTypes, c.ImageType) {
			continue
		}
		if g, free := of[s.Name]; free {
			k.accept.drop(g)
		} else if slices.Contains(k.Services, s.Name) {
			st.broken = true
		}
	}
	for _, set := range p.Cant {
		st.forbid(&k, set, of)
	}
	return k
}

// forbid applies a can't-coexist set to a kind of node.
func (st *clusterModel) forbid(k *kind, set Set, of map[string]int) {
	var groups bitset
	for _, name := range set.Services {
		if g, free := of[name]; free {
			groups.add(g)
		} else if !slices.Contains(k.Services, name) {
			return // never complete here
		}
	}
	switch groups.count() {
	case 0:
		st.broken = true
	case 1:
		k.accept.drop(groups.first())
	case 2:
		a := groups.pop()
		b := groups.pop()
		k.conf[a].add(b)
		k.conf[b].add(a)
	default:
		k.hyper = append(k.hyper, groups)
	}
}

// allows reports that a sorted list, where empty means any, has the name.
func allows(list []string, name string) bool {
	_, ok := slices.BinarySearch(list, name)
	return ok || len(list) == 0
}

// relate fills clash, touch and like.
func (st *clusterModel) relate() {
	n := len(st.groups)
	st.clash, st.touch = make([]bitset, n), make([]bitset, n)
	for g := range n {
		st.clash[g] = upTo(n)
		st.clash[g].drop(g)
	}
	first := map[string]int{}
	for i := range st.kinds {
		k := &st.kinds[i]
		for a := k.accept; !a.empty(); {
			g := a.pop()
			k.conf[g] = k.conf[g].and(k.accept)
			st.touch[g] = st.touch[g].or(k.conf[g])
			st.clash[g] = st.clash[g].minus(k.accept.minus(k.conf[g]))
		}
		for g := range k.conf {
			if !k.accept.has(g) {
				k.conf[g] = bitset{}
			}
		}
		k.hyper = slices.DeleteFunc(k.hyper, func(h bitset) bool { return !h.within(k.accept) })
		for _, h := range k.hyper {
			for s := h; !s.empty(); {
				g := s.pop()
				st.touch[g] = st.touch[g].or(h)
			}
		}
		key := fmt.Sprint(k.accept, k.conf, k.hyper, k.bare)
		if _, ok := first[key]; !ok {
			first[key] = i
		}
		k.like = first[key]
	}
	for g := range st.touch {
		st.touch[g].drop(g)
	}
}

// placement is a number of nodes of a kind with groups placed on them; open are the
// groups that may still join. nodes are the machines, where they matter.
type placement struct {
	kind      int
	set, open bitset
	count     int64
	nodes     []int
}

func (st *clusterModel) placements() []placement {
	out := make([]placement, len(st.kinds))
	for i, k := range st.kinds {
		out[i] = placement{kind: i, open: k.accept, count: k.count}
	}
	return out
}

// take gives n nodes of the placement with g on them, and the others.
func (st *clusterModel) take(s placement, g int, n int64) (with, without placement) {
	with, without = s, s
	with.count, without.count = n, s.count-n
	if s.nodes != nil {
		with.nodes, without.nodes = s.nodes[:n], s.nodes[n:]
	}
	k := &st.kinds[s.kind]
	with.set = s.set.with(g)
	with.open = s.open.minus(k.conf[g])
	with.open.drop(g)
	for _, h := range k.hyper {
		if left := h.minus(with.set); h.has(g) && left.count() == 1 {
			with.open = with.open.minus(left)
		}
	}
	return with, without
}
