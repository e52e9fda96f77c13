package solver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"loom/app/loom"
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

// The targets of solver.md 10 are 50 ms; the limit here leaves room for a busy
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

// The catalog of the predecessor is not part of this repository; where it lies
// beside it, its templates must be solvable as they are.
func TestRealCatalog(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "shared", "data", "catalog")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("no catalog of real templates: %v", err)
	}
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
			start := time.Now()
			p, l, unsat, err := Create(context.Background(), in)
			if err != nil {
				t.Fatal(err)
			}
			if unsat != nil {
				t.Logf("%s, %d machines: %s %+v %+v", tpl.Name, in.Machines, unsat.Headline, unsat.Reasons, unsat.Suggestions)
				continue
			}
			if broken := Valid(p, l); len(broken) > 0 {
				t.Errorf("%s: %v breaks %+v", tpl.Name, layoutText(l), broken)
			}
			t.Logf("%s, %d machines: %v in %v", tpl.Name, in.Machines, layoutText(l), time.Since(start).Round(time.Microsecond))
		}
	})
}

func readAll[T any](t *testing.T, root, kind string, use func(T)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, kind, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skipf("no %s in %s: %v", kind, root, err)
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
