// Package draw lays a plan out as a picture: boxes in rows, a stage each, curves
// between them. It gives numbers and paths, no markup; pages render them and look the
// state of each task up by its number.
//
// It is pure, as the planner is. Positions depend on the plan and the options
// alone, never on the state of tasks, so a picture can be kept per plan while
// only its classes change. What a newcomer gets wrong: a gate is not always
// drawn. One with a single task on either side, or two on both, costs no more
// as plain curves and is left out; any other is a small joint in the gap below
// its row, so a picture has N + M curves there and not N × M. Nor is an edge
// that follows from others drawn: what comes before and behind a box stays the
// same without it. The end gate is never drawn.
//
// With the same means Ties draws what services have to do with each other; there
// every tie is a line of its own.
package draw

import (
	"fmt"

	"loom/app/loom"
)

// Sizes of the picture, in pixels.
const (
	BoxWidth  = 176
	BoxHeight = 52
	// StageGap is between the rows of a plan, RowGap between the boxes of a row.
	StageGap = 36
	RowGap   = 16
	Margin   = 16
	// JointRadius is the radius of a joint.
	JointRadius = 4
)

// GroupAbove is the number of tasks above which a picture is grouped unless the
// options say otherwise.
const GroupAbove = 150

// Grouping reports whether tasks share boxes.
type Grouping int

// The groupings.
const (
	// Auto groups plans of more than GroupAbove tasks.
	Auto Grouping = iota
	// Always draws one box per level and action.
	Always
	// Never draws one box per task.
	Never
)

// MostBoxes is how many boxes a picture has at most: one that would have more is
// grouped by level and action, whatever the options say.
const MostBoxes = 2000

// By says which tasks of a level share the box of a group.
type By int

// The ways to group.
const (
	// ByAction puts tasks with the same action together.
	ByAction By = iota
	// ByService puts tasks with the same action of the same service together.
	ByService
	// ByNode puts tasks on the same node together.
	ByNode
)

// Group names the tasks of one level that share a box. Service is set where they are
// grouped by service; Node alone where they are grouped by node.
type Group struct {
	Level   int
	Action  loom.TaskAction
	Service string
	Node    loom.NodeID
}

// GroupOf is the group of a task.
func GroupOf(t *loom.PlanTask, by By) Group {
	switch by {
	case ByService:
		return Group{Level: t.Level, Action: t.Action, Service: t.Service}
	case ByNode:
		return Group{Level: t.Level, Node: t.Node}
	}
	return Group{Level: t.Level, Action: t.Action}
}

// ID is a name for the group that is unique in a picture: "g4-install",
// "g4-install-nginx", "g4--n17".
func (g Group) ID() string {
	id := fmt.Sprintf("g%d-%s", g.Level, g.Action)
	switch {
	case g.Node != "":
		id += "-" + string(g.Node)
	case g.Service != "":
		id += "-" + g.Service
	}
	return id
}

// Options choose what is drawn.
type Options struct {
	Grouping Grouping
	// By is how tasks are grouped where they are.
	By By
	// Only, when set, says which tasks are drawn, by number; others and their
	// edges are left out.
	Only func(number int) bool
}

// Drawing is a picture of a plan. The zero Drawing is that of a plan without tasks.
type Drawing struct {
	Width, Height int
	// Grouped says that some box may stand for several tasks; Capped that there would
	// have been more than MostBoxes otherwise.
	Grouped, Capped bool
	// Boxes come by row, then from left to right: the order for the keyboard.
	Boxes  []Box
	Joints []Joint
	Edges  []Edge
}

// Box is a task or a group of tasks. X and Y are its upper left corner.
type Box struct {
	// ID is unique in the picture: "t12" for a task, that of the group for a group.
	ID    string
	X, Y  int
	Level int
	// column is the level by which it is placed; see straighten.
	column  int
	Action  loom.TaskAction
	Service string
	// Node is that of a single task.
	Node loom.NodeID
	// Tasks are the numbers of the tasks it stands for, ascending.
	Tasks []int
	// Group says that it stands for a group, be it of a single task; Of is the group.
	Group bool
	Of    Group
	// Critical says that a task of the critical path is among them.
	Critical bool
}

// Joint is a gate, drawn as a dot. X and Y are its centre.
type Joint struct {
	// ID is unique in the picture: "j3".
	ID      string
	X, Y    int
	Service string
	Action  loom.TaskAction
}

// Edge is a curve between two boxes, or a box and a joint.
type Edge struct {
	// From and To are ids of boxes or joints.
	From, To string
	// Path is the content of an SVG path's d attribute.
	Path string
	// Critical says that it is a part of the critical path.
	Critical bool
}

// Draw lays a plan out.
func Draw(plan loom.Plan, o Options) Drawing {
	g := build(plan, o)
	if len(g.boxes) == 0 {
		return Drawing{}
	}
	g.layer()
	g.reduceCrossings()
	g.place()
	return g.drawing()
}
