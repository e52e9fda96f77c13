package store

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// The point is that of the slot which has just ended by the clock of the database, whoever
// records it a little late or early. Slots without a point are filled up as not known.
const insertLoad = `
INSERT INTO node_load (node_id, incarnation, slot, points)
SELECT n.id, n.incarnation, round(extract(epoch FROM now()) / $5)::bigint - 1, x.point
FROM unnest($2::uuid[], $3::int[], $4::bytea[]) AS x (node_id, incarnation, point)
JOIN nodes n ON n.id = x.node_id AND n.incarnation = x.incarnation AND n.state = 'ready'
WHERE EXISTS (SELECT FROM processes WHERE id = $1 AND expires_at > now())
ORDER BY n.id
ON CONFLICT (node_id) DO UPDATE SET incarnation = excluded.incarnation, slot = excluded.slot,
    points = CASE WHEN node_load.incarnation <> excluded.incarnation OR excluded.slot - node_load.slot >= $6 THEN excluded.points
             ELSE substring(node_load.points || decode(repeat('ffffff', (excluded.slot - node_load.slot - 1)::int), 'hex') || excluded.points
                            FROM greatest(1, octet_length(node_load.points) + 3 * (excluded.slot - node_load.slot - $6)::int + 1)) END
WHERE node_load.slot < excluded.slot`

// InsertLoad adds a point to the loads of nodes, each once, if the lease of the process runs.
// The point of another machine than the node has now is left out.
func InsertLoad(ctx context.Context, q sqlx.ExecerContext, process loom.ProcessID, points []loom.LoadPoint) error {
	nodes, incarnations, shares := make([]string, len(points)), make([]int64, len(points)), make(pq.ByteaArray, len(points))
	for i, p := range points {
		nodes[i], incarnations[i], shares[i] = string(p.Node), int64(p.Incarnation), p.Bytes()
	}
	_, err := q.ExecContext(ctx, insertLoad, process, pq.Array(nodes), pq.Array(incarnations), shares, int(loom.LoadStep.Seconds()), loom.LoadPoints)
	return wrap(err, "record the load of %d nodes", len(points))
}

const loadsOfNodes = `
SELECT n.id::text AS node, coalesce(l.points, '') AS points, coalesce(l.slot, 0) AS slot, floor(extract(epoch FROM now()) / $4)::bigint AS now
FROM nodes n LEFT JOIN node_load l ON l.node_id = n.id AND l.incarnation = n.incarnation
WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND n.id::text = ANY ($3)`

// LoadsOfNodes reads the loads of the machines that nodes of a cluster have, over the last day.
// Nodes that the cluster never had are left out.
func LoadsOfNodes(ctx context.Context, q sqlx.QueryerContext, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.NodeID) (map[loom.NodeID]loom.NodeLoad, error) {
	var rows []struct {
		Node   loom.NodeID `db:"node"`
		Points []byte      `db:"points"`
		Slot   int64       `db:"slot"`
		Now    int64       `db:"now"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, loadsOfNodes, tenant, int64(cluster), textArray(nodes), int(loom.LoadStep.Seconds())); err != nil {
		return nil, wrap(err, "read the loads of %d nodes", len(nodes))
	}
	loads := make(map[loom.NodeID]loom.NodeLoad, len(rows))
	for _, r := range rows {
		loads[r.Node] = loom.ReadLoad(r.Points, r.Slot, r.Now)
	}
	return loads, nil
}
