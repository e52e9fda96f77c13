package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type nodeRow struct {
	ID            string         `db:"id"`
	ClusterID     int64          `db:"cluster_id"`
	Number        int            `db:"number"`
	Incarnation   int            `db:"incarnation"`
	State         string         `db:"state"`
	Leaving       bool           `db:"leaving"`
	Hostname      string         `db:"hostname"`
	HardwareType  string         `db:"hardwaretype"`
	ImageType     string         `db:"imagetype"`
	Flavor        string         `db:"flavor"`
	Image         string         `db:"image"`
	SSHUser       string         `db:"sshuser"`
	Services      pq.StringArray `db:"services"`
	Automators    pq.StringArray `db:"automators"`
	IPAddresses   []byte         `db:"ipaddresses"`
	Results       []byte         `db:"results"`
	ServiceStates []byte         `db:"service_states"`
}

func (r *nodeRow) node() (loom.Node, error) {
	n := loom.Node{
		ID: loom.NodeID(r.ID), Cluster: loom.ClusterID(r.ClusterID), Number: r.Number, Incarnation: r.Incarnation,
		State: loom.NodeState(r.State), Leaving: r.Leaving, Hostname: r.Hostname, HardwareType: r.HardwareType, ImageType: r.ImageType,
		Flavor: r.Flavor, Image: r.Image, SSHUser: r.SSHUser, Services: r.Services, Automators: r.Automators,
	}
	err := errors.Join(decodeTexts(r.IPAddresses, &n.Addresses), decodeExact(r.Results, &n.Results), decodeTexts(r.ServiceStates, &n.ServiceStates))
	if err != nil {
		return loom.Node{}, fmt.Errorf("read node %s: %w", r.ID, err)
	}
	return n, nil
}

// decodeTexts decodes an object of texts. A cluster may have thousands of nodes with
// two of them each, so that plain ones are read without a decoder.
func decodeTexts[V ~string](data []byte, into *map[string]V) error {
	rest, ok := bytes.CutPrefix(data, []byte("{"))
	if !ok || bytes.ContainsRune(data, '\\') {
		return decodeExact(data, into)
	}
	found := map[string]V{}
	for {
		var text [2]string
		for i, before := range []string{`"`, `: "`} {
			end := -1
			if rest, ok = bytes.CutPrefix(rest, []byte(before)); ok {
				end = bytes.IndexByte(rest, '"')
			}
			if end < 0 {
				return decodeExact(data, into) // empty, or not as the database writes it
			}
			text[i], rest = string(rest[:end]), rest[end+1:]
		}
		found[text[0]] = V(text[1])
		if string(rest) == "}" {
			*into = found
			return nil
		}
		if rest, ok = bytes.CutPrefix(rest, []byte(", ")); !ok {
			return decodeExact(data, into)
		}
	}
}

const insertNodes = `
INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
SELECT n.id, $2, $1, n.number, n.hostname, n.hardwaretype, n.imagetype, n.flavor, n.image, n.sshuser,
       ARRAY(SELECT jsonb_array_elements_text(n.services)), ARRAY(SELECT jsonb_array_elements_text(n.automators))
FROM jsonb_to_recordset($3) AS n(id uuid, number int, hostname text, hardwaretype text, imagetype text, flavor text, image text,
                                 sshuser text, services jsonb, automators jsonb)
ORDER BY n.number`

// InsertNodes inserts planned nodes of a cluster, in one statement.
func InsertNodes(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.Node) error {
	data, err := encodeNodes(cluster, nodes)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, insertNodes, tenant, int64(cluster), data)
	return wrap(err, "insert %d nodes of cluster %s", len(nodes), cluster)
}

// encodeNodes gives what is stored of planned nodes, for jsonb_to_recordset.
func encodeNodes(cluster loom.ClusterID, nodes []loom.Node) ([]byte, error) {
	type record struct {
		ID           loom.NodeID `json:"id"`
		Number       int         `json:"number"`
		Hostname     string      `json:"hostname"`
		HardwareType string      `json:"hardwaretype"`
		ImageType    string      `json:"imagetype"`
		Flavor       string      `json:"flavor"`
		Image        string      `json:"image"`
		SSHUser      string      `json:"sshuser"`
		Services     []string    `json:"services"`
		Automators   []string    `json:"automators"`
	}
	records := make([]record, len(nodes))
	for i, n := range nodes {
		records[i] = record{
			ID: n.ID, Number: n.Number, Hostname: n.Hostname, HardwareType: n.HardwareType, ImageType: n.ImageType,
			Flavor: n.Flavor, Image: n.Image, SSHUser: n.SSHUser,
			Services: append([]string{}, n.Services...), Automators: append([]string{}, n.Automators...),
		}
	}
	data, err := json.Marshal(records)
	if err != nil {
		return nil, fmt.Errorf("encode nodes of cluster %s: %w", cluster, err)
	}
	return data, nil
}

const (
	nodesByCluster = `
SELECT id, cluster_id, number, incarnation, state, leaving, hostname, hardwaretype, imagetype, flavor, image, sshuser,
       services, automators, ipaddresses, results, service_states
FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 ORDER BY number`
	nodesBriefly = `
SELECT id, cluster_id, number, incarnation, state, leaving, hostname, hardwaretype, imagetype, flavor, image, sshuser,
       services, automators, ipaddresses,
       jsonb_strip_nulls(jsonb_build_object('ssh_keys', results->'ssh_keys', 'ssh_port', results->'ssh_port',
           'ssh-auth', CASE WHEN results->'ssh-auth' ? 'user' THEN jsonb_build_object('user', results->'ssh-auth'->'user') END)), service_states
FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 ORDER BY number`
	nodesByClusters = `
SELECT id, cluster_id, number, incarnation, state, leaving, hostname, hardwaretype, imagetype, flavor, image, sshuser,
       services, automators, ipaddresses, '{}'::jsonb, service_states
FROM nodes WHERE tenant_id = $1 AND cluster_id = ANY ($2) AND state <> 'deleted' ORDER BY cluster_id, number`
	nodeByID = `
SELECT id, cluster_id, number, incarnation, state, leaving, hostname, hardwaretype, imagetype, flavor, image, sshuser,
       services, automators, ipaddresses, results, service_states
FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND id = $3::uuid`
)

// NodesByCluster reads the nodes of a cluster by number, without their history.
func NodesByCluster(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) ([]loom.Node, error) {
	return readNodes(ctx, q, cluster, nodesByCluster, tenant, int64(cluster))
}

// NodesBriefly reads the nodes of a cluster by number, without their history. Of what tasks
// learned of them, which of many nodes is most of the work, it gives only how they are
// signed in to.
func NodesBriefly(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) ([]loom.Node, error) {
	return readNodes(ctx, q, cluster, nodesBriefly, tenant, int64(cluster))
}

// NodesByClusters reads the nodes of clusters that have or may have a machine, by number, without
// history and facts.
func NodesByClusters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, clusters []loom.ClusterID) (map[loom.ClusterID][]loom.Node, error) {
	all, err := readNodes(ctx, q, 0, nodesByClusters, tenant, idArray(clusters))
	if err != nil {
		return nil, err
	}
	nodes := make(map[loom.ClusterID][]loom.Node, len(clusters))
	for _, n := range all {
		nodes[n.Cluster] = append(nodes[n.Cluster], n)
	}
	return nodes, nil
}

// NodeByID reads one node of a cluster; NotFound when the cluster has none of
// that id.
func NodeByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, id loom.NodeID) (loom.Node, error) {
	var nodes []loom.Node
	var err error
	if isUUID(string(id)) && strings.ToLower(string(id)) == string(id) {
		nodes, err = readNodes(ctx, q, cluster, nodeByID, tenant, int64(cluster), id)
	}
	if err == nil && len(nodes) != 1 {
		err = wrap(sql.ErrNoRows, "read node %s of cluster %s", id, cluster)
	}
	if err != nil {
		return loom.Node{}, err
	}
	return nodes[0], nil
}

func readNodes(ctx context.Context, q sqlx.ExtContext, cluster loom.ClusterID, query string, args ...any) ([]loom.Node, error) {
	rows, err := q.QueryxContext(ctx, query, args...)
	if err != nil {
		return nil, wrap(err, "read the nodes of cluster %s", cluster)
	}
	defer rows.Close()
	// Thousands of rows: finding the fields by their names takes as long as reading them.
	nodes := []loom.Node{}
	for rows.Next() {
		var r nodeRow
		err := rows.Scan(&r.ID, &r.ClusterID, &r.Number, &r.Incarnation, &r.State, &r.Leaving, &r.Hostname, &r.HardwareType, &r.ImageType, &r.Flavor, &r.Image,
			&r.SSHUser, &r.Services, &r.Automators, &r.IPAddresses, &r.Results, &r.ServiceStates)
		if err != nil {
			return nil, wrap(err, "read the nodes of cluster %s", cluster)
		}
		n, err := r.node()
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, wrap(rows.Err(), "read the nodes of cluster %s", cluster)
}

type nodeActionRow struct {
	NodeID    string       `db:"node_id"`
	Operation int          `db:"operation"`
	Task      int          `db:"task"`
	Attempt   int          `db:"attempt"`
	Service   string       `db:"service"`
	Action    string       `db:"action"`
	Status    string       `db:"status"`
	Stdout    string       `db:"stdout"`
	Stderr    string       `db:"stderr"`
	StartedAt time.Time    `db:"started_at"`
	EndedAt   sql.NullTime `db:"ended_at"`
}

// The newest entries of each node, by the index of tasks by operation; the
// oldest of them comes first.
const nodeActions = `
SELECT node_id, operation, task, attempt, service, action, status, stdout, stderr, started_at, ended_at FROM (
    SELECT t.node_id::text, o.number AS operation, t.number AS task, a.number AS attempt, t.service, t.action, a.status,
           a.stdout, a.stderr, a.started_at, a.ended_at,
           row_number() OVER (PARTITION BY t.node_id ORDER BY a.started_at DESC, t.id DESC, a.number DESC) AS age
    FROM operations o
    JOIN tasks t ON t.operation_id = o.id AND NOT t.gate
    JOIN attempts a ON a.task_id = t.id
    WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND ($3 = '' OR t.node_id = nullif($3, '')::uuid)) newest
WHERE age <= $4 ORDER BY node_id, age DESC`

// NodeActions reads the history of the nodes of a cluster, or of one node that there is:
// one entry per attempt, oldest first, at most limit per node. An attempt that
// was interrupted or aborted counts as failed.
func NodeActions(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, node loom.NodeID, limit int) (map[loom.NodeID][]loom.NodeAction, error) {
	var rows []nodeActionRow
	if err := sqlx.SelectContext(ctx, q, &rows, nodeActions, tenant, int64(cluster), node, limit); err != nil {
		return nil, wrap(err, "read the history of nodes of cluster %s", cluster)
	}
	history := map[loom.NodeID][]loom.NodeAction{}
	for _, r := range rows {
		id := loom.NodeID(r.NodeID)
		history[id] = append(history[id], r.action(cluster))
	}
	return history, nil
}

const nodeColumns = `n.id, n.cluster_id, n.number, n.incarnation, n.state, n.leaving, n.hostname, n.hardwaretype, n.imagetype, n.flavor, n.image, n.sshuser,
       n.services, n.automators, n.ipaddresses, n.results, n.service_states`

const clusterOfNode = `
SELECT c.id, c.owner_id, c.template_name FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE n.tenant_id = $1 AND n.id::text = $2`

// ClusterOfNode finds the cluster of a node with all that a check of rights needs; NotFound
// when the tenant has no such node.
func ClusterOfNode(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.NodeID) (loom.Object, error) {
	var row struct {
		ID       int64       `db:"id"`
		Owner    loom.UserID `db:"owner_id"`
		Template string      `db:"template_name"`
	}
	err := sqlx.GetContext(ctx, q, &row, clusterOfNode, tenant, id)
	return loom.Object{Tenant: tenant, Owner: row.Owner, Template: row.Template, Cluster: loom.ClusterID(row.ID)}, wrap(err, "find the cluster of node %s", id)
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
