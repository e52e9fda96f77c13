package store

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

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

const searchNodes = `
SELECT n.id, n.hostname, coalesce(n.ipaddresses->>'access_v4', '') AS address, c.id AS cluster, c.name
FROM nodes n JOIN clusters c ON c.id = n.cluster_id
WHERE n.tenant_id = $1 AND ($2 = '' OR c.owner_id = $2) AND c.status <> 'terminated' AND n.state <> 'deleted'
  AND (%s OR %s)
ORDER BY n.hostname, n.id LIMIT $3`

// SearchNodes gives nodes of live clusters with a word in host name or address, of
// the clusters of one owner only when owner is not empty.
func SearchNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, owner loom.UserID, word string, limit int) ([]FoundNode, error) {
	var rows []struct {
		ID       string `db:"id"`
		Hostname string `db:"hostname"`
		Address  string `db:"address"`
		Cluster  int64  `db:"cluster"`
		Name     string `db:"name"`
	}
	b := binder{values: []any{tenant, owner, limit}}
	query := fmt.Sprintf(searchNodes, b.hostnameHas(word), b.addressHas(word))
	if err := sqlx.SelectContext(ctx, q, &rows, query, b.values...); err != nil {
		return nil, wrap(err, "search nodes")
	}
	found := make([]FoundNode, len(rows))
	for i, r := range rows {
		found[i] = FoundNode{ID: loom.NodeID(r.ID), Hostname: r.Hostname, Address: r.Address, Cluster: loom.ClusterID(r.Cluster), Name: r.Name}
	}
	return found, nil
}
