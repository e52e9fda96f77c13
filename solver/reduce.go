package solver

import (
	"fmt"
	"slices"
	"sort"

	"loom/app/loom"
)

// unlimited stands for loom.Unlimited in sums, which must not overflow or run out.
const unlimited = int64(1) << 40

// group is the services that share every node, by must-coexist sets.
type group struct {
	members  []string
	min, max int64
	hw, im   bitset // allowed types, as indexes of the problem's lists
}

// model is the reduced problem: only groups whose place is a
// question. Groups are in the order of their first member, so that comparing
// sets of groups compares their sorted service names.
type model struct {
	groups []group
	// free services go on every node; one of them makes any node legal.
	free []string
	// impossible is set when a group that is needed can be nowhere.
	impossible bool
	// conf holds per group the groups it can share no node with.
	conf []bitset
	// hyper are the sets of three and more groups that no node holds in full;
	// hyperOf lists them per group.
	hyper   []bitset
	hyperOf [][]int
	// near holds per group all groups that can matter for its place: conf, and
	// those it shares a set of hyper or a shortage of types with.
	near []bitset
	// hwNames and imNames are the types worth telling apart, preferred first.
	hwNames, imNames []string
	// domains are the kinds of nodes, preferred types first.
	domains []domain
	// widest are the groups of the domains, without those inside another.
	widest []bitset
	demand []int64
	most   []int64
}

// domain is a pair of types and the groups that may run on it.
type domain struct {
	hw, im int
	groups bitset
}

// reduce builds the model of a problem. It fails with loom.Invalid when there are
// more constrained groups than the search can tell apart.
func reduce(p Problem) (*model, error) {
	p.HardwareTypes = distinct(p.HardwareTypes, p.Services, func(s Service) []string { return s.HardwareTypes })
	p.ImageTypes = distinct(p.ImageTypes, p.Services, func(s Service) []string { return s.ImageTypes })
	if len(p.HardwareTypes) > maxGroups || len(p.ImageTypes) > maxGroups {
		return nil, tooLarge()
	}
	groups, of := joinServices(p)
	var placeable []bool
	m := &model{hwNames: p.HardwareTypes, imNames: p.ImageTypes}
	cants := make([][]int, 0, len(p.Cant))
	for _, g := range groups {
		ok := g.max > 0 && g.min <= g.max && !g.hw.empty() && !g.im.empty()
		placeable = append(placeable, ok)
	}
	for _, set := range p.Cant {
		var of1 []int
		for _, s := range set.Services {
			if g, ok := of[s]; ok && !slices.Contains(of1, g) {
				of1 = append(of1, g)
			}
		}
		if len(of1) == 1 {
			placeable[of1[0]] = false
			continue
		}
		slices.Sort(of1)
		cants = append(cants, of1)
	}
	for i, g := range groups {
		if !placeable[i] && g.min > 0 {
			m.impossible = true
		}
	}
	// A group that is nowhere completes no set.
	cants = slices.DeleteFunc(cants, func(set []int) bool {
		return slices.ContainsFunc(set, func(g int) bool { return !placeable[g] })
	})
	hwAll, imAll := upTo(len(p.HardwareTypes)), upTo(len(p.ImageTypes))
	bound := make([]bool, len(groups))
	for _, set := range cants {
		for _, g := range set {
			bound[g] = true
		}
	}
	at := make([]int, len(groups))
	for i, g := range groups {
		at[i] = -1
		switch {
		case !placeable[i]:
		case !bound[i] && g.hw == hwAll && g.im == imAll && g.max >= unlimited && g.min <= 1:
			m.free = append(m.free, g.members...)
		default:
			at[i] = len(m.groups)
			m.groups = append(m.groups, g)
		}
	}
	if len(m.groups) > maxGroups {
		return nil, tooLarge()
	}
	slices.Sort(m.free)
	m.connect(cants, at)
	m.shapes(len(p.HardwareTypes), len(p.ImageTypes))
	// A preferred image counts before the name of the hardware type.
	order := byTypes(p.Preferred)
	types := func(d domain) loom.NodeLayout {
		return loom.NodeLayout{HardwareType: m.hwNames[d.hw], ImageType: m.imNames[d.im]}
	}
	slices.SortStableFunc(m.domains, func(a, b domain) int { return order(types(a), types(b)) })
	for _, g := range m.groups {
		m.demand = append(m.demand, g.min)
		m.most = append(m.most, g.max)
	}
	return m, nil
}

func tooLarge() error {
	return loom.NewError(loom.Invalid, "The template sets constraints on more than %d services or tells more than %d types apart; ask for fewer services or give fewer types in constraints.services.", maxGroups, maxGroups)
}

// distinct keeps the first of the types that the same services list: the later
// ones are never preferred to it.
func distinct(types []string, services []Service, list func(Service) []string) []string {
	listed := map[string][]byte{}
	for i, s := range services {
		for _, t := range list(s) {
			listed[t] = fmt.Appendf(listed[t], "%d,", i)
		}
	}
	seen := map[string]bool{}
	var out []string
	for _, t := range types {
		if key := string(listed[t]); !seen[key] {
			seen[key] = true
			out = append(out, t)
		}
	}
	return out
}

// leaders joins services along must-coexist sets and tells the first of those that
// go with one.
func leaders(p Problem) func(string) string {
	parent := map[string]string{}
	var find func(string) string
	find = func(s string) string {
		if parent[s] == s {
			return s
		}
		parent[s] = find(parent[s])
		return parent[s]
	}
	for _, s := range p.Services {
		parent[s.Name] = s.Name
	}
	for _, set := range p.Must {
		for _, s := range set.Services[1:] {
			a, b := find(set.Services[0]), find(s)
			if b < a {
				a, b = b, a
			}
			// The smaller name leads, so groups keep the order of services.
			parent[b] = a
		}
	}
	return find
}

// joinServices merges services along must-coexist sets; the map gives the group
// of each service.
func joinServices(p Problem) ([]group, map[string]int) {
	find := leaders(p)
	var groups []group
	of := map[string]int{}
	for _, s := range p.Services {
		lead := find(s.Name)
		if lead == s.Name {
			of[lead] = len(groups)
			groups = append(groups, group{max: unlimited, hw: upTo(len(p.HardwareTypes)), im: upTo(len(p.ImageTypes))})
		}
		g := &groups[of[lead]]
		of[s.Name] = of[lead]
		g.members = append(g.members, s.Name)
		g.min = max(g.min, int64(s.Min))
		if s.Max < loom.Unlimited {
			g.max = min(g.max, int64(s.Max))
		}
		g.hw = g.hw.and(typeBits(p.HardwareTypes, s.HardwareTypes))
		g.im = g.im.and(typeBits(p.ImageTypes, s.ImageTypes))
	}
	return groups, of
}

// typeBits marks the names of all that are in allowed; empty allows any.
func typeBits(all, allowed []string) bitset {
	var s bitset
	for i, name := range all {
		if len(allowed) == 0 {
			s.add(i)
		} else if _, ok := slices.BinarySearch(allowed, name); ok {
			s.add(i)
		}
	}
	return s
}

// connect fills conf, hyper and near.
func (m *model) connect(cants [][]int, at []int) {
	n := len(m.groups)
	m.conf, m.near, m.hyperOf = make([]bitset, n), make([]bitset, n), make([][]int, n)
	for _, set := range cants {
		if len(set) == 2 {
			a, b := at[set[0]], at[set[1]]
			m.conf[a].add(b)
			m.conf[b].add(a)
		}
	}
	for a := range m.groups {
		for b := range a {
			ga, gb := &m.groups[a], &m.groups[b]
			if !ga.hw.meets(gb.hw) || !ga.im.meets(gb.im) {
				m.conf[a].add(b)
				m.conf[b].add(a)
			}
		}
	}
	sort.SliceStable(cants, func(i, j int) bool { return len(cants[i]) < len(cants[j]) })
	for _, set := range cants {
		if len(set) < 3 {
			continue
		}
		var s bitset
		for _, g := range set {
			s.add(at[g])
		}
		m.addHyper(s)
	}
	full := func(get func(*group) bitset) bitset {
		var all bitset
		for i := range m.groups {
			all = all.or(get(&m.groups[i]))
		}
		return all
	}
	// Three groups may lack a common type though each two have one. Whoever is
	// limited in types may matter to all others that are.
	for _, get := range []func(*group) bitset{func(g *group) bitset { return g.hw }, func(g *group) bitset { return g.im }} {
		all := full(get)
		var limited bitset
		for i := range m.groups {
			if get(&m.groups[i]) != all {
				limited.add(i)
			}
		}
		if !jointly(m.groups, limited, get) {
			for s := limited; !s.empty(); {
				g := s.pop()
				m.near[g] = m.near[g].or(limited)
			}
		}
	}
	for g := range m.groups {
		m.near[g] = m.near[g].or(m.conf[g])
		for _, h := range m.hyperOf[g] {
			m.near[g] = m.near[g].or(m.hyper[h])
		}
		m.near[g].drop(g)
	}
}

// jointly reports that one type suits all of the groups, so that types are no
// matter among them.
func jointly(groups []group, of bitset, get func(*group) bitset) bool {
	common := upTo(maxGroups)
	for of := of; !of.empty(); {
		common = common.and(get(&groups[of.pop()]))
	}
	return !common.empty()
}

// addHyper keeps s unless a smaller set or a pair says the same already.
func (m *model) addHyper(s bitset) {
	for _, h := range m.hyper {
		if h.within(s) {
			return
		}
	}
	for t := s; !t.empty(); {
		if m.conf[t.pop()].meets(s) {
			return
		}
	}
	for t := s; !t.empty(); {
		g := t.pop()
		m.hyperOf[g] = append(m.hyperOf[g], len(m.hyper))
	}
	m.hyper = append(m.hyper, s)
}

// shapes fills domains and widest. A pair of types that takes no group which an
// earlier pair does not take as well is never the best one.
func (m *model) shapes(hw, im int) {
	var hwSets, imSets []bitset
	for i := range hw {
		hwSets = append(hwSets, m.acceptors(i, func(g *group) bitset { return g.hw }))
	}
	for i := range im {
		imSets = append(imSets, m.acceptors(i, func(g *group) bitset { return g.im }))
	}
	for _, h := range useful(hwSets) {
		for _, i := range useful(imSets) {
			m.domains = append(m.domains, domain{h, i, hwSets[h].and(imSets[i])})
		}
	}
	for i, d := range m.domains {
		inside := slices.ContainsFunc(m.domains[:i], func(e domain) bool { return d.groups.within(e.groups) }) ||
			slices.ContainsFunc(m.domains[i+1:], func(e domain) bool { return d.groups != e.groups && d.groups.within(e.groups) })
		if !inside {
			m.widest = append(m.widest, d.groups)
		}
	}
}

func (m *model) acceptors(i int, get func(*group) bitset) bitset {
	var s bitset
	for g := range m.groups {
		if get(&m.groups[g]).has(i) {
			s.add(g)
		}
	}
	return s
}

// useful returns the indexes of the sets that are in no earlier one.
func useful(sets []bitset) []int {
	var out []int
	for i, s := range sets {
		if !slices.ContainsFunc(sets[:i], func(e bitset) bool { return s.within(e) }) {
			out = append(out, i)
		}
	}
	return out
}
