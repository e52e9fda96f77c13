package solver

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// Valid checks a layout against a problem, constraint by constraint and without
// any of the search's machinery, and returns what it breaks: nothing for a valid
// layout. Preference plays no role.
func Valid(p Problem, l loom.Layout) []loom.Reason {
	v := validator{p: p, on: map[string]int{}}
	if n := l.Machines(); n != p.Machines {
		v.broken("M", "The layout has %s, %s asked for.", count(n, "node"), are(p.Machines, "node"))
	}
	if p.Machines < p.Size.Min {
		v.broken("size.min", "The template wants at least %s.", count(p.Size.Min, "node"))
	}
	if p.Machines > p.Size.Max {
		v.broken("size.max", "%s allowed.", capital(atMost(int64(p.Size.Max), "node"))+isAre(p.Size.Max))
	}
	for i, g := range l {
		v.group(i, g)
	}
	for _, s := range p.Services {
		if v.on[s.Name] < s.Min {
			v.broken("quantity("+s.Name+").min", "%s is on %s and must be on at least %d.", s.Name, count(v.on[s.Name], "node"), s.Min)
		}
		if v.on[s.Name] > s.Max {
			v.broken("quantity("+s.Name+").max", "%s is on %s and may be on %s.", s.Name, count(v.on[s.Name], "node"), atMost(int64(s.Max), "node"))
		}
	}
	return v.reasons
}

type validator struct {
	p       Problem
	on      map[string]int // nodes per service
	reasons []loom.Reason
}

func (v *validator) broken(id, format string, args ...any) {
	r := loom.Reason{Code: CodeUnsat, ID: id, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(v.reasons, r) {
		v.reasons = append(v.reasons, r)
	}
}

func (v *validator) group(i int, g loom.LayoutGroup) {
	if g.Count < 1 {
		v.broken("layout", "Group %d of the layout has %d nodes.", i+1, g.Count)
	}
	if len(g.Services) == 0 {
		v.broken("layout", "Group %d of the layout has no service.", i+1)
	}
	if !slices.IsSorted(g.Services) || len(slices.Compact(slices.Clone(g.Services))) != len(g.Services) {
		v.broken("layout", "The services of group %d of the layout are not sorted, or one appears twice.", i+1)
	}
	if !slices.Contains(v.p.HardwareTypes, g.HardwareType) {
		v.broken("hardwaretype", "Hardware type “%s” cannot be used.", g.HardwareType)
	}
	if !slices.Contains(v.p.ImageTypes, g.ImageType) {
		v.broken("imagetype", "Image type “%s” cannot be used.", g.ImageType)
	}
	for _, name := range g.Services {
		v.on[name] += g.Count
		at := slices.IndexFunc(v.p.Services, func(s Service) bool { return s.Name == name })
		if at < 0 {
			v.broken("service("+name+")", "%s was not asked for.", name)
			continue
		}
		s := v.p.Services[at]
		if len(s.HardwareTypes) > 0 && !slices.Contains(s.HardwareTypes, g.HardwareType) {
			v.broken("hardware("+name+")", "%s may not run on hardware type %s.", name, g.HardwareType)
		}
		if len(s.ImageTypes) > 0 && !slices.Contains(s.ImageTypes, g.ImageType) {
			v.broken("image("+name+")", "%s may not run on image type %s.", name, g.ImageType)
		}
	}
	here := func(set []string) int {
		n := 0
		for _, name := range set {
			if slices.Contains(g.Services, name) {
				n++
			}
		}
		return n
	}
	for _, set := range v.p.Must {
		if n := here(set.Services); n > 0 && n < len(set.Services) {
			v.broken(fmt.Sprintf("must#%d", set.Index), "%s must share every node they are on.", list(set.Services))
		}
	}
	for _, set := range v.p.Cant {
		if here(set.Services) == len(set.Services) {
			v.broken(fmt.Sprintf("cant#%d", set.Index), "%s can't share a node.", list(set.Services))
		}
	}
}
