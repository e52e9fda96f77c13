package loom_test

import (
	"fmt"
	"slices"
	"testing"

	"loom/app/loom"
)

func manyNames(letter string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(letter, i))
	}
	return names
}

// TestListsOfNamesAreBounded: every list of names of a service, a template and a partial
// template has a limit, and the error names it.
func TestListsOfNamesAreBounded(t *testing.T) {
	t.Parallel()
	service := func(list func(*loom.Service) *[]string) func(n int) loom.Entry {
		return func(n int) loom.Entry {
			s := &loom.Service{Base: loom.Base{Name: "s"}}
			*list(s) = manyNames("n", n)
			return s
		}
	}
	layout := func(sets ...[]string) loom.Entry {
		return &loom.Template{Base: loom.Base{Name: "t"}, Constraints: loom.Constraints{Layout: loom.LayoutConstraints{CantCoexist: sets}}}
	}
	for field, c := range map[string]struct {
		most int
		make func(n int) loom.Entry
	}{
		"dependencies.provides":         {200, service(func(s *loom.Service) *[]string { return &s.Dependencies.Provides })},
		"dependencies.conflicts":        {200, service(func(s *loom.Service) *[]string { return &s.Dependencies.Conflicts })},
		"dependencies.install.requires": {200, service(func(s *loom.Service) *[]string { return &s.Dependencies.Install.Requires })},
		"dependencies.install.uses":     {200, service(func(s *loom.Service) *[]string { return &s.Dependencies.Install.Uses })},
		"dependencies.runtime.requires": {200, service(func(s *loom.Service) *[]string { return &s.Dependencies.Runtime.Requires })},
		"dependencies.runtime.uses":     {200, service(func(s *loom.Service) *[]string { return &s.Dependencies.Runtime.Uses })},
		"follows":                       {200, service(func(s *loom.Service) *[]string { return &s.Follows })},
		"defaults.services": {2000, func(n int) loom.Entry {
			return &loom.Template{Base: loom.Base{Name: "t"}, Defaults: loom.Defaults{Services: manyNames("n", n)}}
		}},
		"compatibility.services": {2000, func(n int) loom.Entry {
			return &loom.PartialTemplate{Base: loom.Base{Name: "t"}, Compatibility: loom.Compatibility{Services: manyNames("n", n)}}
		}},
		"constraints.services": {2000, func(n int) loom.Entry {
			limits := map[string]loom.ServiceConstraint{}
			for _, name := range manyNames("n", n) {
				limits[name] = loom.ServiceConstraint{}
			}
			return &loom.Template{Base: loom.Base{Name: "t"}, Constraints: loom.Constraints{Services: limits}}
		}},
		"constraints.layout": {100, func(n int) loom.Entry { return layout(manyNames("n", n)) }},
	} {
		has := func(n int) bool {
			return slices.ContainsFunc(c.make(n).Validate(), func(e loom.FieldError) bool { return e.Field == field })
		}
		if has(c.most) || !has(c.most+1) {
			t.Errorf("%s: %d is refused %t, one more %t", field, c.most, has(c.most), has(c.most+1))
		}
	}
	var pairs [][]string
	for range 2501 {
		pairs = append(pairs, []string{"a", "b"})
	}
	if errs := layout(pairs...).Validate(); !slices.ContainsFunc(errs, func(e loom.FieldError) bool { return e.Field == "constraints.layout" }) {
		t.Error("2,501 groups are taken")
	}
	old := layout(manyNames("n", 2000)).(*loom.Template)
	old.Constraints.Layout.MustCoexist = [][]string{manyNames("n", 2000)}
	if clashes := old.LayoutClashes(nil); len(clashes) != 1 || len(clashes[0].Pairs) != 0 {
		t.Errorf("rules of an older version give %d clashes", len(clashes))
	}
}

// TestFoes: foes are named once, and the first 100 of very many.
func TestFoes(t *testing.T) {
	t.Parallel()
	s := func(provides, conflicts []string) loom.Service {
		return loom.Service{Dependencies: loom.Dependencies{Provides: provides, Conflicts: conflicts}}
	}
	few := map[string]loom.Service{"a": s(nil, []string{"web", "a", "none"}), "b": s([]string{"web"}, []string{"a"}), "c": s([]string{"web", "web"}, nil), "d": s(nil, []string{"c"})}
	if got := fmt.Sprint(loom.Foes([]string{"d", "c", "b", "a"}, few)); got != "[{a b} {a c} {d c}]" {
		t.Errorf("foes are %s", got)
	}
	many, names := map[string]loom.Service{}, manyNames("n", 300)
	for _, name := range names {
		many[name] = s([]string{"x"}, []string{"x"})
	}
	if got := loom.Foes(names, many); len(got) != 100 {
		t.Errorf("%d foes are told", len(got))
	}
}
