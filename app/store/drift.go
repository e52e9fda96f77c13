package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// ServiceFiles are the sums that those of the files of a service on a node are compared with.
// Configured says that the service was configured since.
type ServiceFiles struct {
	Node       loom.NodeID
	Service    string
	SeenAt     time.Time
	Sums       loom.FileSums
	Configured bool
}

// A service without CONFIGURE is set up by START as well.
const filesOfNodes = `
SELECT f.node_id, f.service, f.sums, EXISTS (
    SELECT FROM operations o JOIN tasks t ON t.operation_id = o.id AND t.node_id = f.node_id AND t.service = f.service
    WHERE o.cluster_id = n.cluster_id AND (o.ended_at IS NULL OR o.ended_at > f.seen_at) AND t.status = 'complete' AND t.ended_at > f.seen_at
      AND (t.action IN ('install', 'initialize', 'configure') OR t.action = 'start' AND NOT coalesce(c.services->f.service->'provisioner'->'actions' ? 'configure', false))) AS configured
FROM node_files f JOIN nodes n ON n.id = f.node_id JOIN clusters c ON c.id = n.cluster_id
WHERE f.node_id = ANY($1::uuid[])`

// FilesOfNodes reads what the files of services on nodes whose health is locked are compared
// with, by node and service.
func FilesOfNodes(ctx context.Context, tx *sqlx.Tx, nodes []loom.NodeID) (map[loom.NodeID]map[string]ServiceFiles, error) {
	var rows []struct {
		Node       loom.NodeID `db:"node_id"`
		Service    string      `db:"service"`
		Sums       []byte      `db:"sums"`
		Configured bool        `db:"configured"`
	}
	if err := tx.SelectContext(ctx, &rows, filesOfNodes, pq.Array(nodes)); err != nil {
		return nil, wrap(err, "read the sums of files of %d nodes", len(nodes))
	}
	of := map[loom.NodeID]map[string]ServiceFiles{}
	for _, r := range rows {
		f := ServiceFiles{Node: r.Node, Service: r.Service, Configured: r.Configured}
		if err := decodeExact(r.Sums, &f.Sums); err != nil {
			return nil, fmt.Errorf("read the sums of files of node %s: %w", r.Node, err)
		}
		if of[r.Node] == nil {
			of[r.Node] = map[string]ServiceFiles{}
		}
		of[r.Node][r.Service] = f
	}
	return of, nil
}

const putFiles = `
INSERT INTO node_files (node_id, service, seen_at, sums)
SELECT * FROM jsonb_to_recordset($1) AS x (node_id uuid, service text, seen_at timestamptz, sums jsonb)
ON CONFLICT (node_id, service) DO UPDATE SET seen_at = excluded.seen_at, sums = excluded.sums`

// PutFiles records what files are compared with from now on, of nodes whose health is locked.
func PutFiles(ctx context.Context, tx *sqlx.Tx, files []ServiceFiles) error {
	type record struct {
		Node    loom.NodeID   `json:"node_id"`
		Service string        `json:"service"`
		SeenAt  time.Time     `json:"seen_at"`
		Sums    loom.FileSums `json:"sums"`
	}
	records := make([]record, len(files))
	for i, f := range files {
		records[i] = record{f.Node, f.Service, f.SeenAt, f.Sums}
	}
	data, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode sums of files: %w", err)
	}
	_, err = tx.ExecContext(ctx, putFiles, data)
	return wrap(err, "record the sums of files of %d services", len(files))
}
