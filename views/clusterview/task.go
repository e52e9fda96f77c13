package clusterview

import (
	"strconv"

	"loom/app/loom"
	"loom/views/route"
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
	// Result is what the attempt told of its node.
	Result  []ui.Def
	Message string
	// Bad marks the message as that of a failure; Cause is the line of its log that most likely
	// says why.
	Bad   bool
	Cause string
	// Technical are how and where it runs.
	Technical []ui.Def
	// Before are the tasks it waits for, Behind groups of them in words, After
	// those that wait for it.
	Before, After []loom.Task
	Behind        []string
	// Attempts counts the tries when the page was made; a page that shows fewer
	// offers to reload.
	Newer     string
	NewerHref string
	// Actions are what can be done about it now.
	Actions []ui.ButtonModel
	// Doing is what it does or waits for just now, where that is known.
	Doing string
	// Speaks says that it tells that in its log, line by line.
	Speaks bool
	// Side says that it stands beside a plan instead of on a page of its own.
	Side bool
}

// live is where the facts are fetched again.
func (m *TaskPanel) live() string {
	pairs := []string{"attempt", strconv.Itoa(m.Attempt)}
	if m.Side {
		pairs = append(pairs, "side", "1")
	}
	return route.Query(route.TaskPanel(m.Ref), pairs...)
}

// Topics are what tells of a change: the operation, and the log of a task that tells
// there what it waits for.
func (m *TaskPanel) Topics() []string {
	topics := []string{route.TopicOperation(m.Ref.Operation)}
	if m.Speaks {
		topics = append(topics, route.TopicLog(m.Ref, m.Attempt))
	}
	return topics
}
