package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
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
