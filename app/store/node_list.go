package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// FoundNode is a node that a search found, with the cluster it belongs to.
type FoundNode struct {
	ID       loom.NodeID
	Hostname string
	Address  string
	Cluster  loom.ClusterID
	Name     string
}

var searchNodes = `
SELECT n.id, n.hostname, coalesce(n.ipaddresses->>'access_v4', '') AS address, c.id AS cluster, c.name
FROM nodes n JOIN clusters c ON c.id = n.cluster_id
WHERE n.tenant_id = $1 AND ` + seenBy("$2") + ` AND c.status <> 'terminated' AND n.state <> 'deleted'
  AND (%s OR %s)
ORDER BY n.hostname, n.id LIMIT $3`

// Of few letters there is no index and any number of nodes may have them. They are looked
// for once: for the nodes, $4 of which are looked at closer in the order of the answer, all
// with NULL; and for the newest clusters that have one, which are walked to, newest first
// (IS TRUE keeps the planner from a join, that looks up each of any number).
var searchFewLetters = `
WITH hits AS MATERIALIZED (
    SELECT s.node_id, s.cluster_id, s.hostname FROM searched_nodes s
    WHERE s.tenant_id = $1 AND (strpos(s.hostname, $5) > 0 OR strpos(s.addresses, $5) > 0)
      AND (` + viewing("$2") + ` = '' OR s.cluster_id IN (SELECT c.id FROM clusters c WHERE c.tenant_id = $1 AND ` + seenBy("$2") + `))
), closer AS MATERIALIZED (
    SELECT h.node_id FROM hits h ORDER BY h.hostname, h.node_id LIMIT $4
)
SELECT k.looked, k.clusters, coalesce(x.id::text, '') AS id, coalesce(x.hostname, '') AS hostname, coalesce(x.address, '') AS address,
	coalesce(x.cluster, 0) AS cluster, coalesce(x.name, '') AS name
FROM (SELECT (SELECT count(*) FROM closer) AS looked,
        ARRAY(SELECT c.id FROM clusters c WHERE c.tenant_id = $1 AND (c.id IN (SELECT h.cluster_id FROM hits h)) IS TRUE
              ORDER BY c.created_at DESC, c.id DESC LIMIT $6) AS clusters) k
LEFT JOIN (
    SELECT n.id, n.hostname, n.ipaddresses->>'access_v4' AS address, c.id AS cluster, c.name
    FROM closer h JOIN nodes n ON n.id = h.node_id JOIN clusters c ON c.id = n.cluster_id
    WHERE c.status <> 'terminated' AND n.state <> 'deleted'
    ORDER BY n.hostname, n.id LIMIT $3
) x ON true
ORDER BY x.hostname, x.id`

// lookCloser is how many nodes with few letters are looked at for each that is wanted:
// most that are there are alive.
const lookCloser = 10

type foundNodeRow struct {
	ID       string `db:"id"`
	Hostname string `db:"hostname"`
	Address  string `db:"address"`
	Cluster  int64  `db:"cluster"`
	Name     string `db:"name"`
	// Looked, of few letters, is how many were looked at, Clusters are those of all.
	Looked   int           `db:"looked"`
	Clusters pq.Int64Array `db:"clusters"`
}

func (r foundNodeRow) node() FoundNode {
	return FoundNode{ID: loom.NodeID(r.ID), Hostname: r.Hostname, Address: r.Address, Cluster: loom.ClusterID(r.Cluster), Name: r.Name}
}

// SearchNodes returns nodes with a word in host name or address, of the live clusters that a
// viewer sees; see SeenBy.
func SearchNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer Viewer, word string, limit int) ([]FoundNode, error) {
	if FewLetters(word) {
		nodes, _, err := SearchFewLetters(ctx, q, tenant, viewer, word, limit)
		return nodes, err
	}
	var rows []foundNodeRow
	b := binder{values: []any{tenant, viewer, limit}}
	query := fmt.Sprintf(searchNodes, b.hostnameHas(word), b.addressHas(word))
	if err := sqlx.SelectContext(ctx, q, &rows, query, b.values...); err != nil {
		return nil, wrap(err, "search nodes")
	}
	found := make([]FoundNode, len(rows))
	for i, r := range rows {
		found[i] = r.node()
	}
	return found, nil
}

// SearchFewLetters is SearchNodes for a word of which FewLetters is true. It also gives
// the newest clusters that have a node with it, alive or not, one more than limit at most,
// for ClusterFilter.OfNodes.
func SearchFewLetters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer Viewer, word string, limit int) ([]FoundNode, []loom.ClusterID, error) {
	var rows []foundNodeRow
	look := func(most any) error {
		rows = nil
		return wrap(sqlx.SelectContext(ctx, q, &rows, searchFewLetters, tenant, viewer, limit, most, word, limit+1), "search nodes by few letters")
	}
	if err := look(lookCloser * limit); err != nil {
		return nil, nil, err
	}
	alive := func() []FoundNode {
		var found []FoundNode
		for _, r := range rows {
			if r.ID != "" { // else it only has the rest
				found = append(found, r.node())
			}
		}
		return found
	}
	found := alive()
	if len(found) < limit && rows[0].Looked == lookCloser*limit {
		if err := look(nil); err != nil { // those behind may be alive
			return nil, nil, err
		}
		found = alive()
	}
	clusters := make([]loom.ClusterID, len(rows[0].Clusters))
	for i, id := range rows[0].Clusters {
		clusters[i] = loom.ClusterID(id)
	}
	return found, clusters, nil
}

// NodeOfTenant is a node that has a machine, as superadmins see it: where the machine is.
type NodeOfTenant struct {
	Node        loom.NodeID
	Hostname    string
	State       loom.NodeState
	Cluster     loom.ClusterID
	ClusterName string
	Owner       loom.UserID
	// Provider is the name of the provider, Machine what it calls the machine; "" where
	// nobody knows it yet.
	Provider, Machine string
	Created           time.Time
}

// Leans on nodes_tenant. Nodes of terminated clusters are those whose machines were given
// up: they may go on at the provider.
var nodeOfTenantKeyset = keyset{
	columns: `n.id, n.hostname, n.state, n.cluster_id, c.name AS cluster_name, c.owner_id, c.provider_name, coalesce(n.results->>'providerid', '') AS machine, c.created_at`,
	from:    "nodes n JOIN clusters c ON c.id = n.cluster_id", id: "n.id", idKind: "uuid",
	sorts: map[string]sortColumn{"cluster": {"n.cluster_id", "n.cluster_id::text", "bigint"}},
}

type nodeOfTenantRow struct {
	pageKeys
	ID          string    `db:"id"`
	Hostname    string    `db:"hostname"`
	State       string    `db:"state"`
	Cluster     int64     `db:"cluster_id"`
	ClusterName string    `db:"cluster_name"`
	Owner       string    `db:"owner_id"`
	Provider    string    `db:"provider_name"`
	Machine     string    `db:"machine"`
	Created     time.Time `db:"created_at"`
}

// LiveNodesOfTenant reads a page of the nodes of a tenant that have a machine, are getting
// or losing one, by cluster. Invalid for a cursor of another list.
func LiveNodesOfTenant(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, p loom.Page) (found []NodeOfTenant, next, prev string, err error) {
	var b binder
	conditions := []string{"n.tenant_id = " + b.add(tenant), "n.state NOT IN ('planned', 'deleted')"}
	rows, next, prev, err := readKeyset[nodeOfTenantRow](ctx, q, nodeOfTenantKeyset, conditions, &b, tenant, p, "cluster")
	if err != nil {
		return nil, "", "", err
	}
	for _, r := range rows {
		found = append(found, NodeOfTenant{Node: loom.NodeID(r.ID), Hostname: r.Hostname, State: loom.NodeState(r.State), Cluster: loom.ClusterID(r.Cluster), ClusterName: r.ClusterName,
			Owner: loom.UserID(r.Owner), Provider: r.Provider, Machine: r.Machine, Created: r.Created})
	}
	return found, next, prev, nil
}

// NodeList is a page of nodes. Next and Prev are cursors, empty at the ends.
type NodeList struct {
	Items      []loom.Node
	Next, Prev string
}

var nodesSeen = `
SELECT ` + nodeColumns + `
FROM nodes n JOIN clusters c ON c.id = n.cluster_id
WHERE n.tenant_id = $1 AND ` + seenBy("$2") + ` AND ($3 OR (n.cluster_id, n.number) %[1]s ($4, $5))
ORDER BY n.cluster_id %[2]s, n.number %[2]s`

// NodesByTenant reads a page of the nodes of those clusters of a tenant that a viewer
// sees, by cluster and number, without their history; see SeenBy. Invalid for an unknown
// sort and for a cursor of another list.
func NodesByTenant(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer Viewer, p loom.Page) (NodeList, error) {
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
