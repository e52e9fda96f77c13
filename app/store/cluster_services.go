package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// A copy of a service that came later says which operation brought it: that is
// how it is found again when the operation never begins.
const addClusterServices = `
UPDATE clusters SET services = services || (
    SELECT jsonb_object_agg(s.key, s.value || jsonb_build_object('operation', $4::int)) FROM jsonb_each($3::jsonb) AS s)
WHERE tenant_id = $1 AND id = $2`

// AddClusterServices gives a cluster, whose lock the caller holds, copies of
// services that it did not have; SetNodeServices puts them on nodes.
func AddClusterServices(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.OperationRef, services map[string]loom.Service) error {
	if len(services) == 0 {
		return nil
	}
	data, err := json.Marshal(services)
	if err != nil {
		return fmt.Errorf("encode services of cluster %s: %w", ref.Cluster, err)
	}
	_, err = tx.ExecContext(ctx, addClusterServices, tenant, int64(ref.Cluster), data, ref.Number)
	return wrap(err, "add %d services to cluster %s", len(services), ref.Cluster)
}

const setNodeServices = `
WITH held AS (
    SELECT n.id, r.services, r.automators
    FROM jsonb_to_recordset($3) AS r(id uuid, services jsonb, automators jsonb)
    JOIN nodes n ON n.id = r.id
    WHERE n.tenant_id = $1 AND n.cluster_id = $2 ORDER BY n.id FOR UPDATE OF n
)
UPDATE nodes n SET services = ARRAY(SELECT jsonb_array_elements_text(h.services)),
       automators = ARRAY(SELECT jsonb_array_elements_text(h.automators))
FROM held h WHERE n.id = h.id`

// SetNodeServices replaces the services and automators of nodes of a cluster,
// whose lock the caller holds. The cluster takes its next revision, and
// provisioners read its nodes again.
func SetNodeServices(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.Node) error {
	type record struct {
		ID         loom.NodeID `json:"id"`
		Services   []string    `json:"services"`
		Automators []string    `json:"automators"`
	}
	records := make([]record, len(nodes))
	for i, n := range nodes {
		records[i] = record{n.ID, append([]string{}, n.Services...), append([]string{}, n.Automators...)}
	}
	data, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode the services of nodes of cluster %s: %w", cluster, err)
	}
	if _, err := tx.ExecContext(ctx, setNodeServices, tenant, int64(cluster), data); err != nil {
		return wrap(err, "store the services of %d nodes of cluster %s", len(nodes), cluster)
	}
	return NodesWritten(ctx, tx, tenant, cluster)
}

const servicesOfOperation = `
SELECT s.key FROM clusters c, jsonb_each(c.services) AS s
WHERE c.tenant_id = $1 AND c.id = $2 AND s.value->'operation' = to_jsonb($3::int) ORDER BY s.key`

const dropClusterServices = `UPDATE clusters SET services = services - $3::text[] WHERE tenant_id = $1 AND id = $2`

// Automators follow from the services that stay, in the order in which they are
// stored with new nodes.
const dropNodeServices = `
WITH held AS (
    SELECT n.id, c.services FROM nodes n JOIN clusters c ON c.id = n.cluster_id
    WHERE c.tenant_id = $1 AND c.id = $2 AND n.services && $3::text[] ORDER BY n.id FOR UPDATE OF n
)
UPDATE nodes n SET
    services = ARRAY(SELECT s.name FROM unnest(n.services) WITH ORDINALITY AS s (name, place) WHERE s.name <> ALL ($3) ORDER BY s.place),
    automators = ARRAY(
        SELECT DISTINCT (a.value->>'type') COLLATE "C"
        FROM unnest(n.services) AS s (name)
        CROSS JOIN LATERAL (SELECT h.services->s.name->'provisioner'->'actions' AS actions) AS p
        CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(p.actions) WHEN 'object' THEN p.actions ELSE '{}' END) AS a
        WHERE s.name <> ALL ($3) ORDER BY 1)
FROM held h WHERE n.id = h.id`

// TakeBackServices takes off the held cluster of an operation that never began,
// and off its nodes, the services that it was to bring.
func TakeBackServices(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) error {
	var names []string
	if err := tx.SelectContext(ctx, &names, servicesOfOperation, op.Tenant, int64(op.Ref.Cluster), op.Ref.Number); err != nil {
		return wrap(err, "look for services that operation %s brought", op.Ref)
	}
	if len(names) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, dropClusterServices, op.Tenant, int64(op.Ref.Cluster), pq.Array(names)); err != nil {
		return wrap(err, "take back the services of operation %s", op.Ref)
	}
	if _, err := tx.ExecContext(ctx, dropNodeServices, op.Tenant, int64(op.Ref.Cluster), pq.Array(names)); err != nil {
		return wrap(err, "take the services of operation %s off the nodes", op.Ref)
	}
	return NodesWritten(ctx, tx, op.Tenant, op.Ref.Cluster)
}
