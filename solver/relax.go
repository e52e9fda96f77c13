package solver

import (
	"fmt"
	"slices"

	"loom/app/loom"
)

// suggestRelaxations offers changes of the template, on top of the given changes of the
// request: of one rule that the reasons name, else the fewest found of all that can
// be changed.
func (g *suggester) suggestRelaxations(base []part) {
	fixed := append(slices.Clone(base), g.templateChanges(g.with(base))...)
	named := map[string]bool{}
	for _, r := range g.unsat.Reasons {
		named[r.ID] = true
	}
	var first, rest [][]part
	for _, rule := range g.with(fixed).relaxations() {
		if named[rule.id] {
			first = append(first, rule.parts...)
		} else {
			rest = append(rest, rule.parts...)
		}
	}
	if len(fixed) > 0 {
		g.try(fixed)
	}
	for _, way := range first {
		if len(g.found) < 3 {
			g.tryExactly(append(way, fixed...))
		}
	}
	if len(g.found) > 0 {
		return
	}
	// All of them at once; what is not needed falls away, the reasons' rules last.
	var all []part
	for _, way := range slices.Concat(rest, first) {
		all = append(all, way...)
	}
	if !g.tryExactly(append(all, fixed...)) {
		g.try(append(all, fixed...))
	}
}

// tryExactly is try with the number of machines that was asked for.
func (g *suggester) tryExactly(parts []part) bool {
	return !g.full() && len(parts) > 0 && g.helps(parts) && g.try(parts)
}

// withoutProblems is the request without all that can be wrong with it: what is missing is
// there and what cannot be used is not. On a cluster, nothing is changed at all.
func (g *suggester) withoutProblems() []part {
	var parts []part
	if g.ask.onCluster() {
		for _, s := range g.ask.add {
			parts = append(parts, removing(g.ask, s))
		}
		for _, s := range g.ask.remove {
			parts = append(parts, keeping(s))
		}
		return append(parts, g.corrected()...)
	}
	parts = append(g.unusable(), g.usableTypes()...)
	want := g.with(parts).targetInput()
	was := want.Services
	if len(was) == 0 {
		// Nothing known was asked for: what the template has, or anything.
		names := slices.Concat(want.Template.Defaults.Services, sortedKeys(want.Catalog))
		if i := slices.IndexFunc(names, func(s string) bool { _, known := want.Catalog[s]; return known }); i >= 0 {
			want.Services = names[i : i+1]
		}
	}
	for range 20 {
		missing := want.missing()
		i := slices.IndexFunc(missing, func(n need) bool { return len(want.providers(n.name)) > 0 })
		if i < 0 {
			break
		}
		want.Services = sortedSet(append(slices.Clone(want.Services), want.providers(missing[i].name)[0]))
	}
	had := setOf(was)
	for _, s := range want.Services {
		if !had[s] {
			parts = append(parts, adding(s, ""))
		}
	}
	return parts
}

// usableTypes are other types where those chosen cannot be used.
func (g *suggester) usableTypes() []part {
	var parts []part
	if _, reasons := g.ask.in.checkHardware(); len(reasons) > 0 {
		parts = append(parts, firstPart(g.otherHardware())...)
	}
	if _, reasons := g.ask.in.checkImages(); len(reasons) > 0 {
		parts = append(parts, firstPart(g.otherImages())...)
	}
	return parts
}

func firstPart(parts []part) []part { return parts[:min(len(parts), 1)] }

// suggestFewerServices offers to leave out as little as possible, starting from one service that
// works by itself.
func (g *suggester) suggestFewerServices() {
	base := g.withoutProblems()
	want := g.with(base).targetInput()
	asked := setOf(g.ask.targetInput().Services)
	for _, first := range want.Services[:min(len(want.Services), 20)] {
		if g.over() {
			return
		}
		alone := want
		alone.Services = nil
		keep, err := alone.closure(first)
		if err != nil {
			continue
		}
		var parts []part
		kept := setOf(keep)
		for _, s := range want.Services {
			if !kept[s] && asked[s] {
				parts = append(parts, removing(g.ask, s))
			}
		}
		parts = append(parts, base...)
		if g.try(parts) || len(parts) > 0 && g.firstOf(withTypes(parts, g.otherTypes())) {
			return
		}
	}
}

// withTypes adds to the parts each of some choices of a type.
func withTypes(parts, types []part) [][]part {
	var out [][]part
	for _, t := range types {
		out = append(out, append(parts[:len(parts):len(parts)], t))
	}
	return out
}

// templateChanges are changes of the template without which it allows nothing like this.
func (g *suggester) templateChanges(a *request) []part {
	var out []part
	in := a.targetInput()
	if a.onCluster() {
		in.Machines = a.machines()
	}
	if n := in.Machines; len(in.checkSize()) > 0 && n > 0 {
		out = append(out, part{kind: templatePart, words: "allow " + count(n, "node"), change: func(t *loom.Template) {
			low, high := t.Constraints.Size.Bounds()
			t.Constraints.Size = loom.SizeConstraint{Min: max(min(low, n), 1), Max: max(high, n)}
		}})
	}
	out = append(out, a.allowTypes(true)...)
	out = append(out, a.allowTypes(false)...)
	allowed := setOf(in.Template.Compatibility.Services)
	for _, s := range in.Services {
		if _, known := in.Catalog[s]; known && len(allowed) > 0 && !allowed[s] {
			out = append(out, part{kind: templatePart, words: "allow service " + s, change: func(t *loom.Template) {
				t.Compatibility.Services = append(t.Compatibility.Services, s)
			}})
		}
	}
	return out
}

// allowTypes adds to a compatibility list what nodes have, or, where it leaves
// nothing, the first type that could be used.
func (a *request) allowTypes(hardware bool) []part {
	in, makes := a.asInput()
	makes = makes && (hardware || a.move.kind != resizeMove)
	was, word := in.Template.Compatibility.ImageTypes, "image type "
	if hardware {
		was, word = in.Template.Compatibility.HardwareTypes, "hardware type "
	}
	if len(was) == 0 {
		return nil
	}
	usable := func(in Input) []string {
		names, _ := in.checkImages()
		if hardware {
			names, _ = in.checkHardware()
		}
		return names
	}
	var names []string
	for _, n := range a.nodes {
		if hardware {
			names = append(names, n.HardwareType)
		} else {
			names = append(names, n.ImageType)
		}
	}
	if makes && len(usable(in)) == 0 {
		in.Template.Compatibility = loom.Compatibility{}
		more := usable(in)
		names = append(names, more[:min(len(more), 1)]...)
	}
	var out []part
	for _, name := range sortedSet(names) {
		if slices.Contains(was, name) {
			continue
		}
		out = append(out, part{kind: templatePart, words: "allow " + word + name, change: func(t *loom.Template) {
			if hardware {
				t.Compatibility.HardwareTypes = append(t.Compatibility.HardwareTypes, name)
			} else {
				t.Compatibility.ImageTypes = append(t.Compatibility.ImageTypes, name)
			}
		}})
	}
	return out
}

// relaxation is a rule and the ways to make it harmless, the gentlest first.
type relaxation struct {
	id    string
	parts [][]part
}

// relaxations lists what of the template can be changed.
func (a *request) relaxations() []relaxation {
	in := a.targetInput()
	var out []relaxation
	add := func(id string, ways ...part) { out = append(out, relaxation{id, single(ways)}) }
	layout := in.Template.Constraints.Layout
	for _, kind := range []struct {
		id, word string
		sets     [][]string
		of       func(*loom.Template) *[][]string
	}{
		{"must#%d", "must-coexist", layout.MustCoexist, func(t *loom.Template) *[][]string { return &t.Constraints.Layout.MustCoexist }},
		{"cant#%d", "can't-coexist", layout.CantCoexist, func(t *loom.Template) *[][]string { return &t.Constraints.Layout.CantCoexist }},
	} {
		for i, set := range kind.sets {
			add(fmt.Sprintf(kind.id, i), part{kind: templatePart,
				words: fmt.Sprintf("drop %s set %d (%s)", kind.word, i+1, list(sortedSet(set))),
				change: func(t *loom.Template) {
					sets := kind.of(t)
					if at := slices.IndexFunc(*sets, func(s []string) bool { return slices.Equal(s, set) }); at >= 0 {
						*sets = slices.Delete(*sets, at, at+1)
					}
				}})
		}
	}
	low, _ := in.Template.Constraints.Size.Bounds()
	total := max(in.Machines, low, 1)
	if a.onCluster() {
		total = a.machines()
	}
	shrinks := a.move.kind == shrinkMove || a.move.kind == nodesMove
	for _, name := range in.Services {
		sc, ok := in.Template.Constraints.Services[name]
		if shrinks && (sc.Quantities == nil || sc.Quantities.Min == nil || *sc.Quantities.Min == 1) {
			add("quantity("+name+").min", lowerMin(name, 0, 0))
		} else if shrinks && *sc.Quantities.Min > 1 {
			add("quantity("+name+").min", lowerMin(name, 0, *sc.Quantities.Min-1))
		}
		if !ok {
			continue
		}
		if len(sc.HardwareTypes) > 0 {
			add("hardware("+name+")", anyType(name, "hardware", func(c *loom.ServiceConstraint) { c.HardwareTypes = nil }))
		}
		if len(sc.ImageTypes) > 0 {
			add("image("+name+")", anyType(name, "image", func(c *loom.ServiceConstraint) { c.ImageTypes = nil }))
		}
		if q := sc.Quantities; q != nil && q.Min != nil && *q.Min > 1 && !shrinks {
			add("quantity("+name+").min", lowerMin(name, 1, *q.Min-1))
		}
		if q := sc.Quantities; q != nil && q.Max != nil && *q.Max < total {
			add("quantity("+name+").max", raiseMax(name, total, *q.Max+1))
		}
	}
	return out
}

func onService(name string, change func(*loom.ServiceConstraint)) func(*loom.Template) {
	return func(t *loom.Template) {
		sc := t.Constraints.Services[name]
		if sc.Quantities != nil {
			q := *sc.Quantities
			sc.Quantities = &q
		}
		change(&sc)
		if t.Constraints.Services == nil {
			t.Constraints.Services = map[string]loom.ServiceConstraint{}
		}
		t.Constraints.Services[name] = sc
	}
}

func anyType(name, word string, change func(*loom.ServiceConstraint)) part {
	return part{kind: templatePart, words: fmt.Sprintf("allow %s on every %s type", name, word), change: onService(name, change)}
}

// lowerMin sets a minimum; tuned, it goes up towards limit.
func lowerMin(name string, n, limit int) part {
	return part{kind: templatePart, n: n, from: limit, words: fmt.Sprintf("lower the minimum of %s to %d", name, n),
		change: onService(name, func(c *loom.ServiceConstraint) {
			if c.Quantities == nil {
				c.Quantities = &loom.Quantities{}
			}
			c.Quantities.Min = &n
		}),
		tune: func(n int) part { return lowerMin(name, n, limit) }}
}

// raiseMax sets a maximum, and a minimum above it no higher; tuned, it goes down
// towards limit.
func raiseMax(name string, n, limit int) part {
	return part{kind: templatePart, n: n, from: limit, words: fmt.Sprintf("raise the maximum of %s to %d", name, n),
		change: onService(name, func(c *loom.ServiceConstraint) { c.Quantities.Max = &n }),
		tune:   func(n int) part { return raiseMax(name, n, limit) }}
}

// tune changes numbers by as little as helps.
func (g *suggester) tune(parts []part) []part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if p.tune == nil {
			continue
		}
		// n helps; the one next to from may not.
		for near, far := p.from, p.n; near != far; {
			mid := near + (far-near)/2
			try := slices.Clone(parts)
			try[i] = p.tune(mid)
			if g.helps(try) {
				far = mid
				parts = try
			} else if near < far {
				near = mid + 1
			} else {
				near = mid - 1
			}
			if near == far {
				try := slices.Clone(parts)
				try[i] = p.tune(far)
				if g.helps(try) {
					parts = try
				}
			}
		}
	}
	return parts
}
