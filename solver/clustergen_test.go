package solver

import (
	"math/rand/v2"
	"slices"

	"loom/app/loom"
)

// optional gives some services of a cluster an explicit minimum of 0, so that they
// may vanish, and some of them something to require, to provide or to conflict
// with.
func optional(r *rand.Rand, c *Cluster) {
	present := c.services()
	for _, name := range present {
		if r.IntN(3) == 0 {
			sc := c.Input.Template.Constraints.Services[name]
			zero, q := 0, loom.Quantities{}
			if sc.Quantities != nil {
				q = *sc.Quantities
			}
			q.Min = &zero
			sc.Quantities = &q
			c.Input.Template.Constraints.Services[name] = sc
		}
		service, other := c.Input.Catalog[name], present[r.IntN(len(present))]
		switch r.IntN(12) {
		case 0:
			service.Dependencies.Install.Requires = []string{other}
		case 1:
			service.Dependencies.Runtime.Requires = []string{"extra"}
		case 2:
			service.Dependencies.Provides = []string{"extra"}
		case 3:
			service.Dependencies.Conflicts = []string{other}
		case 4:
			if len(present) > 1 && r.IntN(3) == 0 {
				c.Input.Template.Compatibility.Services = slices.DeleteFunc(slices.Clone(c.Input.Template.Compatibility.Services), func(s string) bool { return s == name })
				if len(c.Input.Template.Compatibility.Services) == 0 {
					c.Input.Template.Compatibility.Services = slices.DeleteFunc(slices.Clone(present), func(s string) bool { return s == name })
				}
			}
		}
		c.Input.Catalog[name] = service
	}
}

// disturb adds what speaks against a change: sizes, chosen types, types without an
// entry for the provider, compatibility lists, services that refuse.
func disturb(r *rand.Rand, c *Cluster) {
	in := &c.Input
	if r.IntN(4) == 0 {
		low := 1 + r.IntN(4)
		in.Template.Constraints.Size = loom.SizeConstraint{Min: low, Max: low + r.IntN(4)}
	}
	if r.IntN(4) == 0 {
		in.HardwareType = "h1"
	}
	if r.IntN(6) == 0 {
		in.ImageType = []string{"i1", "gone"}[r.IntN(2)]
	}
	if r.IntN(5) == 0 {
		in.Template.Compatibility.HardwareTypes = []string{"h1"}
	}
	if r.IntN(5) == 0 {
		in.HardwareTypes[r.IntN(len(in.HardwareTypes))].ProviderMap = nil
	}
	if s := c.services(); r.IntN(5) == 0 {
		service := in.Catalog[s[0]]
		service.Shrink = "refuse"
		in.Catalog[s[0]] = service
	}
	if s := c.services(); r.IntN(25) == 0 {
		delete(in.Catalog, s[0])
	}
}
