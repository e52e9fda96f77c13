package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// NodeList is a page of nodes. Next and Prev are cursors, empty at the ends.
type NodeList struct {
	Items      []loom.Node
	Next, Prev string
}

const nodeColumns = `n.id, n.cluster_id, n.number, n.incarnation, n.state, n.leaving, n.hostname, n.hardwaretype, n.imagetype, n.flavor, n.image, n.sshuser,
       n.services, n.automators, n.ipaddresses, n.results, n.service_states`

var nodesSeen = `
SELECT ` + nodeColumns + `
FROM nodes n JOIN clusters c ON c.id = n.cluster_id
WHERE n.tenant_id = $1 AND ` + seenBy("$2") + ` AND ($3 OR (n.cluster_id, n.number) %[1]s ($4, $5))
ORDER BY n.cluster_id %[2]s, n.number %[2]s`

// NodesByTenant reads a page of the nodes of those clusters of a tenant that a viewer
// sees, by cluster and number, without their history; see SeenBy. Invalid for an unknown sort and for a cursor of another list.
func NodesByTenant(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer loom.UserID, p loom.Page) (NodeList, error) {
	cursor, err := p.Check(2, "clusterId", "-clusterId")
	if err != nil {
		return NodeList{}, err
	}
	// A page before a cursor is the page after it in the opposite order, turned round.
	back := p.Before != ""
	comparison, direction := ">", "ASC"
	if (p.Sort == "-clusterId") != back {
		comparison, direction = "<", "DESC"
	}
	var cluster, number int64
	if cursor != nil {
		var numberErr error
		cluster, err = strconv.ParseInt(cursor.Keys[0], 10, 64)
		number, numberErr = strconv.ParseInt(cursor.Keys[1], 10, 32)
		if err != nil || numberErr != nil {
			return NodeList{}, loom.InvalidFields([]loom.FieldError{{Field: "after", Message: "This cursor belongs to another list; start from the first page."}})
		}
	}
	query, args := fmt.Sprintf(nodesSeen, comparison, direction), []any{tenant, viewer, cursor == nil, cluster, number}
	if p.Limit > 0 {
		query += " LIMIT $6"
		args = append(args, p.Limit+1)
	}
	var rows []nodeRow
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
		return NodeList{}, wrap(err, "list nodes")
	}
	var list NodeList
	rows, list.Next, list.Prev = loom.CutPage(p, rows, false, func(r nodeRow) []string {
		return []string{strconv.FormatInt(r.ClusterID, 10), strconv.Itoa(r.Number)}
	})
	list.Items = make([]loom.Node, len(rows))
	for i := range rows {
		if list.Items[i], err = rows[i].node(); err != nil {
			return NodeList{}, err
		}
	}
	return list, nil
}

const ownerOfNode = `
SELECT c.id, c.owner_id FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE n.tenant_id = $1 AND n.id::text = $2`

// OwnerOfNode finds the cluster of a node and who owns it; NotFound when the tenant
// has no such node.
func OwnerOfNode(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.NodeID) (loom.ClusterID, loom.Account, error) {
	var row struct {
		ID    int64  `db:"id"`
		Owner string `db:"owner_id"`
	}
	err := sqlx.GetContext(ctx, q, &row, ownerOfNode, tenant, id)
	return loom.ClusterID(row.ID), loom.Account{User: loom.UserID(row.Owner), Tenant: tenant}, wrap(err, "find the cluster of node %s", id)
}

// The newest entries of each node; the plans of the clusters are walked by the
// index of tasks by operation.
const nodesHistory = `
SELECT node_id, cluster_id, operation, task, attempt, service, action, status, stdout, stderr, started_at, ended_at FROM (
    SELECT t.node_id::text, o.cluster_id, o.number AS operation, t.number AS task, a.number AS attempt, t.service, t.action, a.status,
           a.stdout, a.stderr, a.started_at, a.ended_at,
           row_number() OVER (PARTITION BY t.node_id ORDER BY a.started_at DESC, t.id DESC, a.number DESC) AS age
    FROM operations o
    JOIN tasks t ON t.operation_id = o.id AND NOT t.gate
    JOIN attempts a ON a.task_id = t.id
    WHERE o.tenant_id = $1 AND o.cluster_id = ANY ($2) AND t.node_id = ANY ($3::uuid[])) newest
WHERE age <= $4 ORDER BY node_id, age DESC`

// AddNodeHistory fills in the history of nodes as NodeActions gives it.
func AddNodeHistory(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, nodes []loom.Node, limit int) error {
	if len(nodes) == 0 {
		return nil
	}
	place := make(map[string]int, len(nodes))
	ids := make([]string, len(nodes))
	var clusters []int64
	for i, n := range nodes {
		place[string(n.ID)], ids[i] = i, string(n.ID)
		if !slices.Contains(clusters, int64(n.Cluster)) {
			clusters = append(clusters, int64(n.Cluster))
		}
	}
	var rows []struct {
		nodeActionRow
		ClusterID int64 `db:"cluster_id"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, nodesHistory, tenant, pq.Array(clusters), pq.Array(ids), limit); err != nil {
		return wrap(err, "read the history of %d nodes", len(nodes))
	}
	for _, r := range rows {
		n := &nodes[place[r.NodeID]]
		n.Actions = append(n.Actions, r.action(loom.ClusterID(r.ClusterID)))
	}
	return nil
}

// ServicesOfClusters gives the copies of services that clusters hold.
func ServicesOfClusters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, clusters []loom.ClusterID) (map[loom.ClusterID]map[string]loom.Service, error) {
	var rows []struct {
		ID       int64  `db:"id"`
		Services []byte `db:"services"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `SELECT id, services FROM clusters WHERE tenant_id = $1 AND id = ANY ($2)`, tenant, pq.Array(clusters))
	if err != nil {
		return nil, wrap(err, "read the services of %d clusters", len(clusters))
	}
	all := make(map[loom.ClusterID]map[string]loom.Service, len(rows))
	for _, r := range rows {
		services := map[string]loom.Service{}
		if err := decodeExact(r.Services, &services); err != nil {
			return nil, fmt.Errorf("read the services of cluster %d: %w", r.ID, err)
		}
		all[loom.ClusterID(r.ID)] = services
	}
	return all, nil
}

// HeldNode is a node whose row is locked.
type HeldNode struct {
	loom.Node
	// Busy says that it holds a task; Lived that it has or had a machine.
	Busy, Lived bool
}

const lockNode = `
SELECT ` + nodeColumns + `, n.task_id IS NOT NULL AS busy,
       n.state NOT IN ('planned', 'deleted') OR n.incarnation > 1 OR n.results <> '{}'
       OR EXISTS (SELECT 1 FROM operations o JOIN tasks t ON t.operation_id = o.id WHERE o.cluster_id = n.cluster_id AND t.node_id = n.id) AS lived
FROM nodes n WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND n.id::text = $3 FOR UPDATE OF n`

// LockNode locks a node of a cluster that the caller holds. NotFound.
func LockNode(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, id loom.NodeID) (HeldNode, error) {
	var row struct {
		nodeRow
		Busy  bool `db:"busy"`
		Lived bool `db:"lived"`
	}
	if err := sqlx.GetContext(ctx, tx, &row, lockNode, tenant, int64(cluster), id); err != nil {
		return HeldNode{}, wrap(err, "lock node %s", id)
	}
	n, err := row.node()
	return HeldNode{n, row.Busy, row.Lived}, err
}

const insertNodeRecord = `
INSERT INTO nodes (id, cluster_id, tenant_id, number, state, leaving, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses)
SELECT $3, c.id, c.tenant_id, $4, 'deleted', true, $5, $6, $7, $8, $9, $10, $11, $12, $13
FROM clusters c WHERE c.tenant_id = $1 AND c.id = $2
ON CONFLICT DO NOTHING`

// InsertNodeRecord stores a node without a machine, which no operation touches, in
// a cluster that the caller holds. Conflict when its id or number is taken, perhaps
// by another tenant's node.
func InsertNodeRecord(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, n loom.Node) error {
	addresses, err := encodeAddresses(n)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, insertNodeRecord, tenant, int64(n.Cluster), n.ID, n.Number, n.Hostname, n.HardwareType, n.ImageType,
		n.Flavor, n.Image, n.SSHUser, textArray(n.Services), textArray(n.Automators), addresses)
	if err != nil {
		return wrap(err, "insert node %s", n.ID)
	}
	if done, err := result.RowsAffected(); err != nil || done == 0 {
		return &loom.Error{Kind: loom.Conflict, Message: "The id or the number of this node is taken; choose another one.", Err: err}
	}
	return nil
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

// DeleteNodeRecord removes a locked node.
func DeleteNodeRecord(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, id loom.NodeID) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND id = $3`, tenant, int64(cluster), id)
	return wrap(err, "remove node %s", id)
}

const nextNodeNumber = `
SELECT coalesce(max(number) + 1, $3) FROM nodes WHERE tenant_id = $1 AND cluster_id = $2`

// NextNodeNumber gives a number above those of all nodes that a cluster has had; who
// holds the cluster can rely on it.
func NextNodeNumber(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, nextNodeNumber, tenant, int64(cluster), loom.FirstNodeNumber)
	return n, wrap(err, "find a number for a node of cluster %s", cluster)
}

const nodesWritten = `
WITH c AS (UPDATE clusters SET revision = revision + 1 WHERE tenant_id = $1 AND id = $2 RETURNING id)
INSERT INTO node_changes (cluster_id, version) SELECT id, 1 FROM c
ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 1`

// NodesWritten makes previews of a held cluster stale and provisioners read its
// nodes again.
func NodesWritten(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID) error {
	_, err := tx.ExecContext(ctx, nodesWritten, tenant, int64(cluster))
	return wrap(err, "note that nodes of cluster %s changed", cluster)
}

// action gives an entry of a node's history. An attempt that was interrupted or
// aborted counts as failed.
func (r *nodeActionRow) action(cluster loom.ClusterID) loom.NodeAction {
	status := "failed"
	switch loom.AttemptStatus(r.Status) {
	case loom.AttemptRunning:
		status = "in_progress"
	case loom.AttemptComplete:
		status = "complete"
	case loom.AttemptFailed, loom.AttemptInterrupted, loom.AttemptAborted:
	}
	return loom.NodeAction{
		Task:    loom.TaskRef{Operation: loom.OperationRef{Cluster: cluster, Number: r.Operation}, Number: r.Task},
		Attempt: r.Attempt, Service: r.Service, Action: loom.TaskAction(r.Action), Status: status,
		Started: r.StartedAt, Ended: r.EndedAt.Time, Stdout: r.Stdout, Stderr: r.Stderr,
	}
}

func encodeAddresses(n loom.Node) ([]byte, error) {
	data, err := json.Marshal(orEmpty(n.Addresses))
	if err != nil {
		return nil, fmt.Errorf("encode the addresses of node %s: %w", n.ID, err)
	}
	return data, nil
}
