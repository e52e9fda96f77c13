package solver

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"loom/app/loom"
)

// testInput builds an input in which every service exists, every type is usable
// and the services are all asked for.
func testInput(machines int, services, hardware, images []string, c loom.Constraints) Input {
	in := Input{Provider: "local", Machines: machines, Services: services, Catalog: map[string]loom.Service{}}
	in.Template.Constraints = c
	for _, s := range services {
		in.Catalog[s] = loom.Service{Base: loom.Base{Name: s}}
	}
	for _, h := range hardware {
		in.HardwareTypes = append(in.HardwareTypes, loom.HardwareType{Base: loom.Base{Name: h}, ProviderMap: map[string]map[string]string{"local": {"flavor": h}}})
	}
	for _, i := range images {
		in.ImageTypes = append(in.ImageTypes, loom.ImageType{Base: loom.Base{Name: i}, ProviderMap: map[string]map[string]string{"local": {"image": i}}})
	}
	return in
}

func mustProblem(t testing.TB, in Input) Problem {
	t.Helper()
	p, unsat := NewProblem(in)
	if unsat != nil {
		t.Fatalf("NewProblem: %+v", unsat)
	}
	return p
}

// randomInput is a small instance of anything a template can say.
func randomInput(r *rand.Rand, maxServices, maxMachines int) Input {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}[:1+r.IntN(maxServices)]
	hardware := []string{"h1", "h2", "h3"}[:1+r.IntN(3)]
	images := []string{"i1", "i2"}[:1+r.IntN(2)]
	some := func(from []string, least int) []string {
		var out []string
		for _, n := range from {
			if r.IntN(2) == 0 {
				out = append(out, n)
			}
		}
		for len(out) < least {
			out = append(out, from[r.IntN(len(from))])
		}
		return out
	}
	c := loom.Constraints{Services: map[string]loom.ServiceConstraint{}}
	for _, n := range names {
		var sc loom.ServiceConstraint
		if r.IntN(3) == 0 {
			sc.HardwareTypes = some(hardware, 1)
		}
		if r.IntN(6) == 0 {
			sc.ImageTypes = some(images, 1)
		}
		if r.IntN(3) > 0 {
			sc.Quantities = &loom.Quantities{}
			if r.IntN(2) == 0 {
				v := r.IntN(4)
				sc.Quantities.Min = &v
			}
			if r.IntN(2) == 0 {
				v := r.IntN(5)
				if m := sc.Quantities.Min; m != nil {
					v = max(v, *m)
				}
				sc.Quantities.Max = &v
			}
		}
		if r.IntN(4) > 0 {
			c.Services[n] = sc
		}
	}
	known := append([]string{"absent"}, names...)
	for range r.IntN(4) {
		c.Layout.CantCoexist = append(c.Layout.CantCoexist, some(known, 2)[:2])
	}
	if r.IntN(3) == 0 {
		c.Layout.CantCoexist = append(c.Layout.CantCoexist, some(names, 3))
	}
	if r.IntN(3) == 0 {
		c.Layout.MustCoexist = append(c.Layout.MustCoexist, some(known, 2)[:2])
	}
	in := testInput(1+r.IntN(maxMachines), names, hardware, images, c)
	if r.IntN(3) == 0 {
		in.Template.Preferences = &loom.Preferences{HardwareTypes: some(hardware, 1), ImageTypes: some(images, 0)}
	}
	return in
}

func TestProblemIsCanonical(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		in := randomInput(r, 5, 6)
		want := mustProblem(t, in).Hash()
		shuffle(r, &in, false)
		if got := mustProblem(t, in).Hash(); got != want {
			t.Fatalf("hash depends on the order of the input: %+v", in)
		}
		in.Machines++
		if got := mustProblem(t, in).Hash(); got == want {
			t.Fatal("hash does not cover the number of machines")
		}
	}
}

// shuffle changes the order of everything that is a set; with sets, also that of
// the layout sets, whose numbers reasons show.
func shuffle(r *rand.Rand, in *Input, sets bool) {
	mix := func(s []string) []string {
		s = append([]string(nil), s...)
		r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
		return s
	}
	in.Services = mix(in.Services)
	r.Shuffle(len(in.HardwareTypes), func(i, j int) {
		in.HardwareTypes[i], in.HardwareTypes[j] = in.HardwareTypes[j], in.HardwareTypes[i]
	})
	r.Shuffle(len(in.ImageTypes), func(i, j int) {
		in.ImageTypes[i], in.ImageTypes[j] = in.ImageTypes[j], in.ImageTypes[i]
	})
	services := map[string]loom.ServiceConstraint{}
	for n, sc := range in.Template.Constraints.Services {
		sc.HardwareTypes, sc.ImageTypes = mix(sc.HardwareTypes), mix(sc.ImageTypes)
		services[n] = sc
	}
	in.Template.Constraints.Services = services
	layout := &in.Template.Constraints.Layout
	for _, list := range []*[][]string{&layout.MustCoexist, &layout.CantCoexist} {
		var mixed [][]string
		for _, set := range *list {
			mixed = append(mixed, mix(set))
		}
		if sets {
			r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		}
		*list = mixed
	}
}

func TestDefaultsOfTheTemplate(t *testing.T) {
	t.Parallel()
	zero, two := 0, 2
	in := testInput(3, []string{"web", "db", "log"}, []string{"small", "large"}, []string{"deb"}, loom.Constraints{
		Size: loom.SizeConstraint{Min: 2, Max: 50},
		Services: map[string]loom.ServiceConstraint{
			"db":  {Quantities: &loom.Quantities{Min: &zero, Max: &two}},
			"web": {HardwareTypes: []string{"small", "large", "small"}},
		},
		Layout: loom.LayoutConstraints{
			MustCoexist: [][]string{{"gone", "web"}, {"web", "log", "gone"}},
			CantCoexist: [][]string{{}, {"db", "gone"}, {"web", "db"}},
		},
	})
	in.Template.Defaults = loom.Defaults{Services: in.Services, Provider: "local", HardwareType: "large", ImageType: "deb"}
	in.Provider, in.Services, in.MaxMachines = "", nil, 10
	p := mustProblem(t, in)
	if p.Size != (loom.SizeRange{Min: 2, Max: 10}) {
		t.Errorf("size %v", p.Size)
	}
	want := `{"machines":3,"size":{"min":2,"max":10},"hardwaretypes":["large"],"imagetypes":["deb"],` +
		`"services":[{"name":"db","min":0,"max":2},{"name":"log","min":1,"max":2147483647},{"name":"web","min":1,"max":2147483647,"hardwaretypes":["large","small"]}],` +
		`"mustcoexist":[{"index":1,"services":["log","web"]}],"cantcoexist":[{"index":2,"services":["db","web"]}]}`
	if got := toJSON(t, p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	in.HardwareType = "small"
	if got := mustProblem(t, in).HardwareTypes; len(got) != 1 || got[0] != "small" {
		t.Errorf("the request's hardware type does not win: %v", got)
	}
}

func TestPreferenceOrder(t *testing.T) {
	t.Parallel()
	in := testInput(1, []string{"a"}, []string{"large", "medium", "small"}, []string{"x", "y"}, loom.Constraints{})
	in.Template.Preferences = &loom.Preferences{HardwareTypes: []string{"small", "nope"}, ImageTypes: []string{"y"}}
	p := mustProblem(t, in)
	if got := toJSON(t, [][]string{p.HardwareTypes, p.ImageTypes}); got != `[["small","large","medium"],["y","x"]]` {
		t.Errorf("order %s", got)
	}
}

func TestManyTypesAreNoMatter(t *testing.T) {
	t.Parallel()
	var hardware []string
	for i := range 700 {
		hardware = append(hardware, "t"+strconv.Itoa(1000+i))
	}
	in := testInput(2, []string{"a", "b"}, hardware, []string{"x"}, loom.Constraints{Services: map[string]loom.ServiceConstraint{
		"a": {HardwareTypes: hardware[300:400]},
		"b": {HardwareTypes: hardware[350:500]},
	}})
	if got := solved(t, mustProblem(t, in)); len(got) != 1 || got[0] != "2 t1350/x a,b" {
		t.Errorf("got %v", got)
	}
}
