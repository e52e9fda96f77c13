package clusterview

import (
	"loom/app/loom"
	"loom/views/ui"
)

// TaskModel is the page of a task.
type TaskModel struct {
	Panel TaskPanel
	Tabs  []ui.Tab
	Log   ui.LogModel
	// Waiting says that there is no log yet.
	Waiting bool
	Input   TaskInput
}

// TaskInput is what the plugin is given, secrets masked.
type TaskInput struct {
	Fields []ui.Def
	// Config leads to the config as the node reads it.
	Config string
}

// TaskPanel is the facts of a task, which live.
type TaskPanel struct {
	Ref loom.TaskRef
	// Attempt is the one that is shown.
	Attempt int
	Title   string
	State   ui.State
	Facts   []ui.Def
	Message string
	// Bad marks the message as that of a failure.
	Bad bool
	// Before are the tasks it waits for, Behind groups of them in words, After
	// those that wait for it.
	Before, After []TaskDep
	Behind        []string
	// Attempts counts the tries when the page was made; a page that shows fewer
	// offers to reload.
	Newer     string
	NewerHref string
	// Actions are what can be done about it now.
	Actions []ui.ButtonModel
}

// TaskDep is a neighbour in the plan.
type TaskDep struct {
	Text, Href string
	State      ui.State
}
