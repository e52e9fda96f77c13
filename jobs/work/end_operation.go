package work

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"

	"loom/app/execution"
	"loom/app/loom"
	"loom/jobs"
)

// endOperation works end_operation.
type endOperation struct {
	river.WorkerDefaults[jobs.EndOperation]
	ops *execution.Operations
}

// Work looks whether the operation has ended; River tries again after an error.
func (w *endOperation) Work(ctx context.Context, job *river.Job[jobs.EndOperation]) error {
	if err := w.ops.EndOperation(ctx, loom.OperationID(job.Args.OperationID)); err != nil {
		return fmt.Errorf("end operation %d: %w", job.Args.OperationID, err)
	}
	return nil
}
