// Package wire holds the bodies of the REST API: what requests are read into and
// what answers are made of, with every oddity of the predecessor's protocol.
//
// It knows no routes and calls no use case; it turns what those take and give
// into JSON and back. The wire says "job" where Loom says operation. A newcomer's
// usual mistake: putting JSON tags on a domain type instead of a struct here. Only
// catalog entries are their own wire form.
package wire

import (
	"time"

	"loom/app/loom"
)

// Millis is a time as the wire writes it: milliseconds since 1970, 0 for the
// zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// MillisOrNil is Millis with nil for the zero time: absent, or null.
func MillisOrNil(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixMilli()
	return &n
}

// Progress counts the tasks of a cluster's latest operation.
type Progress struct {
	Action       loom.ClusterAction `json:"action"`
	ActionStatus string             `json:"actionstatus" enum:"not_submitted,running,complete,failed,paused"`
	Total        int                `json:"stepstotal"`
	Completed    int                `json:"stepscompleted"`
}

// NewProgress gives the wire form; without an operation it is not submitted.
func NewProgress(p loom.Progress) Progress {
	status := string(loom.OperationNotSubmitted)
	if p.Status != "" {
		status = p.Status.Wire()
	}
	return Progress{Action: p.Action, ActionStatus: status, Total: p.Total, Completed: p.Done}
}

// list makes an empty list of a nil one: the wire has no null.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func object[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
