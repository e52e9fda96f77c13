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
	course, err := CourseOf(ctx, q, tenant, op)
	if err != nil {
		return nil, err
	}
	l := &loom.Lineage{Plan: course.Plan, Begun: course.Begun, Done: course.Done, After: after}
	for op.Retries {
		if op, err = OperationByRef(ctx, q, tenant, loom.OperationRef{Cluster: op.Ref.Cluster, Number: op.Concerns}); err != nil {
			return nil, err
		}
	}
	if !op.Mends {
		if l.Goal, err = SnapshotBefore(ctx, q, tenant, op.Ref); err == nil && l.Goal != nil {
			l.Before = *l.Goal
		}
		l.After.Nodes = replacing(course, l.Before.Nodes, after.Nodes)
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
	l.After.Nodes = replacing(course, l.Before.Nodes, after.Nodes)
	return l, nil
}

// replacing counts up the incarnation of nodes whose machine was to be replaced and was not:
// their records do so only when the old one is deleted.
func replacing(course *Course, before, after []loom.Node) []loom.Node {
	type step struct {
		node   loom.NodeID
		action loom.TaskAction
	}
	planned := map[step]bool{}
	for _, t := range course.Plan.Tasks {
		planned[step{t.Node, t.Action}] = true
	}
	nodes := slices.Clone(after)
	for i := range nodes {
		n := &nodes[i]
		was := slices.IndexFunc(before, func(b loom.Node) bool { return b.ID == n.ID && b.Incarnation == n.Incarnation })
		if was >= 0 && planned[step{n.ID, loom.ActionDelete}] && planned[step{n.ID, loom.ActionCreate}] {
			n.Incarnation++
		}
	}
	return nodes
}
