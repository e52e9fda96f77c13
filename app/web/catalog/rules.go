package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/ui"
)

// The rules of a template in sentences, for people who do not read constraints.

func templateFacts(t loom.Template) []ui.Def {
	orNone := func(text string) string {
		if text == "" {
			return "chosen for each cluster"
		}
		return text
	}
	facts := []ui.Def{
		{Term: "Size", Text: page.NodesRange(t.Constraints.Size.Bounds())},
		{Term: "Lease", Text: page.LeaseText(t.Administration.Lease)},
		{Term: "Provider", Text: orNone(t.Defaults.Provider)},
		{Term: "Hardware type", Text: orNone(t.Defaults.HardwareType)},
		{Term: "Image type", Text: orNone(t.Defaults.ImageType)},
	}
	if seconds := t.Administration.Health.Interval; seconds != nil {
		text := "never"
		if *seconds > 0 {
			text = fmt.Sprintf("every %d seconds", *seconds)
		}
		facts = append(facts, ui.Def{Term: "Health checks", Text: text})
	}
	for _, part := range t.Administration.Repair.Parts() {
		if *part.Choice != "" {
			words := loom.Describe(loom.KindTemplate, "administration", "repair", part.Name)
			facts = append(facts, ui.Def{Term: words.Label, Text: page.RepairText(part.Name, *part.Choice)})
		}
	}
	return facts
}

func templateRules(t loom.Template) []string {
	rules := []string{"A cluster has " + page.NodesRange(t.Constraints.Size.Bounds()) + "."}
	for _, name := range slices.Sorted(maps.Keys(t.Constraints.Services)) {
		rules = append(rules, serviceRules(name, t.Constraints.Services[name])...)
	}
	for _, set := range t.Constraints.Layout.MustCoexist {
		if len(set) > 1 {
			rules = append(rules, "Where one of "+loom.And(set)+" is, the others of them are too.")
		}
	}
	for _, set := range t.Constraints.Layout.CantCoexist {
		switch len(set) {
		case 0:
		case 1:
			rules = append(rules, set[0]+" may be on no node.")
		case 2:
			rules = append(rules, loom.And(set)+" are never on the same node.")
		default:
			rules = append(rules, loom.And(set)+" are never all on the same node.")
		}
	}
	rules = appendAllowed(rules, "hardware types", t.Compatibility.HardwareTypes)
	rules = appendAllowed(rules, "image types", t.Compatibility.ImageTypes)
	rules = appendAllowed(rules, "services", t.Compatibility.Services)
	if len(t.Compatibility.Services) == 0 {
		rules = append(rules, "Any service of the catalog may be added.")
	}
	return append(rules, leaseRules(t.Administration.Lease)...)
}

func serviceRules(name string, c loom.ServiceConstraint) []string {
	var rules []string
	if c.Quantities != nil {
		rules = append(rules, quantityRule(name, *c.Quantities))
	}
	if len(c.HardwareTypes) > 0 {
		rules = append(rules, name+" needs the hardware type "+loom.Or(c.HardwareTypes)+".")
	}
	if len(c.ImageTypes) > 0 {
		rules = append(rules, name+" needs the image type "+loom.Or(c.ImageTypes)+".")
	}
	return rules
}

func quantityRule(name string, q loom.Quantities) string {
	low := 1
	if q.Min != nil {
		low = *q.Min
	}
	on := func(n int) string { return ui.Count(n, "node", "nodes") }
	switch {
	case q.Max == nil || *q.Max == loom.Unlimited:
		if low == 0 {
			return name + " is on any number of nodes, also on none."
		}
		return name + " is on at least " + on(low) + "."
	case *q.Max == 0:
		return name + " is on no node."
	case low == *q.Max:
		return name + " is on exactly " + on(low) + "."
	case low == 0:
		return name + " is on at most " + on(*q.Max) + "."
	}
	return fmt.Sprintf("%s is on %d–%d nodes.", name, low, *q.Max)
}

func appendAllowed(rules []string, what string, names []string) []string {
	if len(names) == 0 {
		return rules
	}
	return append(rules, "Only these "+what+" are allowed: "+strings.Join(names, ", ")+".")
}

func leaseRules(l loom.LeaseRule) []string {
	if l.Initial == 0 && l.Max == 0 {
		return []string{"Clusters live until they are deleted."}
	}
	rules := []string{"Clusters have no expiry at first."}
	if l.Initial > 0 {
		rules = []string{"Clusters expire after " + loom.Duration(l.Initial) + "."}
	}
	if l.Max > 0 {
		rules = append(rules, "A lease is at most "+loom.Duration(l.Max)+".")
	}
	if l.Max > 0 && l.Step > 0 {
		rules = append(rules, "One change extends it by at most "+loom.Duration(l.Step)+".")
	}
	return rules
}

// needs says what a service requires and uses, in any phase.
func needs(s loom.Service) string {
	var parts []string
	both := func(a, b []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))) }
	d := s.Dependencies
	if r := both(d.Install.Requires, d.Runtime.Requires); len(r) > 0 {
		parts = append(parts, "requires "+loom.And(r))
	}
	if u := both(d.Install.Uses, d.Runtime.Uses); len(u) > 0 {
		parts = append(parts, "uses "+loom.And(u))
	}
	if len(d.Conflicts) > 0 {
		parts = append(parts, "conflicts with "+loom.And(d.Conflicts))
	}
	return strings.Join(parts, "; ")
}
