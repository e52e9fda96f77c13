package loom

import "time"

// Operation is one change to a cluster in progress, and its outcome.
type Operation struct {
	Row         OperationID
	Ref         OperationRef
	Tenant      TenantID
	Action      ClusterAction
	Status      OperationStatus
	Message     string
	RequestedBy UserID
	Created     time.Time
	Started     time.Time
	Ended       time.Time
	OnFailure   string
	// Concerns is the number of the operation that this one retries or rolls back,
	// 0 for others.
	Concerns int
	// Aborted says that a failing operation fails because someone aborted it.
	Aborted bool
	// Tasks counts tasks by status, gates excluded.
	Tasks map[TaskStatus]int
}

// Progress sums up the operation for bars and for the wire.
func (o *Operation) Progress() Progress {
	p := Progress{Action: o.Action, Status: o.Status}
	for status, n := range o.Tasks {
		p.Total += n
		if status == TaskComplete || status == TaskSkipped {
			p.Done += n
		}
	}
	return p
}

// Task is one action on one node (and perhaps one service) within an operation.
type Task struct {
	Row          TaskID
	Ref          TaskRef
	Node         NodeID
	NodeNumber   int
	NodeHostname string
	Service      string
	Action       TaskAction
	Level        int
	Critical     bool
	// Undo says that it takes back what other tasks of the operation did.
	Undo   bool
	Status TaskStatus
	// Attempt is River's number of the newest attempt, 0 before the first.
	Attempt int
	Started time.Time
	Ended   time.Time
	// Message of the newest attempt.
	Message string
	// SkippedBy and SkipReason are set for skipped tasks.
	SkippedBy  UserID
	SkipReason string
}

// Attempt is one try at a task.
type Attempt struct {
	Number int
	Status AttemptStatus
	// Code is the status code of the result: 0 success, -1 reserved.
	Code    int
	Message string
	Process ProcessID
	Started time.Time
	Ended   time.Time
}

// LogLine is a line of output of an attempt. Seq counts from 1 per attempt.
type LogLine struct {
	Task    TaskRef
	Attempt int
	Seq     int
	Time    time.Time
	// Stream is "stdout", "stderr" or "loom" for what Loom itself says.
	Stream string
	// Level is "info", "warn" or "error".
	Level string
	Text  string
}
