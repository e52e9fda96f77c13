package wire

import (
	"slices"
	"strings"

	"loom/app/loom"
)

// Operation is a change to a cluster, with Loom's own
// statuses, not those of the old protocol.
type Operation struct {
	ID          string                  `json:"id"`
	Cluster     string                  `json:"clusterId"`
	Number      int                     `json:"number"`
	Action      loom.ClusterAction      `json:"action"`
	Status      loom.OperationStatus    `json:"status"`
	Message     string                  `json:"message,omitempty"`
	RequestedBy loom.UserID             `json:"requestedBy"`
	Created     int64                   `json:"createTime" description:"Milliseconds since 1970."`
	Started     *int64                  `json:"startTime,omitempty" description:"Milliseconds since 1970."`
	Ended       *int64                  `json:"endTime,omitempty" description:"Milliseconds since 1970."`
	OnFailure   string                  `json:"onFailure" enum:"keep,undo"`
	Progress    Progress                `json:"progress"`
	Tasks       map[loom.TaskStatus]int `json:"tasks"`
	// Waiting is a sentence why it does not go on.
	Waiting string `json:"waiting,omitempty" description:"Why the operation does not go on, while it does not."`
	// Refused says that it failed and never began: the message says by whom, and why.
	Refused bool `json:"refused,omitempty" description:"It failed and never began; the message says who refused it, and why. POST .../resubmit asks again."`
}

// NewOperation gives the wire form.
func NewOperation(o loom.Operation) Operation {
	w := Operation{
		ID: o.Ref.String(), Cluster: o.Ref.Cluster.String(), Number: o.Ref.Number, Action: o.Action, Status: o.Status, Message: o.Message,
		RequestedBy: o.RequestedBy, Created: Millis(o.Created), Started: MillisOrNil(o.Started), Ended: MillisOrNil(o.Ended),
		OnFailure: o.OnFailure, Progress: NewProgress(o.Progress()), Tasks: map[loom.TaskStatus]int{}, Waiting: o.Waiting, Refused: o.Refused(),
	}
	if w.OnFailure == "" {
		w.OnFailure = loom.OnFailureKeep
	}
	for status, n := range o.Tasks {
		w.Tasks[status] = n
	}
	return w
}

// Task is one step of an operation. Behind names the gates that it waits for. In
// a preview there is no status, and no id where the operation's number is open.
type Task struct {
	ID        string          `json:"id,omitempty"`
	Number    int             `json:"number"`
	Action    loom.TaskAction `json:"action"`
	Service   string          `json:"service"`
	Node      loom.NodeID     `json:"nodeId"`
	Stage     int             `json:"stage"`
	Status    loom.TaskStatus `json:"status,omitempty"`
	DependsOn []int           `json:"dependsOn"`
	Behind    []Behind        `json:"behind"`
	Critical  bool            `json:"critical"`
	Undo      bool            `json:"undo,omitempty" description:"The task takes back what others of the operation did."`
	Skipped   *Skipped        `json:"skipped,omitempty"`
	Attempts  []Attempt       `json:"attempts,omitempty"`
}

// Behind is a gate: "all 3 START of zookeeper-server".
type Behind struct {
	Service string          `json:"service"`
	Action  loom.TaskAction `json:"action"`
	Count   int             `json:"count"`
}

// Skipped says who left a task out, and why.
type Skipped struct {
	By     loom.UserID `json:"by"`
	Reason string      `json:"reason"`
}

// Attempt is one try at a task.
type Attempt struct {
	Number      int                `json:"number"`
	Status      loom.AttemptStatus `json:"status"`
	Code        int                `json:"code"`
	Message     string             `json:"message,omitempty"`
	Provisioner loom.ProcessID     `json:"provisioner"`
	Started     int64              `json:"startTime" description:"Milliseconds since 1970."`
	Ended       *int64             `json:"endTime,omitempty" description:"Milliseconds since 1970."`
}

// NewTask gives the wire form of a task that waits for others as said.
func NewTask(t loom.Task, dependsOn []int, behind []Behind) Task {
	w := Task{
		ID: t.Ref.String(), Number: t.Ref.Number, Action: t.Action, Service: t.Service, Node: t.Node, Stage: t.Level, Status: t.Status,
		DependsOn: list(dependsOn), Behind: list(behind), Critical: t.Critical, Undo: t.Undo,
	}
	if t.Status == loom.TaskSkipped {
		w.Skipped = &Skipped{By: t.SkippedBy, Reason: t.SkipReason}
	}
	return w
}

// NewPlannedTask gives the wire form of a task of a preview; it has no status yet.
func NewPlannedTask(ref loom.OperationRef, t loom.PlanTask, dependsOn []int, behind []Behind) Task {
	return Task{
		ID: loom.TaskRef{Operation: ref, Number: t.Number}.String(), Number: t.Number, Action: t.Action, Service: t.Service, Node: t.Node,
		Stage: t.Level, DependsOn: list(dependsOn), Behind: list(behind), Critical: t.Critical,
	}
}

// NewAttempts gives the wire form of the tries of a task.
func NewAttempts(attempts []loom.Attempt) []Attempt {
	out := []Attempt{}
	for _, a := range attempts {
		out = append(out, Attempt{
			Number: a.Number, Status: a.Status, Code: a.Code, Message: a.Message, Provisioner: a.Process,
			Started: Millis(a.Started), Ended: MillisOrNil(a.Ended),
		})
	}
	return out
}

// Line is a line of a task's log. Attempt is set where lines of several tries
// follow each other, Task where those of several tasks do.
type Line struct {
	Seq     int    `json:"seq"`
	Time    int64  `json:"time" description:"Milliseconds since 1970."`
	Stream  string `json:"stream" enum:"stdout,stderr,loom"`
	Level   string `json:"level" enum:"info,warn,error"`
	Text    string `json:"text"`
	Task    string `json:"task,omitempty" description:"Its id, where lines of several tasks follow each other."`
	Attempt int    `json:"attempt,omitempty"`
}

// Gap stands in a followed log for lines that were passed over because the reader
// was too slow: Skipped lines, of which After is the cursor to fetch them from.
type Gap struct {
	Skipped int    `json:"skipped"`
	After   string `json:"after"`
}

// NewLine gives the wire form of a line.
func NewLine(l loom.LogLine) Line {
	return Line{Seq: l.Seq, Time: Millis(l.Time), Stream: l.Stream, Level: l.Level, Text: l.Text}
}

// NewLineOfTask is NewLine with the task and the try that it is of.
func NewLineOfTask(l loom.LogLine) Line {
	w := NewLine(l)
	w.Task, w.Attempt = l.Task.String(), l.Attempt
	return w
}

// Plan is the plan of an operation as old clients read it: its
// levels as stages, names of actions in upper case, gates left out.
type Plan struct {
	ID           string       `json:"id"`
	Cluster      string       `json:"clusterId"`
	Action       string       `json:"action" description:"In upper case."`
	CurrentStage int          `json:"currentStage" description:"From 0."`
	Stages       [][]PlanTask `json:"stages"`
}

// PlanTask is a task of a Plan.
type PlanTask struct {
	ID      string      `json:"id"`
	Name    string      `json:"taskName"`
	Node    loom.NodeID `json:"nodeId"`
	Service string      `json:"service"`
}

// NewPlan gives the wire form of a stored plan. CurrentStage is the lowest stage,
// from 0, with a task that is not done; the last one when all are.
func NewPlan(ref loom.OperationRef, plan loom.Plan, tasks map[int]loom.Task) Plan {
	w := Plan{
		ID: ref.String(), Cluster: ref.Cluster.String(), Action: strings.ToUpper(string(plan.Action)), Stages: [][]PlanTask{},
	}
	var levels []int
	for _, t := range plan.Tasks {
		levels = append(levels, t.Level)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	w.Stages = make([][]PlanTask, len(levels))
	w.CurrentStage = max(0, len(levels)-1)
	for _, t := range plan.Tasks {
		stage, _ := slices.BinarySearch(levels, t.Level)
		w.Stages[stage] = append(w.Stages[stage], PlanTask{
			ID: loom.TaskRef{Operation: ref, Number: t.Number}.String(), Name: strings.ToUpper(string(t.Action)), Node: t.Node, Service: t.Service,
		})
		if status := tasks[t.Number].Status; status != loom.TaskComplete && status != loom.TaskSkipped {
			w.CurrentStage = min(w.CurrentStage, stage)
		}
	}
	return w
}
