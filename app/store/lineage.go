package store

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// LineageOf reads the lineage of an operation that is idle, and which
// was to lead to after.
func LineageOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation, after loom.Snapshot) (*loom.Lineage, error) {
	plans, op, err := plansOf(ctx, q, tenant, op)
	if err != nil {
		return nil, err
	}
	l := &loom.Lineage{Plans: plans, After: after}
	if !op.Mends {
		if l.Goal, err = SnapshotBefore(ctx, q, tenant, op.Ref); err == nil && l.Goal != nil {
			l.Before = *l.Goal
		}
		return l, err
	}
	start, err := SnapshotStart(ctx, q, tenant, op.Ref)
	if err != nil {
		return nil, err
	}
	l.Before = *start
	l.Before.Nodes = slices.DeleteFunc(l.Before.Nodes, func(n loom.Node) bool { return n.Leaving })
	first, err := OperationByRef(ctx, q, tenant, loom.OperationRef{Cluster: op.Ref.Cluster, Number: op.Concerns})
	if err != nil {
		return nil, err
	}
	if l.First, err = LineageOf(ctx, q, tenant, first, l.Before); err != nil {
		return nil, err
	}
	l.Goal = l.First.Goal
	return l, nil
}

// maxRetried bounds how many operations may retry one another.
const maxRetried = 1000

// PlansOf reads the plan of an operation and, behind it, those of the operations that it
// retries.
func PlansOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation) ([]loom.StoredPlan, error) {
	plans, _, err := plansOf(ctx, q, tenant, op)
	return plans, err
}

// plansOf also returns the operation that was retried first.
func plansOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation) (plans []loom.StoredPlan, first loom.Operation, err error) {
	for range maxRetried {
		plan, states, err := PlanByOperation(ctx, q, tenant, op)
		if err != nil {
			return nil, op, err
		}
		plans = append(plans, loom.StoredPlan{Plan: plan, States: states})
		if !op.Retries {
			break
		}
		if op, err = OperationByRef(ctx, q, tenant, loom.OperationRef{Cluster: op.Ref.Cluster, Number: op.Concerns}); err != nil {
			return nil, op, err
		}
	}
	return plans, op, nil
}
