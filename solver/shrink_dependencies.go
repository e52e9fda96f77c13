package solver

import (
	"fmt"
	"math"
	"slices"

	"loom/app/loom"
)

// shrinkRule is what ties the services of a cluster that shrinks, beside the template's
// constraints: each of them is a rule of its own in an explanation.
type shrinkRule struct {
	kind    shrinkRuleKind
	service string
	// others are the services of the cluster that satisfy a requirement, or the one
	// that a conflict is with.
	others []string
	reason loom.Reason
}

type shrinkRuleKind int

const (
	mustStay      shrinkRuleKind = iota // its nodes do not go
	mustGo                              // it must not be on the cluster
	needsOther                          // it needs one of others
	conflictsWith                       // it cannot be beside others[0]
)

// shrinkRules lists what dependencies and conflicts, and services that refuse to
// shrink, ask of whatever is left of the cluster.
func (c Cluster) shrinkRules() []shrinkRule {
	in := c.Input
	in.Services = c.services()
	var out []shrinkRule
	for _, s := range c.refusing() {
		out = append(out, shrinkRule{kind: mustStay, service: s, reason: loom.Reason{Code: CodeUnsat, ID: "shrink(" + s + ")",
			Message: fmt.Sprintf("%s does not let its nodes go (service %s, shrink).", s, s)}})
	}
	for _, r := range in.checkServices() {
		if r.Code == CodeIncompatible || r.Code == CodeUnknown {
			out = append(out, shrinkRule{kind: mustGo, service: bracketed(r.ID)[0], reason: r})
		}
	}
	offering := in.offering()
	for _, s := range in.Services {
		d := in.Catalog[s].Dependencies
		for _, name := range sortedSet(slices.Concat(d.Install.Requires, d.Runtime.Requires)) {
			by := offering[name]
			if _, self := slices.BinarySearch(by, s); !self {
				out = append(out, shrinkRule{kind: needsOther, service: s, others: by, reason: loom.Reason{Code: CodeDependency, ID: fmt.Sprintf("requires(%s,%s)", s, name),
					Message: fmt.Sprintf("%s requires %s (dependency of service %s).", s, name, s)}})
			}
		}
	}
	for _, x := range in.clashes(math.MaxInt) {
		out = append(out, shrinkRule{kind: conflictsWith, service: x.service, others: []string{x.other}, reason: loom.Reason{Code: CodeConflict, ID: fmt.Sprintf("conflicts(%s,%s)", x.service, x.other),
			Message: fmt.Sprintf("%s conflicts with %s (dependency of service %s).", x.service, x.other, x.service)}})
	}
	return out
}

// optionalServices are the services with an explicit minimum of 0 whose vanishing changes what
// is valid: a must-coexist set no longer speaks of them, nothing requires or
// conflicts with them. The sets are of numbers in at; a service that is not in
// there stays.
type optionalServices struct {
	at map[string]int
	// impossible is set when services that stay do not go together.
	impossible bool
	// absent have to vanish, whatever else goes.
	absent bitset
	needs  []optionalNeed
	clash  [][2]int
}

// optionalNeed says that one of any stays when who does; who is -1 for one that stays
// in any case.
type optionalNeed struct {
	who int
	any bitset
}

func newOptionalServices(p Problem, all []shrinkRule) (*optionalServices, error) {
	f := &optionalServices{at: map[string]int{}}
	matters := map[string]bool{}
	for _, set := range p.Must {
		for _, s := range set.Services {
			matters[s] = true
		}
	}
	for _, b := range all {
		for _, s := range append([]string{b.service}, b.others...) {
			matters[s] = matters[s] || b.kind != mustStay
		}
	}
	for _, s := range p.Services {
		if s.Min == 0 && matters[s.Name] {
			f.at[s.Name] = len(f.at)
		}
	}
	if len(f.at) > maxGroups {
		return nil, tooLarge()
	}
	for _, b := range all {
		f.addRule(b)
	}
	return f, nil
}

func (f *optionalServices) addRule(b shrinkRule) {
	who, may := f.at[b.service]
	vanish := func() {
		if may {
			f.absent.add(who)
		} else {
			f.impossible = true
		}
	}
	switch b.kind {
	case mustGo:
		vanish()
	case needsOther:
		n := optionalNeed{who: -1}
		if may {
			n.who = who
		}
		for _, s := range b.others {
			i, also := f.at[s]
			if !also {
				return // it stays
			}
			n.any.add(i)
		}
		if n.any.empty() {
			vanish()
		} else {
			f.needs = append(f.needs, n)
		}
	case conflictsWith:
		other, also := f.at[b.others[0]]
		switch {
		case also && may:
			f.clash = append(f.clash, [2]int{who, other})
		case also:
			f.absent.add(other)
		default:
			vanish()
		}
	}
}

// column says for a kind of node what stays when one of them does, and what then
// has to vanish. hard is set when it cannot stay at all.
func (f *optionalServices) column(p Problem, c Column) (has, lacks bitset, hard bool) {
	for _, s := range c.Services {
		if i, ok := f.at[s]; ok {
			has.add(i)
		}
	}
	for _, set := range p.Must {
		if !slices.ContainsFunc(set.Services, func(s string) bool { return slices.Contains(c.Services, s) }) {
			continue
		}
		for _, s := range set.Services {
			if slices.Contains(c.Services, s) {
				continue
			}
			if i, ok := f.at[s]; ok {
				lacks.add(i)
			} else {
				hard = true
			}
		}
	}
	return has, lacks, hard || len(c.Services) == 0
}

// presence is what is decided: services that stay, and that have to vanish.
type presence struct{ present, absent bitset }

// open reports whether the choice may still be valid; with last, that it is.
func (f *optionalServices) open(now presence, last bool) bool {
	if f.impossible || now.present.meets(now.absent) {
		return false
	}
	for _, pair := range f.clash {
		if now.present.has(pair[0]) && now.present.has(pair[1]) {
			return false
		}
	}
	for _, n := range f.needs {
		asked := n.who < 0 || now.present.has(n.who)
		if asked && (n.any.within(now.absent) || last && !n.any.meets(now.present)) {
			return false
		}
	}
	return true
}
