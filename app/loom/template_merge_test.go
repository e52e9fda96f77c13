package loom

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func lookup(templates []Template, partials []PartialTemplate) TemplateLookup {
	return TemplateLookup{
		Template: func(name string) (Template, error) {
			for _, t := range templates {
				if t.Name == name {
					return t, nil
				}
			}
			return Template{}, NewError(NotFound, "no template %s", name)
		},
		Partial: func(name string) (PartialTemplate, error) {
			for _, p := range partials {
				if p.Name == name {
					return p, nil
				}
			}
			return PartialTemplate{}, NewError(NotFound, "no partial %s", name)
		},
	}
}

func TestResolveTemplateMergesInOrder(t *testing.T) {
	t.Parallel()
	two := 2
	base := Template{
		Base:          Base{Name: "base", Description: "of the base"},
		Includes:      []NameRef{{"common"}},
		Defaults:      Defaults{Services: []string{"base"}, Provider: "lab", HardwareType: "small", Config: map[string]any{"a": "base", "b": map[string]any{"x": 1}}},
		Compatibility: Compatibility{HardwareTypes: []string{"small"}, Services: []string{"base"}},
		Constraints: Constraints{
			Size: SizeConstraint{Min: 3, Max: 9}, Layout: LayoutConstraints{MustCoexist: [][]string{{"a", "b"}}},
			Services: map[string]ServiceConstraint{"base": {HardwareTypes: []string{"small"}}, "kept": {}},
		},
		Administration: Administration{Lease: LeaseRule{Initial: 5}},
		Links:          []Link{{"Console", "http://base"}, {"", "http://plain"}},
	}
	child := Template{
		Base:          Base{Name: "child", Version: 4},
		Extends:       &NameRef{"base"},
		Includes:      []NameRef{{"common"}, {"own"}},
		Defaults:      Defaults{Services: []string{"web", "base"}, HardwareType: " ", DNSSuffix: "lab.example", Config: map[string]any{"b": map[string]any{"y": 2}}},
		Compatibility: Compatibility{HardwareTypes: []string{"large"}, ImageTypes: []string{"deb12"}},
		Constraints: Constraints{
			Size: SizeConstraint{Min: 1, Max: Unlimited}, Layout: LayoutConstraints{MustCoexist: [][]string{{"b", "a"}, {"c", "d"}}},
			Services: map[string]ServiceConstraint{"base": {Quantities: &Quantities{Min: &two}}},
		},
		Links: []Link{{"Console", "http://child"}, {"", "http://plain"}},
	}
	partials := []PartialTemplate{
		{Base: Base{Name: "common"}, Defaults: Defaults{Services: []string{"ntp"}, ImageType: "deb11", Config: map[string]any{"a": "common"}}, Links: []Link{{"Docs", "http://docs"}}},
		{Base: Base{Name: "own"}, Immutable: true, Defaults: Defaults{Services: []string{"auditd"}, Config: map[string]any{"a": "own"}},
			Constraints: Constraints{Size: SizeConstraint{Min: 7, Max: 7}}},
	}
	got, err := ResolveTemplate(child, lookup([]Template{base}, partials))
	if err != nil {
		t.Fatal(err)
	}
	want := Template{
		Base: child.Base, Extends: child.Extends, Includes: child.Includes, Locked: []string{"a"},
		Defaults: Defaults{
			Services: []string{"ntp", "base", "auditd", "web"}, Provider: "lab", HardwareType: "small", ImageType: "deb11", DNSSuffix: "lab.example",
			Config: map[string]any{"a": "own", "b": map[string]any{"y": 2}},
		},
		Compatibility: Compatibility{HardwareTypes: []string{"small", "large"}, ImageTypes: []string{"deb12"}, Services: []string{"base"}},
		Constraints: Constraints{
			Size:     SizeConstraint{Min: 3, Max: 9},
			Layout:   LayoutConstraints{MustCoexist: [][]string{{"a", "b"}, {"c", "d"}}, CantCoexist: [][]string{}},
			Services: map[string]ServiceConstraint{"base": {Quantities: &Quantities{Min: &two}}, "kept": {}},
		},
		Administration: Administration{Lease: LeaseRule{Initial: 5}},
		Links:          []Link{{"Docs", "http://docs"}, {"Console", "http://child"}, {"", "http://plain"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if base.Defaults.Config["a"] != "base" || len(base.Constraints.Services) != 2 || len(base.Constraints.Services["base"].HardwareTypes) != 1 || base.Links[0].URL != "http://base" {
		t.Error("resolving changed what it was given")
	}
}

func TestResolveTemplateErrors(t *testing.T) {
	t.Parallel()
	good := Defaults{Services: []string{"s"}, Provider: "p"}
	locked := PartialTemplate{Base: Base{Name: "locked"}, Immutable: true, Defaults: Defaults{Config: map[string]any{"k": 1}}}
	deep := []Template{{Base: Base{Name: "d0"}, Defaults: good}}
	for i := 1; i < 20; i++ {
		deep = append(deep, Template{Base: Base{Name: fmt.Sprint("d", i)}, Extends: &NameRef{fmt.Sprint("d", i-1)}})
	}
	self := Template{Base: Base{Name: "self"}, Extends: &NameRef{"self"}, Defaults: good}
	a := Template{Base: Base{Name: "a"}, Extends: &NameRef{"b"}, Defaults: good}
	b := Template{Base: Base{Name: "b"}, Extends: &NameRef{"a"}}
	all := lookup(append(deep, self, a, b), []PartialTemplate{locked})
	for name, c := range map[string]struct {
		template Template
		kind     Kind
		says     string
	}{
		"complete":         {Template{Defaults: good}, "", ""},
		"15 parents":       {deep[15], "", ""},
		"16 parents":       {deep[16], Invalid, "16 deep"},
		"itself":           {self, Invalid, "self → self"},
		"circle":           {a, Invalid, "a → b → a"},
		"no parent":        {Template{Base: Base{Name: "x"}, Extends: &NameRef{"gone"}, Defaults: good}, NotFound, "“gone”"},
		"no partial":       {Template{Base: Base{Name: "x"}, Includes: []NameRef{{"gone"}}, Defaults: good}, NotFound, "“gone”"},
		"no services":      {Template{Defaults: Defaults{Provider: "p"}}, Invalid, "services"},
		"no provider":      {Template{Defaults: Defaults{Services: []string{"s"}}}, Invalid, "provider"},
		"bad suffix":       {Template{Defaults: Defaults{Services: []string{"s"}, Provider: "p", DNSSuffix: "a..b"}}, Invalid, "DNS suffix"},
		"breaks immutable": {Template{Includes: []NameRef{{"locked"}}, Defaults: Defaults{Services: []string{"s"}, Provider: "p", Config: map[string]any{"k": 1}}}, Invalid, "“k”"},
		"beside immutable": {Template{Includes: []NameRef{{"locked"}, {"locked"}}, Defaults: Defaults{Services: []string{"s"}, Provider: "p", Config: map[string]any{"other": 1}}}, "", ""},
	} {
		_, err := ResolveTemplate(c.template, all)
		if c.kind == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %s with %q", name, err, c.kind, c.says)
		}
	}
}

func TestMaskSecrets(t *testing.T) {
	t.Parallel()
	in := map[string]any{"db_password": "x", "n": 1, "list": []any{map[string]any{"API_KEY": "y", "token": "", "secret": nil}}}
	want := map[string]any{"db_password": Redacted, "n": 1, "list": []any{map[string]any{"API_KEY": Redacted, "token": "", "secret": nil}}}
	if got := MaskSecrets(in); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if in["db_password"] != "x" {
		t.Error("masking changed its input")
	}
}

// Constraints and administration come from templates only.
func TestPartsGiveNoLimits(t *testing.T) {
	t.Parallel()
	part := PartialTemplate{Base: Base{Name: "part"}, Constraints: Constraints{Size: SizeConstraint{Min: 2, Max: 3}, Services: map[string]ServiceConstraint{"a": {}}},
		Administration: Administration{Lease: LeaseRule{Initial: 1, Max: 2}, OnFailure: OnFailureUndo}}
	child := Template{Base: Base{Name: "child"}, Includes: []NameRef{{"part"}}, Defaults: Defaults{Services: []string{"a"}, Provider: "lab"}}
	got, err := ResolveTemplate(child, lookup(nil, []PartialTemplate{part}))
	if err != nil || got.Administration != (Administration{}) || len(got.Constraints.Services) != 0 || got.Constraints.Size != (SizeConstraint{Min: 1, Max: Unlimited}) {
		t.Errorf("resolved %+v, %v", got, err)
	}
}

// BenchmarkMergeTemplate: ns/set must be about the same for every number of sets.
func BenchmarkMergeTemplate(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		t := Template{Base: Base{Name: "many"}}
		for i := range n {
			t.Constraints.Layout.MustCoexist = append(t.Constraints.Layout.MustCoexist, []string{fmt.Sprint("a", i), fmt.Sprint("b", i)})
			t.Links = append(t.Links, Link{Label: fmt.Sprint(i), URL: "https://loom.example"})
			t.Defaults.Services = append(t.Defaults.Services, fmt.Sprint("a", i))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := MergeTemplate(t, TemplateLookup{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/set")
		})
	}
}
