package clusterview

import (
	"loom/app/loom"
	"loom/views/ui"
)

// Stage is a level of a plan.
type Stage struct {
	Number int
	// Tasks have no status while they are only planned.
	Tasks []loom.Task
	// Groups stand for the tasks of a plan with too many to list.
	Groups []StageGroup
	// Count is how many tasks there are.
	Count int
}

// StageGroup is so many tasks of a stage that do the same.
type StageGroup struct {
	Text, Summary, Href string
	State               ui.State
	Critical            bool
}
