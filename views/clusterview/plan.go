package clusterview

import "loom/views/ui"

// Stage is a level of a plan.
type Stage struct {
	Number int
	Tasks  []StageTask
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
