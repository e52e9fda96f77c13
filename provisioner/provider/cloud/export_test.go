package cloud

import (
	"context"

	"loom/app/loom"
)

// CreateFailure returns the result of a CREATE that failed before anything was made.
func (s *Session) CreateFailure(ctx context.Context, err error) (loom.TaskResult, error) {
	return s.createFailure(ctx, err)
}
