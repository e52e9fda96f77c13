package execution

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// restGoesOn ends the message of an operation that failed and finishes its batch.
const restGoesOn = ". What does not wait for it is done first."

// failedTask begins to say that a task failed; how is to follow.
func failedTask(number int, action loom.TaskAction, service, hostname string, node int) string {
	what := string(action)
	if service != "" {
		what += " of " + service
	}
	return fmt.Sprintf("Task %d, %s on %s (node %d), ", number, what, hostname, node)
}

// finishesBatch reports whether what does not wait for a task that was given up is
// still carried out (changes.md 4).
func finishesBatch(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask) (bool, error) {
	if h.Operation.Status == loom.OperationRollingBack {
		return false, nil
	}
	if planner.FinishesBatch(h.Operation.Action, false) || !planner.FinishesBatch(h.Operation.Action, true) {
		return planner.FinishesBatch(h.Operation.Action, false), nil
	}
	return store.TellsOnly(ctx, tx, h)
}

// failBatch fails what waits for a task that was given up, and the operation where
// that is all that was left.
func failBatch(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask, why string) error {
	over, err := store.DropBehind(ctx, tx, h)
	if err != nil {
		return err
	}
	if err := store.NoteFailure(ctx, tx, h, why+restGoesOn); err != nil || !over {
		return err
	}
	message, err := failure(ctx, tx, &h.Operation)
	if err != nil {
		return err
	}
	return store.FailOperation(ctx, tx, &h.Operation, message, false)
}

// endBatch makes an operation failing whose last batch came to its end although a task
// of it had failed. Deletes of clusters pass on what failed and are judged as they are.
func endBatch(ctx context.Context, tx *sqlx.Tx, e *store.Ending) error {
	op := &e.Operation
	if op.Status != loom.OperationRunning || op.Action == loom.ClusterDelete || !e.Failed() {
		return nil
	}
	message, err := failure(ctx, tx, op)
	if err != nil {
		return err
	}
	return store.BeginFailing(ctx, tx, op, message)
}

// failure is what failed first in an operation that went on.
func failure(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) (string, error) {
	f, err := store.FirstFailure(ctx, tx, op)
	if err != nil {
		return "", err
	}
	message := failedTask(f.Number, loom.TaskAction(f.Action), f.Service, f.Hostname, f.NodeNumber)
	if said := strings.TrimSuffix(op.Message, restGoesOn); strings.HasPrefix(said, message) {
		return said, nil
	}
	return message + "failed: " + f.Message, nil // somebody paused or resumed it since
}
