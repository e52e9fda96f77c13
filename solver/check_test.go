package solver

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
)

func service(name string, d loom.Dependencies) loom.Service {
	return loom.Service{Base: loom.Base{Name: name}, Dependencies: d}
}

// shop is a small catalog: web requires a database, which two services provide.
func shop(services ...string) Input {
	in := testInput(2, services, []string{"large", "small"}, []string{"deb"}, loom.Constraints{})
	in.Catalog = map[string]loom.Service{
		"web":   service("web", loom.Dependencies{Install: loom.PhaseDependency{Requires: []string{"database"}}, Runtime: loom.PhaseDependency{Requires: []string{"database", "base"}, Uses: []string{"cache"}}}),
		"pg":    service("pg", loom.Dependencies{Provides: []string{"database"}, Conflicts: []string{"database"}, Install: loom.PhaseDependency{Requires: []string{"base"}}}),
		"my":    service("my", loom.Dependencies{Provides: []string{"database"}}),
		"base":  service("base", loom.Dependencies{}),
		"proxy": service("proxy", loom.Dependencies{Conflicts: []string{"web", "proxy"}}),
		"odd":   service("odd", loom.Dependencies{Runtime: loom.PhaseDependency{Requires: []string{"nowhere"}}}),
	}
	return in
}

func labels(s []loom.Suggestion) []string {
	var out []string
	for _, x := range s {
		out = append(out, x.Label)
	}
	return out
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		in       func() Input
		code     string
		reasons  []string
		suggests []string
	}{
		{"fits", func() Input { return shop("web", "pg", "base") }, "", nil, nil},
		{"missing", func() Input { return shop("web", "base") }, CodeDependency,
			[]string{"requires(web,database)"},
			[]string{"Add my (required by web)", "Add pg (required by web)", "Remove web"}},
		{"missing twice", func() Input { return shop("web") }, CodeDependency,
			[]string{"requires(web,base)", "requires(web,database)"},
			[]string{"Add base and my"}},
		{"missing and not to be had", func() Input { return shop("odd", "base") }, CodeDependency,
			[]string{"requires(odd,nowhere)"}, []string{"Remove odd"}},
		{"conflict with a provided name", func() Input { return shop("pg", "my", "base") }, CodeConflict,
			[]string{"conflicts(pg,my)"}, []string{"Remove pg", "Remove my"}},
		{"no conflict with itself", func() Input { return shop("pg", "base") }, "", nil, nil},
		{"conflict", func() Input { return shop("proxy", "web", "my", "base") }, CodeConflict,
			[]string{"conflicts(proxy,web)"}, []string{"Remove proxy", "Remove web"}},
		{"all together", func() Input {
			in := shop("web", "gone", "proxy", "my")
			in.HardwareType, in.ImageType = "huge", "rpm"
			in.Template.Compatibility.Services = []string{"web", "gone", "my", "base"}
			return in
		}, CodeHardwareType, []string{"known.hardwaretypes", "known.imagetypes", "compat.services(proxy)", "service(gone)", "requires(web,base)", "conflicts(proxy,web)"},
			[]string{"Add base and remove gone and proxy and choose large and deb instead of huge and rpm"}},
		{"type not compatible", func() Input {
			in := shop("base")
			in.HardwareType = "large"
			in.Template.Compatibility.HardwareTypes = []string{"small"}
			return in
		}, CodeHardwareType, []string{"compat.hardwaretypes"}, []string{"Choose small instead of large"}},
		{"no flavor", func() Input {
			in := shop("base")
			in.HardwareType = "large"
			in.HardwareTypes[0].ProviderMap = nil
			return in
		}, CodeHardwareType, []string{"provider.hardwaretypes"}, []string{"Choose small instead of large"}},
		{"no image anywhere", func() Input {
			in := shop("base")
			in.ImageTypes[0].ProviderMap["local"] = map[string]string{"sshuser": "root"}
			return in
		}, CodeImageType, []string{"provider.imagetypes"}, []string{"Give image type deb an image for provider local"}},
		{"nothing compatible", func() Input {
			in := shop("base")
			in.Template.Compatibility.ImageTypes = []string{"other"}
			return in
		}, CodeImageType, []string{"compat.imagetypes"}, []string{"Change the template: allow image type deb"}},
		{"unknown and incompatible can go", func() Input {
			in := shop("base", "gone", "my")
			in.Template.Compatibility.Services = []string{"base", "gone"}
			return in
		}, CodeIncompatible, []string{"compat.services(my)", "service(gone)"}, []string{"Remove gone and my"}},
		{"no service", func() Input { return shop() }, CodeUnsat, []string{"services"}, []string{"Add base", "Add my", "Add proxy"}},
		{"layout: wrong type for one", func() Input {
			in := shop("base", "my")
			in.Template.Defaults.HardwareType = "small"
			in.Template.Constraints.Services = map[string]loom.ServiceConstraint{"my": {HardwareTypes: []string{"large"}}}
			return in
		}, CodeUnsat, []string{"hardware(my)"}, []string{"Choose large instead of small", "Remove my"}},
		{"layout: too few", func() Input {
			in := shop("base", "my", "pg")
			in.Catalog["pg"] = service("pg", loom.Dependencies{})
			in.Machines = 1
			in.Template.Constraints.Layout.CantCoexist = [][]string{{"my", "pg"}}
			return in
		}, CodeUnsat, []string{"cant#0", "M"}, []string{"Use 2 nodes", "Remove my", "Remove pg"}},
		{"layout: two changes", func() Input {
			in := shop("web", "my")
			in.Machines = 1
			in.Template.Constraints.Layout.CantCoexist = [][]string{{"my", "base"}}
			return in
		}, CodeDependency, []string{"requires(web,base)"}, []string{"Add base (required by web) and use 2 nodes", "Remove web"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, layout, unsat, err := Create(context.Background(), c.in())
			if err != nil {
				t.Fatal(err)
			}
			if c.code == "" {
				if unsat != nil || layout == nil {
					t.Fatalf("refused: %+v", unsat)
				}
				return
			}
			if unsat == nil {
				t.Fatalf("accepted: %v", layout)
			}
			var ids []string
			for _, r := range unsat.Reasons {
				ids = append(ids, r.ID)
				if r.Code == "" || !strings.HasSuffix(r.Message, ".") {
					t.Errorf("reason without code or sentence: %+v", r)
				}
			}
			if unsat.Code != c.code || unsat.Headline == "" || !reflect.DeepEqual(ids, c.reasons) {
				t.Errorf("got %s %q %v\nwant %s %v", unsat.Code, unsat.Headline, ids, c.code, c.reasons)
			}
			if got := labels(unsat.Suggestions); !reflect.DeepEqual(got, c.suggests) {
				t.Errorf("suggestions %q, want %q", got, c.suggests)
			}
		})
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	in := shop("pg", "my", "web")
	in.Template.Compatibility.Services = []string{"pg", "web"}
	_, unsat := NewProblem(in)
	var got []string
	for _, r := range unsat.Reasons {
		got = append(got, r.Message)
	}
	want := []string{
		"The template's compatibility list does not allow service my.",
		"pg requires base, which no service of the cluster is or provides (dependency of service pg).",
		"web requires base, which no service of the cluster is or provides (dependency of service web).",
		"pg conflicts with my, which provides database (dependency of service pg).",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestValidFindsEveryBreach(t *testing.T) {
	t.Parallel()
	two, one := 2, 1
	in := testInput(4, []string{"a", "b", "c", "d"}, []string{"h1", "h2"}, []string{"i1", "i2"}, loom.Constraints{
		Size: loom.SizeConstraint{Min: 2, Max: 5},
		Services: map[string]loom.ServiceConstraint{
			"a": {HardwareTypes: []string{"h1"}, ImageTypes: []string{"i1"}, Quantities: &loom.Quantities{Max: &two}},
			"d": {Quantities: &loom.Quantities{Min: &one}},
		},
		Layout: loom.LayoutConstraints{MustCoexist: [][]string{{"b", "c"}}, CantCoexist: [][]string{{"a", "b", "c"}}},
	})
	p := mustProblem(t, in)
	good := solved(t, p)
	if len(good) == 0 {
		t.Fatal("no layout to begin with")
	}
	group := func(n int, h, i string, s ...string) loom.LayoutGroup {
		return loom.LayoutGroup{Count: n, NodeLayout: loom.NodeLayout{HardwareType: h, ImageType: i, Services: s}}
	}
	rest := group(2, "h1", "i1", "b", "c", "d")
	for want, l := range map[string]loom.Layout{
		"":                layoutOf(group(2, "h1", "i1", "a", "d"), rest),
		"M":               layoutOf(group(1, "h1", "i1", "a", "d"), rest),
		"hardware(a)":     layoutOf(group(2, "h2", "i1", "a"), rest),
		"image(a)":        layoutOf(group(2, "h1", "i2", "a"), rest),
		"hardwaretype":    layoutOf(group(1, "h1", "i1", "a"), group(1, "h9", "i1", "d"), rest),
		"imagetype":       layoutOf(group(1, "h1", "i1", "a"), group(1, "h1", "i9", "d"), rest),
		"must#0":          layoutOf(group(1, "h1", "i1", "a"), group(1, "h1", "i1", "b"), rest),
		"cant#0":          layoutOf(group(2, "h1", "i1", "a", "b", "c"), rest),
		"quantity(a).max": layoutOf(group(3, "h1", "i1", "a"), group(1, "h1", "i1", "b", "c", "d")),
		"quantity(a).min": layoutOf(group(2, "h1", "i1", "d"), rest),
		"service(x)":      layoutOf(group(2, "h1", "i1", "a", "x"), rest),
		"layout":          layoutOf(group(1, "h1", "i1", "a"), group(1, "h1", "i1"), rest),
	} {
		var ids []string
		for _, r := range Valid(p, l) {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%v: got %q, want %q", layoutText(l), got, want)
		}
	}
	p.Machines = 1
	if got := Valid(p, layoutOf(group(1, "h1", "i1", "a"))); len(got) == 0 || got[0].ID != "size.min" {
		t.Errorf("size: %+v", got)
	}
}

func layoutOf(g ...loom.LayoutGroup) loom.Layout { return g }

func TestTooManyConstraints(t *testing.T) {
	t.Parallel()
	var names []string
	var pairs [][]string
	for i := range maxGroups + 1 {
		names = append(names, "s"+string(rune('a'+i/26))+string(rune('a'+i%26)))
		pairs = append(pairs, []string{names[0], names[i]}[:1+min(i, 1)])
	}
	in := testInput(3, names, []string{"h"}, []string{"i"}, loom.Constraints{Layout: loom.LayoutConstraints{CantCoexist: pairs[1:]}})
	if _, _, err := Solve(context.Background(), mustProblem(t, in)); loom.AsError(err).Kind != loom.Invalid {
		t.Errorf("got %v", err)
	}
	in.Services = names[:maxGroups]
	if got := solved(t, mustProblem(t, in)); len(got) != 2 {
		t.Errorf("got %d groups", len(got))
	}
}
