package loom

import (
	"cmp"
	"slices"
)

// FindingSeverity says whether a Finding stops a use.
type FindingSeverity string

// The severities: an error stops a use of the entry, a warning is about what is
// merely without effect.
const (
	FindingError   FindingSeverity = "error"
	FindingWarning FindingSeverity = "warning"
)

// FindingSeverities lists both, the graver first.
var FindingSeverities = []FindingSeverity{FindingError, FindingWarning}

// FindingCode is the rule behind a Finding.
type FindingCode string

// The closed set of codes.
const (
	FindingDangling   FindingCode = "dangling"   // a name of nothing: of no entry, or of no resource of a plugin
	FindingCycle      FindingCode = "cycle"      // dependencies of services, or templates that extend each other
	FindingUnsolvable FindingCode = "unsolvable" // a template's defaults at its smallest size, or a service that no cluster can have
	FindingMacro      FindingCode = "macro"      // wrong syntax in config or link, or a service that cannot be there
	FindingParameter  FindingCode = "parameter"  // a value in a template that its services do not take
	FindingNoMapping  FindingCode = "no_mapping" // a type that fits no provider
	FindingIncomplete FindingCode = "incomplete" // a provider or an action without a full required set, or with a value that its plugin does not take
	FindingImmutable  FindingCode = "immutable"  // a config key that a partial template keeps to itself
	FindingPointless  FindingCode = "pointless"  // what can mean nothing sensible, or is without effect
	FindingInsecure   FindingCode = "insecure"   // a provider whose server's certificate is not checked
	FindingUnchecked  FindingCode = "unchecked"  // services whose trouble nobody would notice, one finding for all
	FindingMore       FindingCode = "more"       // there are more findings than are given
)

// Finding is something in a catalog that would not work. It never keeps an entry
// from being stored, for entries may come in any order.
type Finding struct {
	Severity FindingSeverity
	Code     FindingCode
	Kind     EntityKind
	Name     string
	Version  int
	// Field is the JSON pointer (RFC 6901) of the value in the entry.
	Field string
	// Value is what is wrong there, as a text; "" where nothing is there.
	Value string
	// Message says what is wrong, Remedy what helps, in sentences.
	Message, Remedy string
	// Missing is the kind of the entry that Value names and that does not exist; "" for other
	// findings. File is the file that does not exist, with a name where there is one.
	Missing EntityKind
	File    ResourceRef
	// Unknown says that Value is a field that the entry's plugin type does not have.
	Unknown bool
}

// FindingFix is a change to all entries of a FindingGroup at once.
type FindingFix string

// The fixes.
const (
	// FixReplace names another entry instead of the one that does not exist.
	FixReplace FindingFix = "replace"
	// FixRemove removes the reference, or the field that does not exist.
	FixRemove FindingFix = "remove"
)

// FindingFixes lists both.
var FindingFixes = []FindingFix{FixReplace, FixRemove}

// Fixes lists what fixes the finding; none where only somebody who knows what was meant can
// fix it. Every action needs an automator, so a missing one can only be replaced; a provider
// keeps its type, which its credentials belong to.
func (f Finding) Fixes() []FindingFix {
	switch {
	case f.Unknown:
		return []FindingFix{FixRemove}
	case f.Missing == "" || f.Missing == KindProviderType:
		return nil
	case f.Missing.Global():
		return []FindingFix{FixReplace}
	}
	return []FindingFix{FixReplace, FixRemove}
}

// FindingGroup is findings with one cause, and so with one remedy.
type FindingGroup struct {
	Severity FindingSeverity // the graver one of its findings
	Code     FindingCode
	// Values are what its findings name, each once.
	Values []string
	// Findings are in the order in which they were found, Entries how many entries they are about.
	Findings []Finding
	Entries  int
}

// First is a finding that says what all of the group have in common.
func (g FindingGroup) First() Finding { return g.Findings[0] }

// OneMessage reports whether all of its findings say the same in a few words; why there is no
// layout takes more.
func (g FindingGroup) OneMessage() bool {
	return g.Code != FindingUnsolvable && !slices.ContainsFunc(g.Findings, func(f Finding) bool { return f.Message != g.First().Message })
}

// Counts says how many entries of each kind the group is about.
func (g FindingGroup) Counts() map[EntityKind]int {
	counts, seen := map[EntityKind]int{}, map[[2]string]bool{}
	for _, f := range g.Findings {
		if entry := f.entry(); !seen[entry] {
			seen[entry] = true
			counts[f.Kind]++
		}
	}
	return counts
}

func (f Finding) entry() [2]string { return [2]string{string(f.Kind), f.Name} }

// cause is what findings of a group share, but for their value.
func (f Finding) cause() Finding {
	return Finding{Code: f.Code, Missing: f.Missing, Unknown: f.Unknown, File: ResourceRef{Kind: f.File.Kind, Plugin: f.File.Plugin, Type: f.File.Type}}
}

// subject is by what findings of the same cause are told apart: what they name. Missing files
// come together, as one upload brings them; what is set wrong or lacks a layout is fixed entry
// by entry, whatever its value; services in a circle share the message.
func (f Finding) subject() string {
	switch {
	case f.File.Name != "" || f.Code == FindingIncomplete || f.Code == FindingUnsolvable || f.Code == FindingMore:
		return ""
	case f.Code == FindingCycle:
		return f.Message
	}
	return f.Value
}

// GroupFindings puts findings of one code and value together, and those of one code that only
// one entry has. The worst groups come first: errors, then those of most entries.
func GroupFindings(found []Finding) []FindingGroup {
	type key struct {
		cause   Finding
		subject string
	}
	entries := map[key]map[[2]string]bool{}
	for _, f := range found {
		k := key{f.cause(), f.subject()}
		if entries[k] == nil {
			entries[k] = map[[2]string]bool{}
		}
		entries[k][f.entry()] = true
	}
	at, groups := map[key]int{}, []FindingGroup{}
	for _, f := range found {
		k := key{f.cause(), f.subject()}
		if len(entries[k]) == 1 && k.subject != "" {
			entry := f.entry()
			k.subject = "\x00" + entry[0] + "\x00" + entry[1]
		}
		i, there := at[k]
		if !there {
			i = len(groups)
			at[k] = i
			groups = append(groups, FindingGroup{Severity: f.Severity, Code: f.Code})
		}
		g := &groups[i]
		if g.Findings = append(g.Findings, f); f.Severity == FindingError {
			g.Severity = FindingError
		}
		if !slices.Contains(g.Values, f.Value) {
			g.Values = append(g.Values, f.Value)
		}
	}
	for i := range groups {
		for _, n := range groups[i].Counts() {
			groups[i].Entries += n
		}
	}
	slices.SortStableFunc(groups, func(a, b FindingGroup) int {
		return cmp.Or(slices.Index(FindingSeverities, a.Severity)-slices.Index(FindingSeverities, b.Severity), b.Entries-a.Entries)
	})
	return groups
}
