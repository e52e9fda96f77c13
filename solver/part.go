package solver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
)

// part is one change of a request; several make a suggestion.
type part struct {
	kind    partKind
	service string   // added, removed or kept
	by      string   // who requires it
	name    string   // of the type chosen
	names   []string // nodes or services to name
	was     string
	n       int
	words   string // of a change of the template
	change  func(t *loom.Template)
	entry   func(in *Input) // of a change of a catalog entry
	merge   map[string]any  // that change, by kind and name
	// tune returns the same change with less of an effect, if there is one.
	tune func(n int) part
	from int // the least effect that tune takes; n is the greatest
}

type partKind int

const (
	addPart partKind = iota
	removePart
	leaveOutPart // not to be added after all
	keepPart     // not to be removed after all
	hardwarePart
	imagePart
	templatePart
	entryPart // a change of a catalog entry
	machinesPart
	nodesPart  // other nodes to take away
	resizePart // other services whose nodes are resized
	providerPart
)

func adding(service, by string) part { return part{kind: addPart, service: service, by: by} }

func removing(a request, service string) part {
	if a.onCluster() && slices.Contains(a.add, service) {
		return part{kind: leaveOutPart, service: service}
	}
	return part{kind: removePart, service: service}
}

func keeping(service string) part { return part{kind: keepPart, service: service} }

func machines(n int) part { return part{kind: machinesPart, n: n} }

func taking(ids []string) part { return part{kind: nodesPart, names: ids} }

func resizing(services []string) part { return part{kind: resizePart, names: services} }

func choosing(name, was string, hardware bool) part {
	if hardware {
		return part{kind: hardwarePart, name: name, was: was}
	}
	return part{kind: imagePart, name: name, was: was}
}

func (p part) apply(a *request) {
	switch p.kind {
	case addPart, keepPart, removePart, leaveOutPart:
		a.change([]part{p})
	case hardwarePart:
		if a.move.kind == resizeMove {
			a.move.hardware, a.move.other = p.name, true
		} else {
			a.in.HardwareType = p.name
		}
	case imagePart:
		a.in.ImageType = p.name
	case providerPart:
		a.in.Provider = p.name
	case machinesPart:
		a.in.Machines, a.move.total = p.n, p.n
	case nodesPart:
		a.move.ids = p.names
	case resizePart:
		a.move.services, a.move.other = p.names, true
	case entryPart:
		p.entry(&a.in)
	case templatePart:
		a.in.Template = copyRules(a.in.Template)
		p.change(&a.in.Template)
	}
}

// copyRules copies what changes of a template touch.
func copyRules(t loom.Template) loom.Template {
	t.Compatibility.HardwareTypes = slices.Clone(t.Compatibility.HardwareTypes)
	t.Compatibility.ImageTypes = slices.Clone(t.Compatibility.ImageTypes)
	t.Compatibility.Services = slices.Clone(t.Compatibility.Services)
	t.Constraints.Services = maps.Clone(t.Constraints.Services)
	for name, sc := range t.Constraints.Services {
		if sc.Quantities != nil {
			q := *sc.Quantities
			sc.Quantities = &q
			t.Constraints.Services[name] = sc
		}
	}
	t.Constraints.Layout.MustCoexist = slices.Clone(t.Constraints.Layout.MustCoexist)
	t.Constraints.Layout.CantCoexist = slices.Clone(t.Constraints.Layout.CantCoexist)
	return t
}

// way words the parts and lists what they set.
func way(was request, parts []part) Way {
	var s Way
	names := map[partKind][]string{}
	var types, before, changes, entries, size []string
	by := ""
	after := was.in.Template
	for _, p := range parts {
		switch p.kind {
		case addPart, removePart, leaveOutPart, keepPart:
			names[p.kind] = append(names[p.kind], p.service)
			if p.kind == addPart {
				by = p.by
			}
		case hardwarePart:
			s.HardwareType = p.name
			types, before = append(types, p.name), append(before, p.was)
		case imagePart:
			s.ImageType = p.name
			types, before = append(types, p.name), append(before, p.was)
		case providerPart:
			s.Provider = p.name
			types, before = append(types, "provider "+p.name), append(before, p.was)
		case machinesPart:
			s.Machines = p.n
			size = []string{was.move.verb() + " " + count(p.n, "node")}
		case nodesPart:
			s.Nodes = p.names
			size = []string{"take away " + list2(p.names) + " instead"}
		case resizePart:
			s.Services = p.names
			size = []string{"resize the nodes with " + loom.Or(p.names) + " only"}
		case entryPart:
			entries = append(entries, p.words)
			if s.Catalog == nil {
				s.Catalog = map[string]any{}
			}
			mergeInto(s.Catalog, p.merge)
		case templatePart:
			changes = append(changes, p.words)
			after = copyRules(after)
			p.change(&after)
		}
	}
	var steps []string
	for _, verb := range []struct {
		kind partKind
		word string
	}{{addPart, "add"}, {removePart, "remove"}, {leaveOutPart, "do not add"}, {keepPart, "do not remove"}} {
		if of := sortedSet(names[verb.kind]); len(of) > 0 {
			text := verb.word + " " + listed(of)
			if verb.kind == addPart && len(of) == 1 && by != "" {
				text += fmt.Sprintf(" (required by %s)", by)
			}
			steps = append(steps, text)
		}
	}
	if len(types) > 0 {
		steps = append(steps, fmt.Sprintf("choose %s instead of %s", list(types), list(before)))
	}
	if len(changes) > 0 {
		steps = append(steps, "change the template: "+strings.Join(changes, ", "))
		s.Template = patch(was.in.Template, after)
	}
	steps = append(steps, entries...)
	s.Label = capital(strings.Join(append(steps, size...), " and "))
	s.AddServices = sortedSet(slices.Concat(names[addPart], names[keepPart]))
	s.RemoveServices = sortedSet(slices.Concat(names[removePart], names[leaveOutPart]))
	return s
}

// patch is what changed in a template, as a JSON merge patch (RFC 7396).
func patch(was, is loom.Template) map[string]any {
	constraints, layout, services, compatibility := map[string]any{}, map[string]any{}, map[string]any{}, map[string]any{}
	set := func(to map[string]any, key string, was, is []string) {
		if !slices.Equal(was, is) {
			to[key] = orEmpty(is)
		}
	}
	for _, name := range sortedKeys(is.Constraints.Services) {
		a, b := was.Constraints.Services[name], is.Constraints.Services[name]
		change := map[string]any{}
		set(change, "hardwaretypes", a.HardwareTypes, b.HardwareTypes)
		set(change, "imagetypes", a.ImageTypes, b.ImageTypes)
		quantities := map[string]any{}
		number := func(key string, get func(*loom.Quantities) *int) {
			var x, y *int
			if a.Quantities != nil {
				x = get(a.Quantities)
			}
			if b.Quantities != nil {
				y = get(b.Quantities)
			}
			if y != nil && (x == nil || *x != *y) {
				quantities[key] = *y
			}
		}
		number("min", func(q *loom.Quantities) *int { return q.Min })
		number("max", func(q *loom.Quantities) *int { return q.Max })
		put(change, "quantities", quantities)
		put(services, name, change)
	}
	if len(was.Constraints.Layout.MustCoexist) != len(is.Constraints.Layout.MustCoexist) {
		layout["mustcoexist"] = is.Constraints.Layout.MustCoexist
	}
	if len(was.Constraints.Layout.CantCoexist) != len(is.Constraints.Layout.CantCoexist) {
		layout["cantcoexist"] = is.Constraints.Layout.CantCoexist
	}
	size := map[string]any{}
	lowWas, highWas := was.Constraints.Size.Bounds()
	low, high := is.Constraints.Size.Bounds()
	if low != lowWas {
		size["min"] = low
	}
	if high != highWas {
		size["max"] = high
	}
	put(constraints, "layout", layout)
	put(constraints, "services", services)
	put(constraints, "size", size)
	set(compatibility, "hardwaretypes", was.Compatibility.HardwareTypes, is.Compatibility.HardwareTypes)
	set(compatibility, "imagetypes", was.Compatibility.ImageTypes, is.Compatibility.ImageTypes)
	set(compatibility, "services", was.Compatibility.Services, is.Compatibility.Services)
	out := map[string]any{}
	put(out, "constraints", constraints)
	put(out, "compatibility", compatibility)
	return out
}

// mergeInto adds a change to another; they share no value.
func mergeInto(to, change map[string]any) {
	for key, v := range change {
		inner, nested := v.(map[string]any)
		if was, ok := to[key].(map[string]any); ok && nested {
			mergeInto(was, inner)
			continue
		}
		if nested {
			fresh := map[string]any{}
			mergeInto(fresh, inner)
			v = fresh
		}
		to[key] = v
	}
}

func put(to map[string]any, key string, value map[string]any) {
	if len(value) > 0 {
		to[key] = value
	}
}

func orEmpty(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// bracketed returns the names in the brackets of a reason's id that are services.
func bracketed(id string) []string {
	head, rest, ok := strings.Cut(id, "(")
	end := strings.LastIndexByte(rest, ')')
	if !ok || end < 0 {
		return nil
	}
	inside := rest[:end]
	switch head {
	case "requires":
		name, _, _ := strings.Cut(inside, ",")
		return []string{name}
	case "conflicts":
		return strings.Split(inside, ",")
	case "node":
		return nil
	}
	return []string{inside}
}
