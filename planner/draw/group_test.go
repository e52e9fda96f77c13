package draw

import (
	"testing"

	"loom/app/loom"
)

func TestGroupsByServiceAndNode(t *testing.T) {
	t.Parallel()
	plan := web(t, 40)
	for by, same := range map[By]func(a, b loom.PlanTask) bool{
		ByAction:  func(a, b loom.PlanTask) bool { return a.Action == b.Action },
		ByService: func(a, b loom.PlanTask) bool { return a.Action == b.Action && a.Service == b.Service },
		ByNode:    func(a, b loom.PlanTask) bool { return a.Node == b.Node },
	} {
		d := Draw(plan, Options{Grouping: Always, By: by})
		check(t, plan, d)
		ids, stands := map[string]bool{}, 0
		for _, b := range d.Boxes {
			if ids[b.ID] {
				t.Errorf("by %d: two boxes are called %s", by, b.ID)
			}
			ids[b.ID] = true
			stands += len(b.Tasks)
			first := plan.Tasks[b.Tasks[0]-1]
			for _, n := range b.Tasks {
				if task := plan.Tasks[n-1]; task.Level != b.Level || !same(first, task) {
					t.Errorf("by %d: box %s holds task %d", by, b.ID, n)
				}
			}
			if by == ByNode && b.Node == "" || by != ByNode && b.Action == "" {
				t.Errorf("by %d: box %s does not say what it stands for", by, b.ID)
			}
		}
		if stands != len(plan.Tasks) {
			t.Errorf("by %d: boxes stand for %d tasks of %d", by, stands, len(plan.Tasks))
		}
	}
}

func TestPicturesHaveAnEnd(t *testing.T) {
	t.Parallel()
	plan := web(t, 700)
	if len(plan.Tasks) <= MostBoxes {
		t.Fatalf("%d tasks are too few for this test", len(plan.Tasks))
	}
	d := Draw(plan, Options{Grouping: Never})
	if !d.Capped || !d.Grouped || len(d.Boxes) > MostBoxes {
		t.Errorf("%d boxes, grouped %v, capped %v", len(d.Boxes), d.Grouped, d.Capped)
	}
}
