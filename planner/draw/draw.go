// Package draw lays a plan out as a picture: boxes in columns, curves between
// them. It gives numbers and paths, no markup; pages render them and look the
// state of each task up by its number.
//
// It is pure, as the planner is. Positions depend on the plan and the options
// alone, never on the state of tasks, so a picture can be kept per plan while
// only its classes change. What a newcomer gets wrong: a gate is not always
// drawn. One with a single task on either side, or two on both, costs no more
// as plain curves and is left out; any other is a small joint in the gap behind
// its column, so a picture has N + M curves there and not N × M. Nor is an edge
// that follows from others drawn: what comes before and behind a box stays the
// same without it. The end gate is never drawn.
package draw

import (
	"loom/app/loom"
)

// Sizes of the picture, in pixels.
const (
	BoxWidth  = 176
	BoxHeight = 52
	ColumnGap = 56
	RowGap    = 16
	Margin    = 16
	// JointRadius is the radius of a joint.
	JointRadius = 4
)

// GroupAbove is the number of tasks above which a picture is grouped unless the
// options say otherwise.
const GroupAbove = 150

// Grouping says whether tasks share boxes.
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

// Group names the tasks of one level with one action.
type Group struct {
	Level  int
	Action loom.TaskAction
}

// Options choose what is drawn.
type Options struct {
	Grouping Grouping
	// Expanded groups are drawn task by task in a grouped picture.
	Expanded map[Group]bool
	// Only, when set, says which tasks are drawn, by number; others and their
	// edges are left out.
	Only func(number int) bool
}

// Drawing is a picture of a plan. The zero Drawing is that of a plan without tasks.
type Drawing struct {
	Width, Height int
	// Grouped says that some box may stand for several tasks.
	Grouped bool
	// Boxes come by column, then row: the order for the keyboard.
	Boxes  []Box
	Joints []Joint
	Edges  []Edge
}

// Box is a task or a group of tasks. X and Y are its upper left corner.
type Box struct {
	// ID is unique in the picture: "t12" for a task, "g4-install" for a group.
	ID      string
	X, Y    int
	Level   int
	Action  loom.TaskAction
	Service string
	// Node and NodeNumber are those of a single task.
	Node       loom.NodeID
	NodeNumber int
	// Tasks are the numbers of the tasks it stands for, ascending.
	Tasks []int
	// Group says that it stands for a group, be it of a single task.
	Group bool
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
	// Arrow says that it ends at a box.
	Arrow bool
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
