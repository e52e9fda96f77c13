package clusterview

import (
	"fmt"
	"strconv"

	"loom/app/clusters"
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
	clusters.TaskView
	// Shown is the number of the attempt that is shown.
	Shown int
	Facts []ui.Def
	// Result is what the attempt told of its node.
	Result []ui.Def
	// Bad marks the message as that of a failure; Cause is the line of its log that most likely
	// says why.
	Bad   bool
	Cause string
	// Technical are how and where it runs.
	Technical []ui.Def
	// Before are the tasks it waits for, After those that wait for it.
	Before, After []loom.Task
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
	pairs := []string{"attempt", strconv.Itoa(m.Shown)}
	if m.Side {
		pairs = append(pairs, "side", "1")
	}
	return route.Query(route.TaskPanel(m.Ref), pairs...)
}

// gates are the groups of tasks that it waits for, in words.
func (m *TaskPanel) gates() (words []string) {
	for _, b := range m.Behind {
		if b.Service == "" {
			words = append(words, fmt.Sprintf("%s of %s", b.Action, ui.Count(b.Count, "node", "nodes")))
		} else {
			words = append(words, fmt.Sprintf("%s of %s on all its nodes (%s)", b.Action, b.Service, ui.Count(b.Count, "task", "tasks")))
		}
	}
	return words
}

// Topics are what tells of a change: the operation, and the log of a task that tells
// there what it waits for.
func (m *TaskPanel) Topics() []string {
	topics := []string{route.TopicOperation(m.Ref.Operation)}
	if m.Speaks {
		topics = append(topics, route.TopicLog(m.Ref, m.Shown))
	}
	return topics
}
