package clusterview

import "loom/views/ui"

// Stage is a level of a plan.
type Stage struct {
	Number int
	Tasks  []StageTask
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

// StageTask is a task in the list of stages. Href is empty in a preview.
type StageTask struct {
	Number  string
	Action  string
	Service string
	Host    string
	State   ui.State
	// Planned leaves the state out.
	Planned  bool
	Href     string
	Critical bool
	// Undo marks a task that takes back what others did.
	Undo bool
}

// Text is the task in words: "install nginx on web1-1001".
func (t StageTask) Text() string {
	text := t.Action
	if t.Service != "" {
		text += " " + t.Service
	}
	return text + " on " + t.Host
}
