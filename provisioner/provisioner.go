// Package provisioner carries out one attempt of one task: it chooses the
// provider or automator, lends it a connection and the tenant's files, keeps the
// time limit, hides secrets and says in a loom.TaskResult what came of it.
//
// It knows no database, no River, no HTTP and no configuration. A newcomer's
// usual mistake is to return trouble of the provisioner (disk full, a resource
// that cannot be fetched) as a failed task: that is an interrupted attempt,
// which does not count as a try.
package provisioner

import (
	"errors"
	"strings"
)

// Causes with which the caller cancels the context of a running attempt
// (context.CancelCause); they may be wrapped to say more, such as by whom.
var (
	// ErrAborted: somebody aborted the operation. The attempt ends with status -1.
	ErrAborted = errors.New("aborted")
	// ErrInterrupted: the process stops or lost its lease. The attempt starts
	// again elsewhere and does not count.
	ErrInterrupted = errors.New("interrupted")

	errTimedOut = errors.New("timed out")
)

// firstLine returns the first line of a message: a result has one line for people.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return line
}
