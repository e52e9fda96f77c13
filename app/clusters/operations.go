package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Operations lists the operations of a cluster, newest first.
func (u *Clusters) Operations(ctx context.Context, actor loom.Actor, id loom.ClusterID) ([]loom.Operation, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return nil, err
	}
	return store.OperationsByCluster(ctx, u.q, actor.Tenant, id)
}

// Operation reads one operation with its task counts.
func (u *Clusters) Operation(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Operation, error) {
	if err := u.see(ctx, actor, ref.Cluster); err != nil {
		return loom.Operation{}, err
	}
	op, err := operationOf(ctx, u.kept, actor.Tenant, ref)
	if isNotFound(err) {
		return op, loom.NewError(loom.NotFound, "Cluster %s has no operation %d.", ref.Cluster, ref.Number)
	}
	if err != nil {
		return op, err
	}
	return op, u.explainWaiting(ctx, actor.Tenant, &op)
}

// LatestOperations reads the newest operations of listed clusters that the actor may
// see, by cluster, in one query, with the counts of their tasks where counted says so; why
// one waits is left out.
func (u *Clusters) LatestOperations(ctx context.Context, actor loom.Actor, clusters []loom.ClusterSummary, counted bool) (map[loom.ClusterID]loom.Operation, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return nil, err
	}
	out := map[loom.ClusterID]loom.Operation{}
	var ids []loom.ClusterID
	for _, c := range clusters {
		if actor.May(loom.See, c.Object()) == nil {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	operations, err := store.LatestOperations(ctx, u.kept, actor.Tenant, ids, counted)
	for _, op := range operations {
		out[op.Ref.Cluster] = op
	}
	return out, err
}

// seeOperation checks that the actor may read an operation, without counting its
// tasks as Operation does.
func (u *Clusters) seeOperation(ctx context.Context, actor loom.Actor, ref loom.OperationRef) error {
	if err := u.see(ctx, actor, ref.Cluster); err != nil {
		return err
	}
	_, err := u.operationStatus(ctx, actor, ref)
	return err
}

func (u *Clusters) operationStatus(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.OperationStatus, error) {
	status, err := cached(ctx, statusRead{actor.Tenant, ref}, func() (loom.OperationStatus, error) {
		return store.OperationStatus(ctx, u.kept, actor.Tenant, ref)
	})
	if isNotFound(err) {
		return "", loom.NewError(loom.NotFound, "Cluster %s has no operation %d.", ref.Cluster, ref.Number)
	}
	return status, err
}

// PlanOf returns the stored plan of an operation as a graph, and each of its tasks
// by number as it is now.
func (u *Clusters) PlanOf(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Plan, map[int]loom.Task, error) {
	op, err := u.Operation(ctx, actor, ref)
	if err != nil {
		return loom.Plan{}, nil, err
	}
	return store.PlanByOperation(ctx, u.q, actor.Tenant, op)
}

// OperationListInput asks for a page of operations, sorted by -number or number;
// empty fields do not filter.
type OperationListInput struct {
	loom.Page
	Statuses []loom.OperationStatus
	Actions  []loom.ClusterAction
}

// ListPage is a page of a list; Next and Prev are cursors, empty at the ends.
type ListPage[T any] struct {
	Items      []T
	Next, Prev string
}

// OperationPage lists operations of a cluster. Invalid for a wrong sort, limit,
// filter or cursor.
func (u *Clusters) OperationPage(ctx context.Context, actor loom.Actor, id loom.ClusterID, in OperationListInput) (ListPage[loom.Operation], error) {
	var none ListPage[loom.Operation]
	if err := u.see(ctx, actor, id); err != nil {
		return none, err
	}
	errs := append(unknown("status", in.Statuses, loom.OperationStatuses), unknown("action", in.Actions, loom.ClusterActions)...)
	if err := loom.InvalidFields(errs); err != nil {
		return none, err
	}
	filter := store.OperationFilter{Statuses: in.Statuses, Actions: in.Actions}
	mark := fmt.Sprint(id, filter)
	counted, known := knownOperation(ctx, actor.Tenant, id)
	if known {
		filter.Uncounted = counted.Ref.Number
	}
	return pageByNumber(in.Page, mark, []string{"-number", "number"}, func(o loom.Operation) int { return o.Ref.Number },
		func(r store.NumberRange) ([]loom.Operation, error) {
			operations, err := store.OperationsInRange(ctx, u.kept, actor.Tenant, id, filter, r)
			for i := range operations {
				if known && operations[i].Ref == counted.Ref {
					operations[i].Tasks, operations[i].Again = counted.Tasks, counted.Again
				}
			}
			return operations, err
		})
}

// unknown names the values of a filter that do not exist, and those that do.
func unknown[T ~string](field string, given, valid []T) []loom.FieldError {
	for _, value := range given {
		if !slices.Contains(valid, value) {
			texts := make([]string, len(valid))
			for i, v := range valid {
				texts[i] = string(v)
			}
			return []loom.FieldError{{Field: field, Message: fmt.Sprintf("“%.40s” is none of %s.", value, strings.Join(texts, ", "))}}
		}
	}
	return nil
}

// pageByNumber reads a page of a list in the order of its running numbers. The
// filter, as a text, ties cursors to the list they were made for.
func pageByNumber[T any](p loom.Page, filter string, sorts []string, number func(T) int, read func(store.NumberRange) ([]T, error)) (ListPage[T], error) {
	var out ListPage[T]
	cursor, err := p.Check(2, sorts...)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256([]byte(filter))
	mark := base64.RawURLEncoding.EncodeToString(sum[:9])
	// A page before a cursor is the page after it in the opposite order, turned round.
	back := p.Before != ""
	r := store.NumberRange{Down: (p.Sort == "-number") != back}
	if cursor != nil {
		at, err := strconv.ParseInt(cursor.Keys[0], 10, 32)
		if err != nil || at < 0 || cursor.Keys[1] != mark {
			field := "after"
			if back {
				field = "before"
			}
			return out, invalid(field, "This cursor belongs to another list or filter; start from the first page.")
		}
		if r.Down {
			// Nothing is below 1, and 0 would mean no bound.
			r.Below = max(int(at), 1)
		} else {
			r.Above = int(at)
		}
	}
	if p.Limit > 0 {
		r.Limit = p.Limit + 1
	}
	if out.Items, err = read(r); err != nil {
		return out, err
	}
	out.Items, out.Next, out.Prev = loom.CutPage(p, out.Items, false, func(item T) []string { return []string{strconv.Itoa(number(item)), mark} })
	return out, nil
}

// lastBegun reads the newest operation that began or may still begin: what was refused
// changed nothing. Nil before the first.
func lastBegun(ctx context.Context, q sqlx.ExtContext, c loom.Cluster) (*loom.Operation, error) {
	op, err := latestOperation(ctx, q, c)
	for err == nil && op != nil && op.NeverBegan() && op.Ref.Number > 1 && c.Status != loom.ClusterTerminated {
		c.LatestOperation--
		op, err = latestOperation(ctx, q, c)
	}
	return op, err
}

// latestOperation reads the newest operation, nil before the first.
func latestOperation(ctx context.Context, q sqlx.ExtContext, c loom.Cluster) (*loom.Operation, error) {
	if c.LatestOperation == 0 {
		return nil, nil
	}
	op, err := operationOf(ctx, q, c.Owner.Tenant, loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation})
	if err != nil {
		return nil, err
	}
	return &op, nil
}

// halfDone returns the newest operation that began and neither ended well nor was taken
// back, unless a later one has put things right.
func (u *Clusters) halfDone(ctx context.Context, cluster loom.Cluster) (*loom.Operation, error) {
	operations, err := store.OperationsByCluster(ctx, u.q, cluster.Owner.Tenant, cluster.ID)
	if err != nil {
		return nil, err
	}
	for i := range operations {
		op := &operations[i]
		switch {
		case op.Status == loom.OperationComplete:
			return nil, nil
		case op.Status == loom.OperationRolledBack || op.Started.IsZero() || op.Action == loom.ClusterAuthorize:
		default:
			return op, nil
		}
	}
	return nil, nil
}

// explainWaiting sets in the operation why it does not progress, if it does not.
func (u *Clusters) explainWaiting(ctx context.Context, tenant loom.TenantID, op *loom.Operation) error {
	if op == nil || op.Status.Final() {
		return nil
	}
	if op.Waiting = waitingByStatus(op); op.Waiting != "" {
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
	if op.Waiting = waitingForWorkers(q); op.Waiting == "" && retries {
		op.Waiting, op.ForRetry = retryText(try), true
	}
	return nil
}

// Retries numbers the operations that an operation belongs to: the one that was retried,
// and each retry. NotFound.
func (u *Clusters) Retries(ctx context.Context, actor loom.Actor, ref loom.OperationRef) ([]int, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.RetriesOf(ctx, u.kept, actor.Tenant, ref)
}

// NextTry is a task that failed and is tried again.
type NextTry = store.NextTry

// NextTries lists the tasks of an operation that failed and are tried again, at most
// limit, what is due first first. NotFound for the operation.
func (u *Clusters) NextTries(ctx context.Context, actor loom.Actor, ref loom.OperationRef, limit int) ([]NextTry, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return cached(ctx, nextTriesRead{operationRead{actor.Tenant, ref}, limit}, func() ([]NextTry, error) {
		return store.NextTriesOf(ctx, u.kept, actor.Tenant, ref, limit)
	})
}

// nextTriesRead is the key of a list of so many retries.
type nextTriesRead struct {
	operationRead
	limit int
}

// nextTry reads the retry of an operation that is due first, ok is false where none is.
func (u *Clusters) nextTry(ctx context.Context, tenant loom.TenantID, ref loom.OperationRef) (try store.NextTry, ok bool, err error) {
	type found struct {
		try store.NextTry
		ok  bool
	}
	f, err := cached(ctx, nextTryRead{tenant, ref}, func() (f found, err error) {
		f.try, f.ok, err = store.NextTryOf(ctx, u.kept, tenant, ref)
		return f, err
	})
	return f.try, f.ok, err
}

// waitingByStatus returns why an operation waits where its status implies that, else "".
func waitingByStatus(op *loom.Operation) string {
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

// waitingForWorkers words why no worker takes the ready tasks of an operation, "" where one
// may. q is nil while others of its tasks run.
func waitingForWorkers(q *store.Queueing) string {
	switch {
	case q == nil:
	case q.Paused:
		return "A superadmin has paused the queue of the tenant: nothing new starts until it is resumed."
	case q.Wanted == 0:
		return "The tenant has no workers; a superadmin gives it some."
	case q.Live == 0:
		return "No provisioner is up that works for the tenant."
	case q.Assigned == 0:
		return "The tenant has no workers yet: the provisioners that are up have none to spare for it."
	case q.Ready == 0:
	case q.Busy >= q.Assigned && q.Assigned == 1:
		return "The one worker of the tenant is busy with another task."
	case q.Busy >= q.Assigned:
		return fmt.Sprintf("All %d workers of the tenant are busy with other tasks.", q.Assigned)
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
