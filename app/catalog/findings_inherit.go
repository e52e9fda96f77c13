package catalog

import (
	"fmt"
	"strconv"

	"loom/app/loom"
)

// ignored looks for what a partial template says in vain: templates take neither
// constraints nor administration from it.
func (f *finder) ignored(p *loom.PartialTemplate) {
	c, a := p.Constraints, p.Administration
	for _, part := range []struct {
		given bool
		word  string
		at    []any
	}{
		{len(c.Layout.MustCoexist)+len(c.Layout.CantCoexist) > 0, "rules about which services share nodes", []any{"constraints", "layout"}},
		{len(c.Services) > 0, "limits of services", []any{"constraints", "services"}},
		{sized(c), "a size", []any{"constraints", "size"}},
		{a.Lease != (loom.LeaseRule{}), "a lease", []any{"administration", "leaseduration"}},
		{a.OnFailure != "", "what happens on failure", []any{"administration", "onFailure"}},
		{a.Health != (loom.HealthRule{}), "how often nodes are checked", []any{"administration", "health"}},
		{a.Repair != (loom.RepairPolicy{}), "what is repaired", []any{"administration", "repair"}},
	} {
		if part.given {
			f.say(loom.FindingWarning, loom.FindingPointless, pointer(part.at...), "",
				fmt.Sprintf("Templates do not take %s from a partial template, so this is without effect.", part.word),
				"Say it in the templates that include this one, or in one that they extend.")
		}
	}
}

// sized reports whether a size is given; stored entries have it filled in.
func sized(c loom.Constraints) bool {
	low, high := c.Size.Bounds()
	return low != 1 || high != loom.Unlimited
}

// widened looks for limits of what a template builds on that do not hold for it,
// and that it does not set itself.
func (f *finder) widened(t *loom.Template, merged loom.Template) {
	for i, include := range t.Includes {
		p, there := f.entries[loom.KindPartialTemplate][include.Name].(*loom.PartialTemplate)
		if there && (wider(merged.Constraints, p.Constraints) || longer(merged.Administration.Lease, p.Administration.Lease)) {
			f.say(loom.FindingWarning, loom.FindingPointless, pointer("includes", i, "name"), include.Name,
				fmt.Sprintf("Limits of size or lease in the partial template “%s” do not apply: templates take neither constraints nor administration from parts.", include.Name),
				"Set the limits in this template.")
		}
	}
	if t.Extends == nil {
		return
	}
	parent, there := f.entries[loom.KindTemplate][t.Extends.Name].(*loom.Template)
	if !there {
		return
	}
	above := f.merge(parent)
	if above.err != nil {
		return // said about the parent
	}
	if own, lease := t.Administration.Lease, above.template.Administration.Lease; own != (loom.LeaseRule{}) {
		var lost []string
		for _, l := range []struct {
			name       string
			own, above int64
		}{{"initial", own.Initial, lease.Initial}, {"maximum", own.Max, lease.Max}, {"step", own.Step, lease.Step}} {
			if l.own == 0 && l.above != 0 {
				lost = append(lost, fmt.Sprintf("%s (%s)", l.name, loom.Duration(l.above)))
			}
		}
		from := f.source(parent, func(t *loom.Template) bool { return t.Administration.Lease != (loom.LeaseRule{}) })
		f.replaced("lease", lost, from, "administration", "leaseduration")
	}
	if sized(t.Constraints) {
		var lost []string
		low, high := t.Constraints.Size.Bounds()
		least, most := above.template.Constraints.Size.Bounds()
		if low == 1 && least > 1 {
			lost = append(lost, "minimum ("+strconv.Itoa(least)+")")
		}
		if high == loom.Unlimited && most != loom.Unlimited {
			lost = append(lost, "maximum ("+strconv.Itoa(most)+")")
		}
		f.replaced("size", lost, f.source(parent, func(t *loom.Template) bool { return sized(t.Constraints) }), "constraints", "size")
	}
}

func (f *finder) replaced(word string, lost []string, from string, at ...any) {
	if len(lost) == 0 {
		return
	}
	verb := "does"
	if len(lost) > 1 {
		verb = "do"
	}
	f.say(loom.FindingWarning, loom.FindingPointless, pointer(at...), from,
		fmt.Sprintf("The %s is replaced whole: %s of the template “%s” %s not apply.", word, loom.And(lost), from, verb),
		"Repeat here what is to hold, or take this out so that all of it comes from there.")
}

// source names the nearest template from t upwards that says something. The chain
// has an end, as it was merged.
func (f *finder) source(t *loom.Template, says func(*loom.Template) bool) string {
	for !says(t) && t.Extends != nil {
		next, there := f.entries[loom.KindTemplate][t.Extends.Name].(*loom.Template)
		if !there {
			break
		}
		t = next
	}
	return t.Name
}

// wider reports whether a size allows clusters that another does not.
func wider(c, than loom.Constraints) bool {
	low, high := c.Size.Bounds()
	least, most := than.Size.Bounds()
	return low < least || high > most
}

// longer reports whether a rule allows leases that another does not; 0 is no
// limit.
func longer(l, than loom.LeaseRule) bool {
	beyond := func(a, b int64) bool { return b != 0 && (a == 0 || a > b) }
	return beyond(l.Initial, than.Initial) || beyond(l.Max, than.Max) || beyond(l.Step, than.Step)
}
