package loom

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxTemplateDepth is the longest chain of extends, the template itself included.
const MaxTemplateDepth = 16

// TemplateLookup finds what templates extend and include, newest version each.
// A name that is not there answers NotFound; other errors pass through.
type TemplateLookup struct {
	Template func(name string) (Template, error)
	Partial  func(name string) (PartialTemplate, error)
}

// ResolveTemplate merges t with all it extends and includes
// and checks that the result can make a cluster by itself: services, a provider
// and a valid DNS suffix. Errors: NotFound for a missing parent or partial;
// Invalid for a cycle, a chain that is too long, a breach of immutability and an
// incomplete result.
func ResolveTemplate(t Template, find TemplateLookup) (Template, error) {
	merged, err := MergeTemplate(t, find)
	if err != nil {
		return Template{}, err
	}
	var errs []FieldError
	if len(merged.Defaults.Services) == 0 {
		errs = append(errs, FieldError{"defaults.services", "The merged template names no services."})
	}
	if merged.Defaults.Provider == "" {
		errs = append(errs, FieldError{"defaults.provider", "The merged template names no provider."})
	}
	errs = append(errs, CheckDNSSuffix("defaults.dnsSuffix", merged.Defaults.DNSSuffix)...)
	if err := InvalidFields(errs); err != nil {
		return Template{}, err
	}
	return merged, nil
}

// MergeTemplate is ResolveTemplate without the final check, for requests that
// bring their own services or provider. Name, label, description, icon, version,
// extends and includes stay those of t. What it is given is not changed.
func MergeTemplate(t Template, find TemplateLookup) (Template, error) {
	chain, err := ancestry(t, find)
	if err != nil {
		return Template{}, err
	}
	m := merger{locked: map[string]string{}, met: map[string]bool{}, out: emptyTemplate()}
	for _, part := range chain {
		for i, include := range part.Includes {
			if m.met[include.Name] {
				continue
			}
			m.met[include.Name] = true
			partial, err := find.Partial(include.Name)
			if err != nil {
				return Template{}, missingPart(err, fmt.Sprintf("includes[%d].name", i), "Template “%s” includes the partial template “%s”, which does not exist.", part.Name, include.Name)
			}
			if err := m.partial(partial); err != nil {
				return Template{}, err
			}
		}
		if err := m.template(part); err != nil {
			return Template{}, err
		}
	}
	if len(m.locked) > 0 {
		m.out.Locked = sortedKeys(m.locked)
	}
	m.out.Base, m.out.Extends, m.out.Includes = t.Base, t.Extends, t.Includes
	return m.out, nil
}

// ancestry gives t and what it extends, the outermost ancestor first.
func ancestry(t Template, find TemplateLookup) ([]Template, error) {
	chain := []Template{t}
	path := []string{t.Name}
	for current := t; current.Extends != nil && current.Extends.Name != ""; {
		name := current.Extends.Name
		path = append(path, name)
		if slices.Contains(path[:len(path)-1], name) {
			return nil, InvalidFields([]FieldError{{"extends.name", "Templates extend each other in a circle: " + strings.Join(path, " → ") + "."}})
		}
		if len(path) > MaxTemplateDepth {
			return nil, InvalidFields([]FieldError{{"extends.name", fmt.Sprintf("Templates may extend each other %d deep; this chain is longer.", MaxTemplateDepth)}})
		}
		parent, err := find.Template(name)
		if err != nil {
			return nil, missingPart(err, "extends.name", "Template “%s” extends “%s”, which does not exist.", current.Name, name)
		}
		chain = append(chain, parent)
		current = parent
	}
	slices.Reverse(chain)
	return chain, nil
}

// missingPart names the template that lacks a part, when that is what err says.
func missingPart(err error, field, format string, args ...any) error {
	if e := AsError(err); e.Kind == NotFound {
		missing := NewError(NotFound, format, args...)
		missing.Fields, missing.Err = []FieldError{{field, missing.Message}}, err
		return missing
	}
	return err
}

type merger struct {
	out    Template
	locked map[string]string // config key -> the immutable partial that set it
	met    map[string]bool   // partials merged already
}

// partial takes neither constraints nor administration from a part.
func (m *merger) partial(p PartialTemplate) error {
	if err := m.common("partial template “"+p.Name+"”", p.Defaults, p.Compatibility, p.Links); err != nil {
		return err
	}
	if p.Immutable {
		for key := range p.Defaults.Config {
			m.locked[key] = p.Name
		}
	}
	return nil
}

func (m *merger) template(t Template) error {
	if err := m.common("template “"+t.Name+"”", t.Defaults, t.Compatibility, t.Links); err != nil {
		return err
	}
	a := &m.out.Administration
	if t.Administration.Lease != (LeaseRule{}) {
		a.Lease = t.Administration.Lease
	}
	replace(&a.OnFailure, t.Administration.OnFailure)
	if t.Administration.Health != (HealthRule{}) {
		a.Health = t.Administration.Health
	}
	a.Repair = t.Administration.Repair.Over(a.Repair)
	c := &m.out.Constraints
	maps.Copy(c.Services, t.Constraints.Services)
	c.Layout.MustCoexist = unionSets(c.Layout.MustCoexist, t.Constraints.Layout.MustCoexist)
	c.Layout.CantCoexist = unionSets(c.Layout.CantCoexist, t.Constraints.Layout.CantCoexist)
	// Stored templates have their size filled in, so the default bounds count as
	// "not given".
	if low, high := t.Constraints.Size.Bounds(); low != 1 || high != Unlimited {
		c.Size = SizeConstraint{Min: low, Max: high}
	}
	if t.Preferences != nil {
		m.out.Preferences = t.Preferences
	}
	return nil
}

// common merges what parts and templates both give.
func (m *merger) common(who string, d Defaults, c Compatibility, links []Link) error {
	for _, key := range sortedKeys(d.Config) {
		if owner, locked := m.locked[key]; locked {
			return InvalidFields([]FieldError{{"defaults.config." + key, fmt.Sprintf("The immutable partial template “%s” sets “%s”; %s may not set it again.", owner, key, who)}})
		}
		m.out.Defaults.Config[key] = d.Config[key]
	}
	out := &m.out
	out.Defaults.Services = union(out.Defaults.Services, d.Services)
	replace(&out.Defaults.Provider, d.Provider)
	replace(&out.Defaults.HardwareType, d.HardwareType)
	replace(&out.Defaults.ImageType, d.ImageType)
	replace(&out.Defaults.DNSSuffix, d.DNSSuffix)
	out.Compatibility.HardwareTypes = union(out.Compatibility.HardwareTypes, c.HardwareTypes)
	out.Compatibility.ImageTypes = union(out.Compatibility.ImageTypes, c.ImageTypes)
	out.Compatibility.Services = union(out.Compatibility.Services, c.Services)
	out.Links = mergeLinks(out.Links, links)
	return nil
}

func emptyTemplate() Template {
	return Template{
		Defaults:      Defaults{Services: []string{}, Config: map[string]any{}},
		Compatibility: Compatibility{HardwareTypes: []string{}, ImageTypes: []string{}, Services: []string{}},
		Constraints: Constraints{
			Layout:   LayoutConstraints{MustCoexist: [][]string{}, CantCoexist: [][]string{}},
			Services: map[string]ServiceConstraint{},
			Size:     SizeConstraint{Min: 1, Max: Unlimited},
		},
		Links: []Link{},
	}
}

func replace(old *string, with string) {
	if strings.TrimSpace(with) != "" {
		*old = with
	}
}

// union adds to a what b has besides.
func union(a, b []string) []string { return unionBy(a, b, func(s string) string { return s }) }

// unionSets compares sets regardless of the order of their members.
func unionSets(a, b [][]string) [][]string {
	return unionBy(a, b, func(set []string) string { return strings.Join(slices.Sorted(slices.Values(set)), "\x00") })
}

func unionBy[T any](a, b []T, key func(T) string) []T {
	there := make(map[string]bool, len(a)+len(b))
	for _, v := range a {
		there[key(v)] = true
	}
	for _, v := range b {
		if k := key(v); !there[k] {
			there[k] = true
			a = append(a, v)
		}
	}
	return a
}

// mergeLinks puts each link in place of the one with its label, or at the end; links
// without label are the same when their URL is.
func mergeLinks(links, more []Link) []Link {
	key := func(l Link) [2]string {
		if l.Label != "" {
			return [2]string{l.Label}
		}
		return [2]string{"", l.URL}
	}
	place := make(map[[2]string]int, len(links)+len(more))
	for i, l := range links {
		place[key(l)] = i
	}
	for _, l := range more {
		if i, there := place[key(l)]; there {
			links[i] = l
			continue
		}
		place[key(l)] = len(links)
		links = append(links, l)
	}
	return links
}
