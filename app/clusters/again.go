package clusters

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// maxSkipped is how many tasks a retry may leave out.
const maxSkipped = 1000

// RetryInput is a request to go on with a failed operation.
type RetryInput struct {
	// Skip are numbers of its tasks that are left out, Reason why; for administrators.
	Skip           []int
	Reason         string
	ProviderFields map[string]any
	// OnFailure is the policy of the new operation, "" for that of the failed one.
	OnFailure string
	// Services come in their newest version, RemoveServices leave the cluster, and
	// ConfigPatch is a merge patch (RFC 7386) over its config.
	Services, RemoveServices []string
	ConfigPatch              map[string]any
}

// Retry goes on at once with what is left of the latest operation of a cluster, which
// failed: a new operation of the same action with the tasks that are not complete
// (planner.md 10), or, where the request changes anything, with what leads to what it
// was to lead to with that. Errors: NotFound; Conflict for one that is not the latest,
// did not fail or was undone, and for a delete that is to be changed; Forbidden for
// others than administrators who leave out tasks; Invalid about what is left out or
// changed, and with missing provider fields; Unsolvable where the cluster would break
// its rules.
func (u *Clusters) Retry(ctx context.Context, actor loom.Actor, of loom.OperationRef, in RetryInput) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	if err := u.seeOperation(ctx, actor, of); err != nil {
		return loom.OperationRef{}, err
	}
	ref, _, err := u.atOnce(ctx, actor, PreviewInput{
		Kind: loom.PreviewRetry, Cluster: of.Cluster, ProviderFields: in.ProviderFields,
		Change: ChangeInput{Operation: of.Number, Skip: in.Skip, Reason: in.Reason, OnFailure: in.OnFailure,
			Services: in.Services, RemoveServices: in.RemoveServices, ConfigPatch: in.ConfigPatch},
	}, nil)
	return ref, err
}

// draftRetry works out what is left of the latest operation.
func (u *Clusters) draftRetry(ctx context.Context, actor loom.Actor, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	latest, err := lastBegun(ctx, u.db, cluster)
	if err != nil {
		return err
	}
	number := in.Operation
	if number == 0 {
		number = latest.Ref.Number
	}
	op, err := u.operationOf(ctx, cluster, number)
	if err != nil {
		return err
	}
	if number != latest.Ref.Number {
		return loom.NewError(loom.Conflict, "Only the latest operation that began can be retried, and that is operation %d.", latest.Ref.Number)
	}
	if len(in.Skip) > 0 {
		if err := actor.May(loom.Override, actor.InTenant()); err != nil {
			return err
		}
		if err := loom.InvalidFields(loom.CheckReason("reason", in.Reason)); err != nil {
			return err
		}
		if len(in.Skip) > maxSkipped {
			return invalid("skip", "A retry leaves out at most %d tasks.", maxSkipped)
		}
	}
	if in.mends() {
		if len(in.Skip) > 0 {
			return invalid("skip", "A retry leaves out tasks, or changes services and config; not both.")
		}
		return u.draftMend(ctx, actor, d, cluster, op, in, mending{
			Newest: in.Services, Remove: in.RemoveServices, Config: in.patch(),
		})
	}
	d.Action = op.Action
	if err := d.policy(in.OnFailure, op.OnFailure); err != nil {
		return err
	}
	d.Followed = &following{Asked: in, Of: number, By: actor.User}
	if err := d.Followed.compute(ctx, u.db, cluster.Owner.Tenant, cluster.ID, loom.PreviewRetry); err != nil {
		return err
	}
	if cluster.Protected && op.Action == loom.Rollback && deletes(d.Followed.plan) {
		return isProtected()
	}
	return nil
}

// computeRetry plans the tasks that are left, and behind them those that are left out.
func (f *following) computeRetry(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) error {
	op, err := store.OperationByRef(ctx, q, tenant, ref)
	if err != nil {
		return err
	}
	plans, err := store.PlansOf(ctx, q, tenant, op)
	if err != nil {
		return err
	}
	course := planner.CourseOf(plans)
	if err := loom.InvalidFields(checkSkipped(course, f.Asked.Skip)); err != nil {
		return err
	}
	skip := map[int]bool{}
	for _, number := range f.Asked.Skip {
		skip[number] = true
	}
	open := bridge(course.Plan, skip)
	plan, err := planner.Again(open, func(number int) bool { return course.Done(number) || skip[number] })
	if err != nil {
		return err
	}
	f.plan, f.skipped = plan, map[int]store.Skip{}
	if len(skip) == 0 {
		return nil
	}
	f.plan = shifted(plan, len(skip))
	for i := range course.Plan.Tasks {
		if t := course.Plan.Tasks[i]; skip[t.Number] {
			t.Number, t.Level, t.Rank, t.Critical = len(f.plan.Tasks)+1, 1, 1, false
			f.plan.Tasks = append(f.plan.Tasks, t)
			f.skipped[t.Number] = store.Skip{By: f.By, Reason: f.Asked.Reason}
		}
	}
	return nil
}

// checkSkipped finds what is wrong with the tasks that a retry is to leave out.
func checkSkipped(course *planner.Course, skip []int) []loom.FieldError {
	var errs []loom.FieldError
	for i, number := range skip {
		field := fmt.Sprintf("skip[%d]", i)
		switch {
		case number < 1 || number > len(course.Plan.Tasks):
			errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf("The operation has no task %d.", number)})
		case course.Done(number):
			errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf("Task %d is done; it does not run again.", number)})
		}
	}
	return errs
}

// shifted makes room for n more tasks behind those of a plan.
func shifted(plan loom.Plan, n int) loom.Plan {
	last := len(plan.Tasks)
	plan.Edges = slices.Clone(plan.Edges)
	for i := range plan.Edges {
		e := &plan.Edges[i]
		if e.From > last {
			e.From += n
		}
		if e.To > last {
			e.To += n
		}
	}
	return plan
}

// bridge leads the order of a plan past some of its tasks: what is behind one waits
// for what that waited for.
func bridge(plan loom.Plan, past map[int]bool) loom.Plan {
	if len(past) == 0 {
		return plan
	}
	before, after := make([][]int, plan.EndVertex()+1), make([][]int, plan.EndVertex()+1)
	have := make(map[loom.Edge]bool, len(plan.Edges))
	add := func(from, to int) {
		if e := (loom.Edge{From: from, To: to}); !have[e] {
			have[e] = true
			before[to], after[from] = append(before[to], from), append(after[from], to)
		}
	}
	for _, e := range plan.Edges {
		add(e.From, e.To)
	}
	gate := func(v int) bool { return v > len(plan.Tasks) }
	for number := range plan.Tasks {
		if number++; !past[number] {
			continue
		}
		for _, from := range before[number] {
			for _, to := range after[number] {
				if !have[loom.Edge{From: from, To: number}] || !have[loom.Edge{From: number, To: to}] {
					continue
				}
				if !gate(from) || !gate(to) {
					add(from, to)
					continue
				}
				// A gate never follows a gate: what is behind it waits for its tasks.
				for _, task := range before[from] {
					if have[loom.Edge{From: task, To: from}] {
						add(task, to)
					}
				}
			}
		}
		for _, from := range before[number] {
			delete(have, loom.Edge{From: from, To: number})
		}
		for _, to := range after[number] {
			delete(have, loom.Edge{From: number, To: to})
		}
	}
	out := plan
	out.Edges = nil
	for e := range have {
		out.Edges = append(out.Edges, e)
	}
	slices.SortFunc(out.Edges, func(a, b loom.Edge) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	return out
}
