package clusters

import (
	"context"
	"fmt"
	"strings"

	"loom/app/loom"
	"loom/app/store"
)

// wait says in the operation why it does not go on, if it does not.
func (u *Clusters) wait(ctx context.Context, tenant loom.TenantID, op *loom.Operation) error {
	if op == nil || op.Status.Final() {
		return nil
	}
	if op.Waiting = waitsAnyway(op); op.Waiting != "" {
		return nil
	}
	defer func() {
		if op.Waiting == "" && op.Status == loom.OperationRunning && op.Tasks[loom.TaskFailed] > 0 {
			op.Waiting = "A task failed. What does not wait for it is done first, then the operation ends."
		}
	}()
	if op.Tasks[loom.TaskReady] == 0 {
		return nil
	}
	if op.Status != loom.OperationRunning && op.Status != loom.OperationRollingBack {
		return nil
	}
	var q *store.Queueing
	if op.Tasks[loom.TaskRunning] == 0 {
		found, err := store.QueueingOf(ctx, u.kept, tenant, op.Ref)
		if err != nil {
			return err
		}
		q = &found
	}
	var try store.NextTry
	retries := false
	if op.Again > 0 {
		var err error
		if try, retries, err = u.nextTry(ctx, tenant, op.Ref); err != nil {
			return err
		}
	}
	try.At = try.At.In(loom.ZoneOf(ctx))
	if op.Waiting = waitsForWorkers(q); op.Waiting == "" && retries {
		op.Waiting, op.ForRetry = retryText(try), true
	}
	return nil
}

// NextTry is a task that failed and is tried again.
type NextTry = store.NextTry

// NextTries lists the tasks of an operation that failed and are tried again, at most
// limit, what is due first first. NotFound for the operation.
func (u *Clusters) NextTries(ctx context.Context, actor loom.Actor, ref loom.OperationRef, limit int) ([]NextTry, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return once(ctx, listRead{operationRead{actor.Tenant, ref}, limit}, func() ([]NextTry, error) {
		return store.NextTriesOf(ctx, u.kept, actor.Tenant, ref, limit)
	})
}

// listRead is the key of a list of so many retries.
type listRead struct {
	operationRead
	limit int
}

// nextTry reads the retry of an operation that is due first, ok is false where none is.
func (u *Clusters) nextTry(ctx context.Context, tenant loom.TenantID, ref loom.OperationRef) (try store.NextTry, ok bool, err error) {
	type found struct {
		try store.NextTry
		ok  bool
	}
	f, err := once(ctx, triesRead{tenant, ref}, func() (f found, err error) {
		f.try, f.ok, err = store.NextTryOf(ctx, u.kept, tenant, ref)
		return f, err
	})
	return f.try, f.ok, err
}

// waitsAnyway is why an operation waits in a state that says so itself.
func waitsAnyway(op *loom.Operation) string {
	running := op.Tasks[loom.TaskRunning]
	switch {
	case op.Status == loom.OperationNotSubmitted:
		return "A hook has not agreed yet."
	case op.Status == loom.OperationPaused && running > 0:
		return fmt.Sprintf("It is paused: %s, nothing else starts until it is resumed.", stillRun(running))
	case op.Status == loom.OperationPaused:
		return "It is paused: nothing starts until it is resumed."
	case op.Status == loom.OperationFailing && running > 0:
		return fmt.Sprintf("It is ending: %s.", stillRun(running))
	}
	return ""
}

func stillRun(n int) string {
	if n == 1 {
		return "1 task that was begun still runs"
	}
	return fmt.Sprintf("%d tasks that were begun still run", n)
}

// waitsForWorkers words why no worker takes the ready tasks of an operation, "" where one
// may. q is nil while others of its tasks run.
func waitsForWorkers(q *store.Queueing) string {
	switch {
	case q == nil:
	case q.Paused:
		return "A superadmin has paused the queue of the tenant: nothing new starts until it is resumed."
	case q.Wanted == 0:
		return "The tenant has no workers; a superadmin gives it some."
	case q.Live == 0:
		return "No provisioner is up that works for the tenant."
	case q.Dealt == 0:
		return "The tenant has no workers yet: the provisioners that are up have none to spare for it."
	case q.Ready == 0:
	case q.Busy >= q.Dealt && q.Dealt == 1:
		return "The one worker of the tenant is busy with another task."
	case q.Busy >= q.Dealt:
		return fmt.Sprintf("All %d workers of the tenant are busy with other tasks.", q.Dealt)
	}
	return ""
}

// retryText says which task is tried again, and when.
func retryText(try store.NextTry) string {
	what := strings.TrimSpace(try.Action + " " + try.Service)
	text := fmt.Sprintf("Task %d, %s on node %d, is tried again at %s", try.Number, what, try.NodeNumber, try.At.Format("15:04:05 MST"))
	if try.Message != "" {
		return text + ", after: " + try.Message
	}
	return text + "."
}
