package catalog

import (
	"fmt"
	"strconv"

	"loom/app/loom"
	"loom/planner/macro"
)

// ignored looks for what a partial template says in vain: templates take neither
// constraints nor administration from it (lifecycle.md 6).
func (f *finder) ignored(p *loom.PartialTemplate) {
	c, a := p.Constraints, p.Administration
	for _, part := range []struct {
		given bool
		at    []any
	}{
		{len(c.Layout.MustCoexist)+len(c.Layout.CantCoexist) > 0, []any{"constraints", "layout"}},
		{len(c.Services) > 0, []any{"constraints", "services"}},
		{sized(c), []any{"constraints", "size"}},
		{a.Lease != (loom.LeaseRule{}), []any{"administration", "leaseduration"}},
		{a.OnFailure != "", []any{"administration", "onFailure"}},
	} {
		if part.given {
			f.say(loom.FindingWarning, loom.FindingPointless, pointer(part.at...), "",
				fmt.Sprintf("Templates do not take “%s” from a partial template, so this is without effect.", part.at[1]),
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
		}{{"initial", own.Initial, lease.Initial}, {"max", own.Max, lease.Max}, {"step", own.Step, lease.Step}} {
			if l.own == 0 && l.above != 0 {
				lost = append(lost, fmt.Sprintf("“%s” (%s)", l.name, loom.Duration(l.above)))
			}
		}
		from := f.source(parent, func(t *loom.Template) bool { return t.Administration.Lease != (loom.LeaseRule{}) })
		f.replaced(lost, from, "administration", "leaseduration")
	}
	if sized(t.Constraints) {
		var lost []string
		low, high := t.Constraints.Size.Bounds()
		least, most := above.template.Constraints.Size.Bounds()
		if low == 1 && least > 1 {
			lost = append(lost, "“min” ("+strconv.Itoa(least)+")")
		}
		if high == loom.Unlimited && most != loom.Unlimited {
			lost = append(lost, "“max” ("+strconv.Itoa(most)+")")
		}
		f.replaced(lost, f.source(parent, func(t *loom.Template) bool { return sized(t.Constraints) }), "constraints", "size")
	}
}

func (f *finder) replaced(lost []string, from string, at ...any) {
	if len(lost) == 0 {
		return
	}
	verb := "does"
	if len(lost) > 1 {
		verb = "do"
	}
	f.say(loom.FindingWarning, loom.FindingPointless, pointer(at...), from,
		fmt.Sprintf("“%s” is replaced whole: %s of the template “%s” %s not apply.", at[1], enumerate(lost, "and"), from, verb),
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

// strangers looks for macros in a template's config that name services which no
// cluster made from it can have. What others build on may get its services there.
func (f *finder) strangers(t *loom.Template, merged loom.Template) {
	mayHave := map[string]bool{}
	for _, name := range merged.Defaults.Services {
		mayHave[name] = true
	}
	for _, name := range merged.Compatibility.Services {
		mayHave[name] = true
	}
	open := len(merged.Compatibility.Services) == 0 || f.extended[t.Name]
	for _, m := range macro.Mentions(t.Defaults.Config) {
		_, there := f.services[m.Service]
		if mayHave[m.Service] || open && there {
			continue
		}
		message := fmt.Sprintf("The macro “%s” names the service “%s”, which is neither among the services of the template nor compatible with it.", m.Macro, m.Service)
		if !there {
			message = fmt.Sprintf("The macro “%s” names the service “%s”, which does not exist.", m.Macro, m.Service)
		}
		f.say(loom.FindingWarning, loom.FindingMacro, pointer("defaults", "config")+m.Pointer, m.Macro, message,
			"Correct the name, or add the service to the template's defaults or compatibility.")
	}
}
