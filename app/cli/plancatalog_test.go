package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/planner"
	"loom/solver"
)

// TestPlanRealTemplate plans a large template of a catalog as people load it, in
// the layouts that the solver gives. The catalog is no part of Loom.
func TestPlanRealTemplate(t *testing.T) {
	t.Parallel()
	folder := testkit.Catalog(t)
	in := realInput(t, folder, "hadoop-distributed")
	for _, machines := range []int{3, 50, 500, 10_000} {
		in.Machines = machines
		_, layout, unsat, err := solver.Create(t.Context(), in)
		if err != nil || unsat != nil {
			t.Fatalf("%d machines: %+v, %v", machines, unsat, err)
		}
		var nodes []loom.Node
		for _, g := range layout {
			for range g.Count {
				nodes = append(nodes, loom.Node{ID: loom.NodeID(fmt.Sprint(len(nodes))), Number: loom.FirstNodeNumber + len(nodes), Services: g.Services})
			}
		}
		plan, err := planner.Make(loom.ClusterCreate, nodes, in.Catalog, planner.Scope{})
		if err != nil {
			t.Fatal(err)
		}
		want := 3 * machines
		for _, n := range nodes {
			for _, name := range n.Services {
				s := in.Catalog[name]
				for _, a := range []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart} {
					if s.Defines(a) {
						want++
					}
				}
			}
		}
		if len(plan.Tasks) != want || len(plan.Edges) > 5*want {
			t.Errorf("%d machines: %d tasks and %d edges, want %d tasks and a few edges for each", machines, len(plan.Tasks), len(plan.Edges), want)
		}
		t.Logf("%d machines: %d tasks, %d edges, %d gates, %d levels", machines, len(plan.Tasks), len(plan.Edges), len(plan.Gates), plan.Levels())
	}
}

// realInput reads a template of a catalog folder with all there is beside it.
func realInput(t *testing.T, folder, template string) solver.Input {
	t.Helper()
	in := solver.Input{Catalog: map[string]loom.Service{}}
	read := func(kind loom.EntityKind, file string) loom.Entry {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		entry, err := catalog.Decode(kind, body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		return entry
	}
	all := func(kind loom.EntityKind, folderName string, take func(loom.Entry)) {
		files, err := filepath.Glob(filepath.Join(folder, folderName, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", folderName, err)
		}
		for _, file := range files {
			take(read(kind, file))
		}
	}
	in.Template = *read(loom.KindTemplate, filepath.Join(folder, "clustertemplates", template+".json")).(*loom.Template)
	in.Provider = in.Template.Defaults.Provider
	all(loom.KindService, "services", func(e loom.Entry) { in.Catalog[e.Meta().Name] = *e.(*loom.Service) })
	all(loom.KindHardwareType, "hardwaretypes", func(e loom.Entry) { in.HardwareTypes = append(in.HardwareTypes, *e.(*loom.HardwareType)) })
	all(loom.KindImageType, "imagetypes", func(e loom.Entry) { in.ImageTypes = append(in.ImageTypes, *e.(*loom.ImageType)) })
	return in
}
