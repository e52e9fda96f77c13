package solver

import (
	"slices"
	"sort"

	"loom/app/loom"
)

// oracle finds the preferred layout by trying everything: all service sets,
// the best types for each, all count vectors in descending order. It shares
// nothing with the solver but Problem.
func oracle(p Problem) (loom.Layout, bool) {
	var columns []loom.NodeLayout
	for mask := 1; mask < 1<<len(p.Services); mask++ {
		if c, ok := column(p, mask); ok {
			columns = append(columns, c)
		}
	}
	rank := func(list []string, name string) int {
		if i := slices.Index(list, name); i >= 0 {
			return i
		}
		return len(list)
	}
	var first loom.Preferences
	if p.Preferred != nil {
		first = *p.Preferred
	}
	sort.Slice(columns, func(i, j int) bool {
		a, b := columns[i], columns[j]
		if len(a.Services) != len(b.Services) {
			return len(a.Services) > len(b.Services)
		}
		if x, y := rank(first.HardwareTypes, a.HardwareType), rank(first.HardwareTypes, b.HardwareType); x != y {
			return x < y
		}
		if x, y := rank(first.ImageTypes, a.ImageType), rank(first.ImageTypes, b.ImageType); x != y {
			return x < y
		}
		if a.HardwareType != b.HardwareType {
			return rank(p.HardwareTypes, a.HardwareType) < rank(p.HardwareTypes, b.HardwareType)
		}
		if a.ImageType != b.ImageType {
			return rank(p.ImageTypes, a.ImageType) < rank(p.ImageTypes, b.ImageType)
		}
		return slices.Compare(a.Services, b.Services) < 0
	})
	at := map[string]int{}
	for i, s := range p.Services {
		at[s.Name] = i
	}
	on := make([]int, len(p.Services))
	counts := make([]int, len(columns))
	dead := map[string]bool{}
	var walk func(i, left int) bool
	walk = func(i, left int) bool {
		key := []byte{byte(i), byte(left)}
		for j, s := range p.Services {
			if s.Max >= loom.Unlimited {
				key = append(key, byte(min(on[j], s.Min)))
			} else {
				key = append(key, byte(on[j]))
			}
		}
		if dead[string(key)] {
			return false
		}
		short, wanted := 0, 0
		for j, s := range p.Services {
			short = max(short, s.Min-on[j])
			wanted += max(0, s.Min-on[j])
		}
		if short > left {
			return false
		}
		if i == len(columns) {
			return left == 0 && wanted == 0
		}
		most := left
		for _, s := range columns[i].Services {
			most = min(most, p.Services[at[s]].Max-on[at[s]])
		}
		for n := most; n >= 0; n-- {
			for _, s := range columns[i].Services {
				on[at[s]] += n
			}
			counts[i] = n
			ok := walk(i+1, left-n)
			for _, s := range columns[i].Services {
				on[at[s]] -= n
			}
			if ok {
				return true
			}
		}
		counts[i] = 0
		dead[string(key)] = true
		return false
	}
	if p.Machines < p.Size.Min || p.Machines > p.Size.Max || !walk(0, p.Machines) {
		return nil, false
	}
	var l loom.Layout
	for i, n := range counts {
		if n > 0 {
			l = append(l, loom.LayoutGroup{Count: n, NodeLayout: columns[i]})
		}
	}
	return l, true
}

// column is the node with the services of mask on the best types, if it is legal.
func column(p Problem, mask int) (loom.NodeLayout, bool) {
	var c loom.NodeLayout
	hardware, images := slices.Clone(p.HardwareTypes), slices.Clone(p.ImageTypes)
	for i, s := range p.Services {
		if mask&(1<<i) == 0 {
			continue
		}
		c.Services = append(c.Services, s.Name)
		if len(s.HardwareTypes) > 0 {
			hardware = slices.DeleteFunc(hardware, func(h string) bool { return !slices.Contains(s.HardwareTypes, h) })
		}
		if len(s.ImageTypes) > 0 {
			images = slices.DeleteFunc(images, func(h string) bool { return !slices.Contains(s.ImageTypes, h) })
		}
	}
	has := func(s string) bool { return slices.Contains(c.Services, s) }
	hasNot := func(s string) bool { return !has(s) }
	for _, set := range p.Must {
		if slices.ContainsFunc(set.Services, has) && slices.ContainsFunc(set.Services, hasNot) {
			return c, false
		}
	}
	for _, set := range p.Cant {
		if !slices.ContainsFunc(set.Services, hasNot) {
			return c, false
		}
	}
	if len(hardware) == 0 || len(images) == 0 {
		return c, false
	}
	c.HardwareType, c.ImageType = hardware[0], images[0]
	return c, true
}
