package clusterview

import (
	"time"

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
	Ref      loom.OperationRef
	Title    string
	State    ui.State
	Segments ui.SegmentsModel
	Facts    []ui.Def
	Message  string
	// Tone is that of the message.
	Tone ui.Tone
	// Waiting is why it does not go on, empty while it does.
	Waiting string
	// Said is read aloud when it changes.
	Said string
	// Failed are the tasks that failed, Running those under way.
	Failed, Running []TaskLink
	Retrying        RetryList
	// Actions are what can be done about it now.
	Actions []ui.ButtonModel
}

// RetryList is the tasks that failed and are tried again, the first of Count.
type RetryList struct {
	Count int
	Tasks []RetryLink
	// All leads to all of them where some are not named.
	All string
}

// RetryLink is one of them with the log of the attempt that failed.
type RetryLink struct {
	Text, Href, When, Log, LogText string
	// Error is the end of what it said on standard error.
	Error string
	// Actions begin the next try, or give it up.
	Actions []ui.ButtonModel
}

// OperationView is one of the ways to look at the plan: with Graph, Stages or
// Table filled in.
type OperationView struct {
	Ref   loom.OperationRef
	Views []ui.Tab
	// Live is where the view is fetched again.
	Live   string
	Graph  *GraphModel
	Stages []Stage
	Table  *TaskTable
	Time   *TimelineView
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
	// Nothing says that nothing has begun yet.
	Nothing bool
	Nodes   []CourseRow
	Pages   ui.PaginationModel
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
	DAG ui.DAGModel
	// Options are links that change what is drawn; Note says what could not be.
	Options []Choices
	Note    string
	SVG     string
	Stages  []Stage
	// Nothing says that the options leave nothing to draw.
	Nothing bool
}

// TaskTable is all tasks with filters.
type TaskTable struct {
	Action                           string
	Statuses, Nodes, Services, Verbs []ui.Option
	Levels                           []ui.Option
	Filtered                         bool
	Rows                             []TaskRow
	Pages                            ui.PaginationModel
	Now                              time.Time
}

// TaskRow is a task in the table.
type TaskRow struct {
	Number, Href, Stage, Node, NodeHref, Service, Action string
	State                                                ui.State
	Attempt                                              string
	Started, Ended                                       time.Time
	// Undo marks a task that takes back what others did.
	Undo bool
}
