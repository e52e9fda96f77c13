package solver

import (
	"cmp"
	"slices"
	"sort"

	"loom/app/loom"
)

// breaks reports that nodes break a rule of the template, read straight from it. It shares nothing with the solver.
func breaks(in Input, nodes []loom.NodeLayout) bool {
	on := map[string]int{}
	for _, n := range nodes {
		if len(n.Services) == 0 {
			return true
		}
		for _, s := range n.Services {
			on[s]++
		}
	}
	c := in.Template.Constraints
	for _, n := range nodes {
		has := func(s string) bool { return slices.Contains(n.Services, s) }
		for _, set := range c.Layout.MustCoexist {
			some, all := false, true
			for _, s := range set {
				if on[s] > 0 {
					some, all = some || has(s), all && has(s)
				}
			}
			if some && !all {
				return true
			}
		}
		for _, set := range c.Layout.CantCoexist {
			all := len(set) > 0
			for _, s := range set {
				all = all && has(s)
			}
			if all {
				return true
			}
		}
		for _, s := range n.Services {
			if h := c.Services[s].HardwareTypes; len(h) > 0 && !slices.Contains(h, n.HardwareType) {
				return true
			}
			if i := c.Services[s].ImageTypes; len(i) > 0 && !slices.Contains(i, n.ImageType) {
				return true
			}
		}
		if h := in.Template.Compatibility.HardwareTypes; len(h) > 0 && !slices.Contains(h, n.HardwareType) {
			return true
		}
		if i := in.Template.Compatibility.ImageTypes; len(i) > 0 && !slices.Contains(i, n.ImageType) {
			return true
		}
	}
	for s, n := range on {
		if q := c.Services[s].Quantities; q != nil {
			if q.Min != nil && n < *q.Min || q.Max != nil && n > *q.Max {
				return true
			}
		}
	}
	low, high := c.Size.Bounds()
	return len(nodes) < low || len(nodes) > high
}

// better compares node layouts in the order of preference.
func better(in Input, a, b loom.NodeLayout) int {
	place := func(list []string, name string) int {
		for i, n := range list {
			if n == name {
				return i
			}
		}
		return 1000
	}
	var pref loom.Preferences
	if in.Template.Preferences != nil {
		pref = *in.Template.Preferences
	}
	if len(a.Services) != len(b.Services) {
		return len(b.Services) - len(a.Services)
	}
	if d := place(pref.HardwareTypes, a.HardwareType) - place(pref.HardwareTypes, b.HardwareType); d != 0 {
		return d
	}
	if d := place(pref.ImageTypes, a.ImageType) - place(pref.ImageTypes, b.ImageType); d != 0 {
		return d
	}
	if d := cmp.Compare(a.HardwareType, b.HardwareType); d != 0 {
		return d
	}
	if d := cmp.Compare(a.ImageType, b.ImageType); d != 0 {
		return d
	}
	return slices.Compare(a.Services, b.Services)
}

// addOracle is the rule word by word: the next service on as many nodes as
// possible, then one less; distributions over the layouts from the first on.
func addOracle(in Input, nodes []loom.NodeLayout, add []string) ([]loom.NodeLayout, bool) {
	if len(add) == 0 {
		return nodes, !breaks(in, nodes)
	}
	order := make([]int, len(nodes)) // nodes by layout, then number
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return better(in, nodes[order[i]], nodes[order[j]]) < 0 })
	var classes [][]int
	for i, n := range order {
		if i > 0 && better(in, nodes[order[i-1]], nodes[n]) == 0 {
			classes[len(classes)-1] = append(classes[len(classes)-1], n)
		} else {
			classes = append(classes, []int{n})
		}
	}
	low, high := 1, len(nodes)
	if q := in.Template.Constraints.Services[add[0]].Quantities; q != nil {
		if q.Min != nil {
			low = max(low, *q.Min)
		}
		if q.Max != nil {
			high = min(high, *q.Max)
		}
	}
	var spread func(class, left int, now []loom.NodeLayout) ([]loom.NodeLayout, bool)
	spread = func(class, left int, now []loom.NodeLayout) ([]loom.NodeLayout, bool) {
		if class == len(classes) {
			if left > 0 {
				return nil, false
			}
			return addOracle(in, now, add[1:])
		}
		for n := min(left, len(classes[class])); n >= 0; n-- {
			next := slices.Clone(now)
			for _, i := range classes[class][:n] {
				next[i].Services = slices.Sorted(slices.Values(append(slices.Clone(next[i].Services), add[0])))
			}
			if found, ok := spread(class+1, left-n, next); ok {
				return found, true
			}
		}
		return nil, false
	}
	for total := high; total >= low; total-- {
		if found, ok := spread(0, total, nodes); ok {
			return found, true
		}
	}
	return nil, false
}

// addOrder sorts services by the order they are placed in: the limited ones by maximum, then minimum
// descending, then name; the rest by name.
func addOrder(in Input, add []string) []string {
	add = slices.Sorted(slices.Values(add))
	type row struct{ listed, low, high int }
	of := func(s string) row {
		sc, ok := in.Template.Constraints.Services[s]
		if !ok {
			return row{1, 0, 0}
		}
		r := row{0, -1, loom.Unlimited}
		if sc.Quantities != nil && sc.Quantities.Min != nil {
			r.low = -*sc.Quantities.Min
		}
		if sc.Quantities != nil && sc.Quantities.Max != nil {
			r.high = *sc.Quantities.Max
		}
		return r
	}
	slices.SortStableFunc(add, func(a, b string) int {
		x, y := of(a), of(b)
		return cmp.Or(x.listed-y.listed, x.high-y.high, x.low-y.low)
	})
	return add
}

// expandOracle tries all ways to add nodes, in descending order of their counts.
func expandOracle(in Input, p Problem, nodes []loom.NodeLayout, more int) ([]loom.NodeLayout, bool) {
	var columns []loom.NodeLayout
	for mask := 1; mask < 1<<len(p.Services); mask++ {
		if c, ok := column(p, mask); ok {
			columns = append(columns, c)
		}
	}
	slices.SortFunc(columns, func(a, b loom.NodeLayout) int { return better(in, a, b) })
	var walk func(i, left int, now []loom.NodeLayout) ([]loom.NodeLayout, bool)
	walk = func(i, left int, now []loom.NodeLayout) ([]loom.NodeLayout, bool) {
		if left == 0 {
			return now, !breaks(in, now)
		}
		if i == len(columns) {
			return nil, false
		}
		for n := left; n >= 0; n-- {
			next := slices.Clone(now)
			for range n {
				next = append(next, columns[i])
			}
			if found, ok := walk(i+1, left-n, next); ok {
				return found, true
			}
		}
		return nil, false
	}
	return walk(0, more, nodes)
}

// shrinkOracle takes, from the last node in the order of layout and number, what
// can go, and gives the indexes that do.
func shrinkOracle(in Input, nodes []loom.NodeLayout, less int) ([]int, bool) {
	order := make([]int, len(nodes))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return better(in, nodes[order[i]], nodes[order[j]]) < 0 })
	slices.Reverse(order)
	var pick func(at, left int, gone []int) ([]int, bool)
	pick = func(at, left int, gone []int) ([]int, bool) {
		if left == 0 {
			return gone, !shrunkBreaks(in, nodes, gone)
		}
		if at == len(order) {
			return nil, false
		}
		if found, ok := pick(at+1, left-1, append(slices.Clone(gone), order[at])); ok {
			return found, true
		}
		return pick(at+1, left, gone)
	}
	return pick(0, less, nil)
}

// shrunkBreaks also wants every service to stay, unless its minimum is 0, and
// leaves alone what refuses.
func shrunkBreaks(in Input, nodes []loom.NodeLayout, gone []int) bool {
	var left []loom.NodeLayout
	was, is := map[string]int{}, map[string]int{}
	for i, n := range nodes {
		for _, s := range n.Services {
			was[s]++
			if slices.Contains(gone, i) && in.Catalog[s].Shrink == "refuse" {
				return true
			}
			if !slices.Contains(gone, i) {
				is[s]++
			}
		}
		if !slices.Contains(gone, i) {
			left = append(left, n)
		}
	}
	for s := range was {
		q := in.Template.Constraints.Services[s].Quantities
		if is[s] == 0 && (q == nil || q.Min == nil || *q.Min > 0) {
			return true
		}
	}
	return breaks(in, left) || unmet(in, is)
}

// unmet reports that services on the nodes that are left lack what they require,
// or conflict.
func unmet(in Input, on map[string]int) bool {
	for s, n := range on {
		d := in.Catalog[s].Dependencies
		if _, known := in.Catalog[s]; !known && n > 0 {
			return true
		}
		for _, name := range slices.Concat(d.Install.Requires, d.Runtime.Requires) {
			found := false
			for other, m := range on {
				found = found || n > 0 && m > 0 && (other == name || slices.Contains(in.Catalog[other].Dependencies.Provides, name))
			}
			if n > 0 && !found {
				return true
			}
		}
		for _, name := range d.Conflicts {
			for other, m := range on {
				if n > 0 && m > 0 && other != s && (other == name || slices.Contains(in.Catalog[other].Dependencies.Provides, name)) {
					return true
				}
			}
		}
		if allowed := in.Template.Compatibility.Services; n > 0 && len(allowed) > 0 && !slices.Contains(allowed, s) {
			return true
		}
	}
	return false
}

// createOracle tries all service sets on all types, then all counts of them in
// descending order.
func createOracle(in Input) ([]loom.NodeLayout, bool) {
	services := slices.Sorted(slices.Values(in.Services))
	var columns []loom.NodeLayout
	rules := in
	// Only what a node by itself can break; sets count the services asked for.
	rules.Template.Constraints.Size, rules.Template.Constraints.Services = loom.SizeConstraint{}, map[string]loom.ServiceConstraint{}
	for name, sc := range in.Template.Constraints.Services {
		sc.Quantities = nil
		rules.Template.Constraints.Services[name] = sc
	}
	for mask := 1; mask < 1<<len(services); mask++ {
		var here []string
		for i, s := range services {
			if mask&(1<<i) != 0 {
				here = append(here, s)
			}
		}
		var fits []loom.NodeLayout
		for _, h := range in.HardwareTypes {
			for _, i := range in.ImageTypes {
				n := loom.NodeLayout{HardwareType: h.Name, ImageType: i.Name, Services: here}
				if !breaks(rules, []loom.NodeLayout{n}) && !splits(in, services, here) {
					fits = append(fits, n)
				}
			}
		}
		if len(fits) > 0 {
			columns = append(columns, slices.MinFunc(fits, func(a, b loom.NodeLayout) int { return better(in, a, b) }))
		}
	}
	slices.SortFunc(columns, func(a, b loom.NodeLayout) int { return better(in, a, b) })
	var walk func(i, left int, now []loom.NodeLayout) ([]loom.NodeLayout, bool)
	walk = func(i, left int, now []loom.NodeLayout) ([]loom.NodeLayout, bool) {
		if left == 0 {
			return now, !breaks(in, now) && !absent(in, services, now)
		}
		if i == len(columns) {
			return nil, false
		}
		for n := left; n >= 0; n-- {
			next := slices.Clone(now)
			for range n {
				next = append(next, columns[i])
			}
			if found, ok := walk(i+1, left-n, next); ok {
				return found, true
			}
		}
		return nil, false
	}
	return walk(0, in.Machines, nil)
}

// splits reports that services of a must-coexist set, as far as asked for, are
// parted.
func splits(in Input, asked, here []string) bool {
	for _, set := range in.Template.Constraints.Layout.MustCoexist {
		some, all := false, true
		for _, s := range set {
			if slices.Contains(asked, s) {
				some, all = some || slices.Contains(here, s), all && slices.Contains(here, s)
			}
		}
		if some && !all {
			return true
		}
	}
	return false
}

// absent reports that a service asked for is nowhere, without an explicit 0.
func absent(in Input, services []string, nodes []loom.NodeLayout) bool {
	return slices.ContainsFunc(services, func(s string) bool {
		q := in.Template.Constraints.Services[s].Quantities
		return (q == nil || q.Min == nil || *q.Min > 0) &&
			!slices.ContainsFunc(nodes, func(n loom.NodeLayout) bool { return slices.Contains(n.Services, s) })
	})
}
