package solver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/testkit"
)

// largeInput has 50 services with minima, on 10,000 nodes or, when tight, on
// exactly as many as they need.
func largeInput(seed uint64, conflicts func(r *rand.Rand, i, j int) bool) Input {
	r := rand.New(rand.NewPCG(seed, 50))
	var names []string
	c := loom.Constraints{Services: map[string]loom.ServiceConstraint{}}
	for i := range 50 {
		names = append(names, fmt.Sprintf("s%02d", i))
		q := &loom.Quantities{}
		if v := 1 + r.IntN(5); r.IntN(2) == 0 {
			q.Min = &v
		}
		if v := 5 + r.IntN(3000); r.IntN(2) == 0 {
			q.Max = &v
		}
		sc := loom.ServiceConstraint{Quantities: q}
		if r.IntN(4) == 0 {
			sc.HardwareTypes = []string{"large", "xlarge"}
		}
		c.Services[names[i]] = sc
	}
	for i := range names {
		for j := range i {
			if conflicts(r, i, j) {
				c.Layout.CantCoexist = append(c.Layout.CantCoexist, []string{names[j], names[i]})
			}
		}
	}
	return testInput(10000, names, []string{"large", "small", "xlarge"}, []string{"deb", "rpm"}, c)
}

var largeShapes = []struct {
	name      string
	conflicts func(r *rand.Rand, i, j int) bool
}{
	{"chain", func(_ *rand.Rand, i, j int) bool { return i-j == 1 }},
	{"cliques", func(_ *rand.Rand, i, j int) bool { return i/5 == j/5 }},
	{"random0.1", func(r *rand.Rand, _, _ int) bool { return r.IntN(10) == 0 }},
	{"random0.5", func(r *rand.Rand, _, _ int) bool { return r.IntN(2) == 0 }},
}

func BenchmarkSolve(b *testing.B) {
	for _, shape := range largeShapes {
		for _, mode := range []string{"10000", "tight", "no"} {
			b.Run(shape.name+"/"+mode, func(b *testing.B) {
				p := mustProblem(b, largeInput(1, shape.conflicts))
				sizes, ok, err := Sizes(context.Background(), p)
				if err != nil || !ok {
					b.Fatal(ok, err)
				}
				switch mode {
				case "tight":
					p.Machines = sizes.Min
				case "no":
					p.Machines = sizes.Min - 1
				}
				b.ReportMetric(float64(p.Machines), "machines")
				b.ReportAllocs()
				for b.Loop() {
					if _, unsat, err := Solve(context.Background(), p); err != nil || (unsat == nil) == (mode == "no") {
						b.Fatal(unsat, err)
					}
				}
			})
		}
	}
}

// typicalInput is a template with 12 layout sets and 10 hardware types: groups of
// three that go together, masters apart from workers, and limits on some.
func typicalInput(services, machines int) Input {
	var names, hardware []string
	c := loom.Constraints{Services: map[string]loom.ServiceConstraint{}}
	for i := range 10 {
		hardware = append(hardware, fmt.Sprintf("type%d", i))
	}
	for i := range services {
		name := fmt.Sprintf("s%02d", i)
		names = append(names, name)
		one, few := 1, 3
		switch i % 5 {
		case 0:
			c.Services[name] = loom.ServiceConstraint{Quantities: &loom.Quantities{Min: &one, Max: &one}}
		case 1:
			c.Services[name] = loom.ServiceConstraint{Quantities: &loom.Quantities{Max: &few}, HardwareTypes: hardware[i%10:]}
		case 2:
			c.Services[name] = loom.ServiceConstraint{HardwareTypes: hardware[:1+i%10]}
		}
	}
	pick := func(i int) string { return names[i%services] }
	for i := range 4 {
		c.Layout.MustCoexist = append(c.Layout.MustCoexist, []string{pick(10 * i), pick(10*i + 5)})
	}
	for i := range 8 {
		c.Layout.CantCoexist = append(c.Layout.CantCoexist, []string{pick(5 * i), pick(5*i + 3)})
	}
	return testInput(machines, names, hardware, []string{"deb", "rpm"}, c)
}

// BenchmarkSweep shows that the number of machines costs nothing.
func BenchmarkSweep(b *testing.B) {
	for _, services := range []int{5, 10, 20, 30, 40, 50, 60} {
		for _, machines := range []int{5, 50, 500, 10000} {
			b.Run(fmt.Sprintf("services%d/machines%d", services, machines), func(b *testing.B) {
				in := typicalInput(services, machines)
				b.ReportAllocs()
				for b.Loop() {
					if _, l, unsat, err := Create(context.Background(), in); err != nil || l == nil && unsat == nil {
						b.Fatal(unsat, err)
					}
				}
			})
		}
	}
}

// BenchmarkAdd adds five services to 10,000 nodes.
func BenchmarkAdd(b *testing.B) {
	in := typicalInput(50, 10000)
	add := []string{"s44", "s45", "s46", "s48", "s49"}
	in.Services = slices.DeleteFunc(slices.Clone(in.Services), func(s string) bool { return slices.Contains(add, s) })
	_, l, unsat, err := Create(context.Background(), in)
	if l == nil {
		b.Fatal(unsat, err)
	}
	c := Cluster{Input: in}
	for _, g := range l {
		for range g.Count {
			c.Nodes = append(c.Nodes, Node{ID: fmt.Sprint(len(c.Nodes)), NodeLayout: g.NodeLayout})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, unsat, err := Add(context.Background(), c, add); unsat != nil || err != nil {
			b.Fatal(unsat, err)
		}
	}
}

// dataPlatform has the shape of a big real template: masters together, workers
// together, never both, and a few that stand alone.
func dataPlatform(machines int) Input {
	one, two, three, five := 1, 2, 3, 5
	single := loom.ServiceConstraint{Quantities: &loom.Quantities{Min: &one, Max: &one}}
	return testInput(machines,
		[]string{"base", "catalog", "catalog-db", "coordinator", "files-master", "files-worker", "history", "jobs-master", "jobs-worker", "query", "spark", "table-master", "table-worker", "web"},
		[]string{"large", "medium", "xlarge"}, []string{"deb", "rpm"},
		loom.Constraints{
			Size: loom.SizeConstraint{Min: 3},
			Layout: loom.LayoutConstraints{
				MustCoexist: [][]string{{"files-worker", "jobs-worker", "table-worker"}, {"files-master", "jobs-master", "table-master", "history", "spark"}, {"catalog", "catalog-db"}},
				CantCoexist: [][]string{{"files-master", "files-worker"}, {"jobs-master", "jobs-worker"}, {"table-master", "table-worker"}, {"catalog", "files-master"}, {"web", "files-worker"}},
			},
			Services: map[string]loom.ServiceConstraint{
				"files-master": single, "jobs-master": single, "table-master": single, "history": single, "catalog-db": single,
				"coordinator":  {Quantities: &loom.Quantities{Min: &three, Max: &five}},
				"files-worker": {Quantities: &loom.Quantities{Min: &two}, HardwareTypes: []string{"large", "xlarge"}},
				"web":          {Quantities: &loom.Quantities{Max: &two}},
				"query":        {Quantities: &loom.Quantities{Max: &one}},
			},
		})
}

func BenchmarkDataPlatform(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, l, unsat, err := Create(context.Background(), dataPlatform(10000)); l == nil {
			b.Fatal(unsat, err)
		}
	}
}

func TestDataPlatform(t *testing.T) {
	t.Parallel()
	got := solved(t, mustProblem(t, dataPlatform(6)))
	want := "[1 large/deb base,coordinator,files-master,history,jobs-master,query,spark,table-master,web" +
		" 1 large/deb base,catalog,catalog-db,coordinator,files-worker,jobs-worker,table-worker" +
		" 3 large/deb base,coordinator,files-worker,jobs-worker,table-worker 1 large/deb base,files-worker,jobs-worker,table-worker]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	_, _, unsat, err := Create(context.Background(), dataPlatform(2))
	if err != nil || unsat == nil || unsat.Code != CodeSize || len(unsat.Suggestions) == 0 || unsat.Suggestions[0].Machines != 3 {
		t.Errorf("2 machines: %+v %v", unsat, err)
	}
}

// The target is 50 ms; the limit here leaves room for a busy
// machine and still catches a search that explodes.
func TestLargeProblemsAreQuick(t *testing.T) {
	t.Parallel()
	for _, shape := range largeShapes {
		for seed := range uint64(5) {
			p := mustProblem(t, largeInput(seed, shape.conflicts))
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			l, unsat, err := Solve(ctx, p)
			cancel()
			if err != nil || unsat != nil {
				t.Fatalf("%s %d: %+v %v", shape.name, seed, unsat, err)
			}
			if broken := Valid(p, l); len(broken) > 0 {
				t.Errorf("%s %d: %+v", shape.name, seed, broken)
			}
		}
	}
}

func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("the caller went away")
	cancel(cause)
	p := mustProblem(t, largeInput(1, largeShapes[3].conflicts))
	for _, machines := range []int{1, 10000} {
		p.Machines = machines
		l, unsat, err := Solve(ctx, p)
		if l != nil || unsat != nil || !errors.Is(err, loom.Unavailable) || !errors.Is(err, cause) {
			t.Errorf("%d machines: %v %+v %v", machines, l, unsat, err)
		}
	}
	if _, _, err := Sizes(ctx, p); !errors.Is(err, loom.Unavailable) {
		t.Errorf("Sizes: %v", err)
	}
}

// A large real template works at every size, with what it has by default and with
// all that it allows.
func TestHadoopDistributed(t *testing.T) {
	t.Parallel()
	root := testkit.Catalog(t)
	in := Input{Catalog: map[string]loom.Service{}, MaxMachines: 10000}
	readAll(t, root, "services", func(s loom.Service) { in.Catalog[s.Name] = s })
	readAll(t, root, "hardwaretypes", func(h loom.HardwareType) { in.HardwareTypes = append(in.HardwareTypes, h) })
	readAll(t, root, "imagetypes", func(i loom.ImageType) { in.ImageTypes = append(in.ImageTypes, i) })
	readAll(t, root, "clustertemplates", func(tpl loom.Template) {
		if tpl.Name == "hadoop-distributed" {
			in.Template = tpl
		}
	})
	if len(in.Template.Defaults.Services) != 8 || len(in.Template.Compatibility.Services) != 14 {
		t.Fatalf("the template has %d services by default and allows %d; 8 and 14 are expected", len(in.Template.Defaults.Services), len(in.Template.Compatibility.Services))
	}
	for _, services := range [][]string{nil, in.Template.Compatibility.Services} {
		for _, machines := range []int{3, 50, 500, 10000} {
			in := in
			in.Machines, in.Services = machines, services
			p, l, unsat, err := Create(context.Background(), in)
			if err != nil || unsat != nil {
				t.Fatalf("%d machines, %d services: %+v %v", machines, len(services), unsat, err)
			}
			if broken := Valid(p, l); len(broken) > 0 || l.Machines() != machines || len(l) != 2 {
				t.Errorf("%d machines, %d services: %v breaks %+v", machines, len(services), layoutText(l), broken)
			}
		}
	}
}

// The templates of a real catalog are solvable as they are, or the no is explained.
func TestRealCatalog(t *testing.T) {
	t.Parallel()
	root := testkit.Catalog(t)
	in := Input{Catalog: map[string]loom.Service{}, MaxMachines: 10000}
	readAll(t, root, "services", func(s loom.Service) { in.Catalog[s.Name] = s })
	readAll(t, root, "hardwaretypes", func(h loom.HardwareType) { in.HardwareTypes = append(in.HardwareTypes, h) })
	readAll(t, root, "imagetypes", func(i loom.ImageType) { in.ImageTypes = append(in.ImageTypes, i) })
	readAll(t, root, "clustertemplates", func(tpl loom.Template) {
		in := in
		in.Template = tpl
		low, _ := tpl.Constraints.Size.Bounds()
		for _, in.Machines = range []int{low, low + 7, 10000} {
			if _, high := tpl.Constraints.Size.Bounds(); in.Machines > high {
				continue
			}
			p, l, unsat, err := Create(context.Background(), in)
			if err != nil {
				t.Fatal(err)
			}
			if unsat != nil {
				if len(unsat.Reasons) == 0 || len(unsat.Suggestions) == 0 {
					t.Errorf("%s, %d machines: %+v", tpl.Name, in.Machines, unsat)
				}
				continue
			}
			if broken := Valid(p, l); len(broken) > 0 {
				t.Errorf("%s: %v breaks %+v", tpl.Name, layoutText(l), broken)
			}
		}
	})
}

func readAll[T any](t *testing.T, root, kind string, use func(T)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, kind, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s: %v", kind, root, err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v T
		if err := json.Unmarshal(body, &v); err != nil {
			t.Logf("%s is skipped: %v", filepath.Base(file), err)
			continue
		}
		use(v)
	}
}
