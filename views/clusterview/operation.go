package clusterview

import (
	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/ui"
)

// OperationModel is the page of an operation.
type OperationModel struct {
	Head OperationHead
	View OperationView
}

// OperationHead is the top of that page, which lives.
type OperationHead struct {
	Ref   loom.OperationRef
	Title string
	State ui.State
	// Segments is how far it is, nil once it is complete.
	Segments *ui.SegmentsModel
	Facts    []ui.Def
	Message  string
	// Tone is that of the message.
	Tone ui.Tone
	// Waiting is why it does not go on, empty while it does.
	Waiting string
	// Said is read aloud when it changes.
	Said string
	// Failed are the tasks that failed, Running those under way.
	Failed, Running TaskList
	Retrying        RetryList
	// Actions are what can be done about it now, the first ones; Menu has the others.
	Actions []ui.ButtonModel
	Menu    []ui.MenuItem
}

// TaskList is the first tasks of an operation in a status, of All that are.
type TaskList struct {
	Status loom.TaskStatus
	Tasks  []loom.Task
	All    int
	// Doing is what the task with the number Speaks does or waits for just now, where it says so.
	Speaks int
	Doing  string
}

// live are the attributes of an element with running tasks: what one of them does changes more often than is signalled.
func (m TaskList) live(url string, topics ...string) templ.Attributes {
	attrs := ui.Live(url, topics...)
	if m.Doing != "" {
		attrs["hx-trigger"] = "loom:live, every 10s"
	}
	return attrs
}

// RetryList is the tasks that failed and are tried again, the first of Count.
type RetryList struct {
	Operation loom.OperationRef
	Count     int
	Tries     []clusters.NextTry
}

// OperationView is one of the ways to look at an operation: with Graph, Time, Table or Log
// filled in. All of them show what passes the filters.
type OperationView struct {
	Ref   loom.OperationRef
	Views []ui.Tab
	// Live is where the view is fetched again.
	Live    string
	Filters *TaskFilters
	Graph   *GraphModel
	Table   *TaskTable
	Time    *TimelineView
	// Log is read as it comes, and not fetched again as a whole.
	Log *ui.LogModel
}

// Choices is a row of links of which one holds, with what they choose.
type Choices struct {
	Label   string
	Options []ui.Tab
}

// TimelineView is what ran when: by node or by step, with the same as a table.
type TimelineView struct {
	Options []Choices
	Chart   ui.TimelineModel
	// Nothing says that nothing has begun yet, or passes where it is Filtered.
	Nothing, Filtered bool
	Nodes             []CourseRow
	Pages             ui.PaginationModel
}

// CourseRow sums up what ran on a node, or for a step.
type CourseRow struct {
	Name, Href     string
	Tasks, TasksIn string
	Begin, End     string
	Busy, Idle     string
	Failed         int
}

// GraphModel is the plan as a picture, with the same as a list.
type GraphModel struct {
	// Pictures are none where nothing passes the filters.
	Pictures []ui.DAGModel
	// Options are links that change what is drawn; Note says what could not be.
	Options []Choices
	Note    string
	SVG     string
	Stages  []Stage
}

// TaskFilters choose which tasks the views show.
type TaskFilters struct {
	// Action is the page of the view, Keep what else its address has, Clear the page without
	// filters.
	Action, Clear                            string
	Keep                                     []ui.Option
	Statuses, Nodes, Services, Verbs, Levels []ui.Option
	Filtered                                 bool
}

// TaskTable is a page of the tasks.
type TaskTable struct {
	// Clear is the page without filters.
	Clear string
	Rows  []clusters.TaskView
	Pages ui.PaginationModel
}
