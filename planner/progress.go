package planner

import (
	"loom/app/loom"
)

// Progress is what an operation was to do and how far it came: its tasks without those
// that take back. Tasks that were taken back count as not done, also those of earlier
// operations with which it goes on; what else those did has no task here.
type Progress struct {
	Plan loom.Plan
	// begun and done are by the number of the task.
	begun, done map[int]bool
}

// Begun reports whether the task of a number was tried, here or in the operation that
// this one goes on with, or left out.
func (c *Progress) Begun(number int) bool { return c.begun[number] }

// Done reports whether the task of a number is complete, or was left out.
func (c *Progress) Done(number int) bool { return c.done[number] }

// ProgressOf returns the course of an operation that has ended, or of which nothing runs
// any longer: plans are its own as it is stored, and behind it those of the operations that
// it retries, the newest first. The course of no plan is empty.
func ProgressOf(plans []loom.StoredPlan) *Progress {
	course := &Progress{begun: map[int]bool{}, done: map[int]bool{}}
	if len(plans) == 0 {
		return course
	}
	own, back := plans[0], undoneActions{}
	for i := range own.Tasks {
		if t := &own.Tasks[i]; t.Undo && isDone(own.States[t.Number].Status) {
			back.note(t)
		}
	}
	course.Plan = withoutUndo(own.Plan)
	for i := range course.Plan.Tasks {
		t := &course.Plan.Tasks[i]
		now := own.States[t.Number]
		if t.Number = i + 1; back.includes(t) {
			continue
		}
		course.done[t.Number] = isDone(now.Status)
		course.begun[t.Number] = isDone(now.Status) || now.Attempt > 0
	}
	for _, earlier := range plans[1:] {
		course.addEarlier(earlier, back)
	}
	return course
}

// addEarlier notes what an earlier operation began and the course has left to do, and
// takes in what of it was taken back.
func (c *Progress) addEarlier(earlier loom.StoredPlan, back undoneActions) {
	type step struct {
		target
		action loom.TaskAction
	}
	tried := map[step]bool{}
	var lost []loom.PlanTask
	for _, t := range earlier.Tasks {
		switch now := earlier.States[t.Number]; {
		case isDone(now.Status) && back.includes(&t):
			lost = append(lost, t)
		case !isDone(now.Status) && now.Attempt > 0:
			tried[step{target{t.Node, t.Service}, t.Action}] = true
		}
	}
	for i := range c.Plan.Tasks {
		if t := &c.Plan.Tasks[i]; !back.includes(t) && tried[step{target{t.Node, t.Service}, t.Action}] {
			c.begun[t.Number] = true
		}
	}
	n := len(c.Plan.Tasks)
	for i := range c.Plan.Edges {
		e := &c.Plan.Edges[i]
		if e.From > n {
			e.From += len(lost)
		}
		if e.To > n {
			e.To += len(lost)
		}
	}
	for _, t := range lost {
		t.Number = len(c.Plan.Tasks) + 1
		c.Plan.Tasks = append(c.Plan.Tasks, t)
	}
	for i := range lost {
		c.Plan.Edges = append(c.Plan.Edges, loom.Edge{From: n + i + 1, To: c.Plan.EndVertex()})
	}
	loom.SortEdges(c.Plan.Edges)
}

func isDone(s loom.TaskStatus) bool { return s == loom.TaskComplete || s == loom.TaskSkipped }

// withoutUndo is a stored plan without what takes back, and without the gates of that.
func withoutUndo(plan loom.Plan) loom.Plan {
	keep := make([]bool, plan.EndVertex()+1)
	for v := range keep {
		keep[v] = true
	}
	for i := range plan.Tasks {
		keep[i+1] = !plan.Tasks[i].Undo
	}
	for _, e := range plan.Edges {
		if e.To > len(plan.Tasks) && e.From <= len(plan.Tasks) && plan.Tasks[e.From-1].Undo {
			keep[e.To] = false
		}
	}
	out := loom.Plan{Action: plan.Action}
	vertex := make([]int, len(keep))
	for i, t := range plan.Tasks {
		if keep[i+1] {
			out.Tasks = append(out.Tasks, t)
			vertex[i+1] = len(out.Tasks)
		}
	}
	for i, g := range plan.Gates {
		if v := len(plan.Tasks) + i + 1; keep[v] {
			out.Gates = append(out.Gates, g)
			vertex[v] = out.EndVertex()
		}
	}
	for _, e := range plan.Edges {
		if keep[e.From] && keep[e.To] {
			out.Edges = append(out.Edges, loom.Edge{From: vertex[e.From], To: vertex[e.To]})
		}
	}
	loom.SortEdges(out.Edges)
	return out
}

// target is a service on a node, or with the service "" the node itself.
type target struct {
	node    loom.NodeID
	service string
}

// undoneActions are the actions that were taken back, by where.
type undoneActions map[target]map[loom.TaskAction]bool

// opposites are the actions that another one takes back on the same service or node.
var opposites = map[loom.TaskAction][]loom.TaskAction{
	loom.ActionStop:      {loom.ActionStart},
	loom.ActionStart:     {loom.ActionStop, loom.ActionDrain},
	loom.ActionRemove:    {loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart},
	loom.ActionInstall:   {loom.ActionRemove, loom.ActionInstall},
	loom.ActionConfigure: {loom.ActionConfigure},
	loom.ActionCreate:    {loom.ActionDelete},
	loom.ActionDelete:    {loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap},
}

// note takes in a task that took something back. With the machine goes all that is
// on it.
func (b undoneActions) note(t *loom.PlanTask) {
	at := target{t.Node, t.Service}
	if b[at] == nil {
		b[at] = map[loom.TaskAction]bool{}
	}
	b[at][t.Action] = true
}

func (b undoneActions) includes(t *loom.PlanTask) bool {
	if t.Service != "" && b[target{t.Node, ""}][loom.ActionDelete] {
		return true
	}
	for action := range b[target{t.Node, t.Service}] {
		for _, undone := range opposites[action] {
			if undone == t.Action {
				return true
			}
		}
	}
	return false
}
