package store

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// Step is the newest task of an action on a node, or on a service there.
type Step struct {
	Node    loom.NodeID
	Service string
	Action  loom.TaskAction
	Status  loom.TaskStatus
	// Tried says that an attempt of it began.
	Tried bool
	// Operation is the number of its operation, Of what that did.
	Operation int
	Of        loom.ClusterAction
	// Open says that it is still to be done: it did not complete, nobody left it out, and
	// nothing led the cluster back to before it.
	Open bool
}

// What a rollback or an undo leads back is not to be done any more, and neither is
// what was to be done before.
const latestSteps = `
WITH back AS (
	SELECT coalesce(max(number), 0) AS number FROM operations
	WHERE tenant_id = $1 AND cluster_id = $2 AND started_at IS NOT NULL AND (action = 'rollback' OR after IS NOT NULL)
)
SELECT DISTINCT ON (t.node_id, t.service, t.action) t.node_id, t.service, t.action, t.status, t.attempt > 0 AS tried, o.number AS operation, o.action AS of,
       t.status NOT IN ('complete', 'skipped') AND o.number >= back.number AND (o.after IS NULL OR t.undo) AS open
FROM back, operations o JOIN tasks t ON t.operation_id = o.id
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.started_at IS NOT NULL AND NOT t.gate AND t.node_id::text = ANY ($3)
ORDER BY t.node_id, t.service, t.action, o.number DESC, t.number DESC`

// LatestSteps reads, for some nodes of a cluster, how the newest task of each action
// on each of their services and on themselves stands. It reads the whole history of
// the cluster.
func LatestSteps(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.NodeID) ([]Step, error) {
	ids := make([]string, len(nodes))
	for i, id := range nodes {
		ids[i] = string(id)
	}
	var rows []struct {
		Node      string `db:"node_id"`
		Service   string `db:"service"`
		Action    string `db:"action"`
		Status    string `db:"status"`
		Tried     bool   `db:"tried"`
		Operation int    `db:"operation"`
		Of        string `db:"of"`
		Open      bool   `db:"open"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, latestSteps, tenant, int64(cluster), pq.Array(ids)); err != nil {
		return nil, wrap(err, "read what was done on %d nodes of cluster %s", len(nodes), cluster)
	}
	steps := make([]Step, len(rows))
	for i, r := range rows {
		steps[i] = Step{loom.NodeID(r.Node), r.Service, loom.TaskAction(r.Action), loom.TaskStatus(r.Status), r.Tried, r.Operation, loom.ClusterAction(r.Of), r.Open}
	}
	return steps, nil
}
