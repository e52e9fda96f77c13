package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// NodeSecrets is the entity under which secret results of a node's tasks are
// sealed, by the name of the result.
func NodeSecrets(id loom.NodeID) string { return "node:" + string(id) }

// TaskNode is whose a task is.
type TaskNode struct {
	Tenant loom.TenantID
	Node   loom.NodeID
}

// NodesOfTasksAllTenants says whose nodes tasks are of; gates are left out.
func NodesOfTasksAllTenants(ctx context.Context, q sqlx.ExtContext, tasks []loom.TaskID) (map[loom.TaskID]TaskNode, error) {
	var rows []struct {
		ID     int64  `db:"id"`
		Tenant string `db:"tenant_id"`
		Node   string `db:"node_id"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `SELECT id, tenant_id, node_id FROM tasks WHERE id = ANY ($1) AND node_id IS NOT NULL`, pq.Array(taskIDs(tasks)))
	nodes := make(map[loom.TaskID]TaskNode, len(rows))
	for _, r := range rows {
		nodes[loom.TaskID(r.ID)] = TaskNode{loom.TenantID(r.Tenant), loom.NodeID(r.Node)}
	}
	return nodes, wrap(err, "read the nodes of %d tasks", len(tasks))
}

func taskIDs(tasks []loom.TaskID) []int64 {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = int64(t)
	}
	return ids
}

const forgetNodeSecrets = `
DELETE FROM secrets s USING unnest($1::bigint[], $2::text[]) AS x (task, name) JOIN tasks t ON t.id = x.task
WHERE s.tenant_id = t.tenant_id AND s.entity = 'node:' || t.node_id::text AND s.field = x.name`

// ForgetNodeSecretsAllTenants forgets the sealed results names[i] of the node of
// tasks[i].
func ForgetNodeSecretsAllTenants(ctx context.Context, tx *sqlx.Tx, tasks []loom.TaskID, names []string) error {
	if len(tasks) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, forgetNodeSecrets, pq.Array(taskIDs(tasks)), pq.Array(names))
	return wrap(err, "forget sealed results of nodes")
}

// DeleteNodeSecrets forgets the sealed results of all nodes of a cluster.
func DeleteNodeSecrets(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID) error {
	_, err := tx.ExecContext(ctx, `
DELETE FROM secrets WHERE tenant_id = $1 AND entity IN (SELECT 'node:' || id::text FROM nodes WHERE tenant_id = $1 AND cluster_id = $2)`, tenant, int64(cluster))
	return wrap(err, "delete secrets of the nodes of cluster %s", cluster)
}

// NodeFacts are the results that a node has.
type NodeFacts struct {
	TaskNode
	Results map[string]any
}

// NodeFactsAllTenants reads results of nodes behind an id, in order of ids.
func NodeFactsAllTenants(ctx context.Context, q sqlx.ExtContext, after loom.NodeID, limit int) ([]NodeFacts, error) {
	var rows []struct {
		ID      string `db:"id"`
		Tenant  string `db:"tenant_id"`
		Results []byte `db:"results"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `
SELECT id, tenant_id, results FROM nodes WHERE results <> '{}' AND ($1 = '' OR id > nullif($1, '')::uuid) ORDER BY id LIMIT $2`, after, limit)
	if err != nil {
		return nil, wrap(err, "read results of nodes")
	}
	facts := make([]NodeFacts, len(rows))
	for i, r := range rows {
		facts[i].TaskNode = TaskNode{loom.TenantID(r.Tenant), loom.NodeID(r.ID)}
		if err := decodeExact(r.Results, &facts[i].Results); err != nil {
			return nil, fmt.Errorf("read the results of node %s: %w", r.ID, err)
		}
	}
	return facts, nil
}

// LockNodeFacts locks a node and reads its results.
func LockNodeFacts(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, node loom.NodeID) (map[string]any, error) {
	var raw []byte
	if err := tx.GetContext(ctx, &raw, `SELECT results FROM nodes WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, node); err != nil {
		return nil, wrap(err, "lock node %s", node)
	}
	var results map[string]any
	if err := decodeExact(raw, &results); err != nil {
		return nil, fmt.Errorf("read the results of node %s: %w", node, err)
	}
	return results, nil
}

// ReplaceNodeFacts stores the results of a locked node.
func ReplaceNodeFacts(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, node loom.NodeID, results map[string]any) error {
	raw, err := json.Marshal(results)
	if err != nil {
		return fmt.Errorf("marshal the results of node %s: %w", node, err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE nodes SET results = $3 WHERE tenant_id = $1 AND id = $2`, tenant, node, raw)
	return wrap(err, "store the results of node %s", node)
}

const updateNodeFacts = `
UPDATE nodes SET hostname = $4, ipaddresses = $5, sshuser = $6 WHERE tenant_id = $1 AND cluster_id = $2 AND id = $3`

// UpdateNodeFacts stores host name, addresses and user of a locked node.
func UpdateNodeFacts(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, n loom.Node) error {
	addresses, err := encodeAddresses(n)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, updateNodeFacts, tenant, int64(n.Cluster), n.ID, n.Hostname, addresses, n.SSHUser)
	return wrap(err, "update node %s", n.ID)
}
