package loom

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

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
	// Retries says that it goes on with what was left of the one that it concerns.
	Retries bool
	// Mends says that it goes on with the one that it concerns to something else than
	// that was to lead to: other versions, another config, fewer services.
	Mends bool
	// Undone says that it began to take back what it did.
	Undone bool
	// Aborted says that a failing operation fails because someone aborted it.
	Aborted bool
	// Tasks counts tasks by status, gates excluded.
	Tasks map[TaskStatus]int
	// Again counts those of them that failed and are ready to be tried again.
	Again int
	// Waiting is a sentence why an operation that has not ended does not go on, ""
	// while it does. It is worked out when it is read for people. ForRetry says that it
	// is about a task that failed and is tried again.
	Waiting  string
	ForRetry bool
}

// Refused reports whether it was refused: it failed and never began. Its message says by
// whom, and why.
func (o *Operation) Refused() bool {
	return o.Status == OperationFailed && o.Started.IsZero()
}

// Continues reports whether it goes on with the one that it concerns, a retry, with changes or
// without.
func (o *Operation) Continues() bool { return o.Retries || o.Mends }

// NeverBegan reports whether it ended before it began: refused, or aborted while it
// waited.
func (o *Operation) NeverBegan() bool { return o.Status.Final() && o.Started.IsZero() }

// maxReason is the longest reason for leaving out a task, in characters.
const maxReason = 1000

// CheckReason finds what is wrong with the reason for leaving out a task.
func CheckReason(field, reason string) []FieldError {
	switch {
	case strings.TrimSpace(reason) == "":
		return []FieldError{{field, "Say why the task is left out."}}
	case utf8.RuneCountInString(reason) > maxReason:
		return []FieldError{{field, fmt.Sprintf("A reason has at most %d characters.", maxReason)}}
	case !utf8.ValidString(reason) || strings.ContainsRune(reason, 0):
		return []FieldError{{field, "A text holds the character NUL or is not UTF-8."}}
	}
	return nil
}

// Progress sums up the operation for bars and for the wire.
func (o *Operation) Progress() Progress {
	p := Progress{Action: o.Action, Status: o.Status, Started: o.Started, Ended: o.Ended}
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
	// Again says that it failed and is ready to be tried again.
	Again bool
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
	// Facts are what the attempt told of its node, without what is secret.
	Facts   map[string]any
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
