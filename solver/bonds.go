package solver

import (
	"fmt"
	"math"
	"slices"

	"loom/app/loom"
)

// bond is what ties the services of a cluster that shrinks, beside the template's
// constraints: each of them is a rule of its own in an explanation.
type bond struct {
	kind    bondKind
	service string
	// others are the services of the cluster that satisfy a requirement, or the one
	// that a conflict is with.
	others []string
	reason loom.Reason
}

type bondKind int

const (
	stayBond  bondKind = iota // its nodes do not go
	goneBond                  // it must not be on the cluster
	needBond                  // it needs one of others
	clashBond                 // it cannot be beside others[0]
)

// bonds lists what the checks 6 to 9 of solver.md 5, and services that refuse to
// shrink, ask of whatever is left of the cluster.
func (c Cluster) bonds() []bond {
	in := c.Input
	in.Services = c.services()
	var out []bond
	for _, s := range c.refusing() {
		out = append(out, bond{kind: stayBond, service: s, reason: loom.Reason{Code: CodeUnsat, ID: "shrink(" + s + ")",
			Message: fmt.Sprintf("%s does not let its nodes go (service %s, shrink).", s, s)}})
	}
	for _, r := range in.checkServices() {
		if r.Code == CodeIncompatible || r.Code == CodeUnknown {
			out = append(out, bond{kind: goneBond, service: bracketed(r.ID)[0], reason: r})
		}
	}
	offering := in.offering()
	for _, s := range in.Services {
		d := in.Catalog[s].Dependencies
		for _, name := range sortedSet(slices.Concat(d.Install.Requires, d.Runtime.Requires)) {
			by := offering[name]
			if _, self := slices.BinarySearch(by, s); !self {
				out = append(out, bond{kind: needBond, service: s, others: by, reason: loom.Reason{Code: CodeDependency, ID: fmt.Sprintf("requires(%s,%s)", s, name),
					Message: fmt.Sprintf("%s requires %s (dependency of service %s).", s, name, s)}})
			}
		}
	}
	for _, x := range in.clashes(math.MaxInt) {
		out = append(out, bond{kind: clashBond, service: x.service, others: []string{x.other}, reason: loom.Reason{Code: CodeConflict, ID: fmt.Sprintf("conflicts(%s,%s)", x.service, x.other),
			Message: fmt.Sprintf("%s conflicts with %s (dependency of service %s).", x.service, x.other, x.service)}})
	}
	return out
}

// fates are the services with an explicit minimum of 0 whose vanishing changes what
// is valid: a must-coexist set no longer speaks of them, nothing requires or
// conflicts with them. The sets are of numbers in at; a service that is not in
// there stays.
type fates struct {
	at map[string]int
	// impossible is set when services that stay do not go together.
	impossible bool
	// absent have to vanish, whatever else goes.
	absent bitset
	needs  []fateNeed
	clash  [][2]int
}

// fateNeed says that one of any stays when who does; who is -1 for one that stays
// in any case.
type fateNeed struct {
	who int
	any bitset
}

func newFates(p Problem, all []bond) (*fates, error) {
	f := &fates{at: map[string]int{}}
	matters := map[string]bool{}
	for _, set := range p.Must {
		for _, s := range set.Services {
			matters[s] = true
		}
	}
	for _, b := range all {
		for _, s := range append([]string{b.service}, b.others...) {
			matters[s] = matters[s] || b.kind != stayBond
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
		f.bind(b)
	}
	return f, nil
}

func (f *fates) bind(b bond) {
	who, may := f.at[b.service]
	vanish := func() {
		if may {
			f.absent.add(who)
		} else {
			f.impossible = true
		}
	}
	switch b.kind {
	case goneBond:
		vanish()
	case needBond:
		n := fateNeed{who: -1}
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
	case clashBond:
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
func (f *fates) column(p Problem, c Column) (has, lacks bitset, hard bool) {
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

// fate is what is decided: services that stay, and that have to vanish.
type fate struct{ present, absent bitset }

// open reports that the fate may still be one; with last, that it is.
func (f *fates) open(now fate, last bool) bool {
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
