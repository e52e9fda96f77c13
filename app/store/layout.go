package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// NewLayout is what an operation makes of a cluster that is there. Each part may be
// empty: what it does not name stays.
type NewLayout struct {
	// Made are nodes without a row yet.
	Made []loom.Node
	// Changed are nodes that stay, with other services, types or settings. They are
	// not leaving any more, and count as planned where their machine is gone.
	Changed []loom.Node
	// Leaving are nodes on their way out; they keep what is on them until then.
	Leaving []loom.NodeID
	// Services replaces all copies of services of the cluster, unless nil.
	Services map[string]loom.Service
	// Types are entries of types that are new to the cluster, or others than before.
	Types loom.TypeSettings
}

const setClusterServices = `UPDATE clusters SET services = $3 WHERE tenant_id = $1 AND id = $2`

const addTypeSettings = `
UPDATE clusters SET type_settings = jsonb_build_object(
	'hardware', coalesce(nullif(type_settings->'hardware', 'null'), '{}') || $3::jsonb,
	'image', coalesce(nullif(type_settings->'image', 'null'), '{}') || $4::jsonb)
WHERE tenant_id = $1 AND id = $2`

const changeNodes = `
WITH held AS (
    SELECT n.id, r.hostname, r.hardwaretype, r.imagetype, r.flavor, r.image, r.sshuser, r.services, r.automators
    FROM jsonb_to_recordset($3) AS r(id uuid, hostname text, hardwaretype text, imagetype text, flavor text, image text, sshuser text,
                                     services jsonb, automators jsonb)
    JOIN nodes n ON n.id = r.id
    WHERE n.tenant_id = $1 AND n.cluster_id = $2 ORDER BY n.id FOR UPDATE OF n
)
UPDATE nodes n SET hardwaretype = h.hardwaretype, imagetype = h.imagetype, flavor = h.flavor, image = h.image, sshuser = h.sshuser,
       services = ARRAY(SELECT jsonb_array_elements_text(h.services)), automators = ARRAY(SELECT jsonb_array_elements_text(h.automators)),
       leaving = false, state = CASE WHEN n.state = 'deleted' THEN 'planned' ELSE n.state END
FROM held h WHERE n.id = h.id`

const leaveNodes = `
WITH held AS (
    SELECT id FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND id::text = ANY ($3) ORDER BY id FOR UPDATE
)
UPDATE nodes n SET leaving = true FROM held h WHERE n.id = h.id`

// SetLayout gives a cluster, whose lock the caller holds, the layout that an
// operation leads to. The cluster takes its next revision, and provisioners read
// its nodes again.
func SetLayout(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, l NewLayout) error {
	if l.Services != nil {
		if err := setServices(ctx, tx, tenant, cluster, l.Services); err != nil {
			return err
		}
	}
	if len(l.Types.Hardware)+len(l.Types.Image) > 0 {
		parts := make([][]byte, 2)
		for i, of := range []map[string]map[string]string{l.Types.Hardware, l.Types.Image} {
			if of == nil {
				of = map[string]map[string]string{}
			}
			var err error
			if parts[i], err = json.Marshal(of); err != nil {
				return fmt.Errorf("encode the types of cluster %s: %w", cluster, err)
			}
		}
		if _, err := tx.ExecContext(ctx, addTypeSettings, tenant, int64(cluster), parts[0], parts[1]); err != nil {
			return wrap(err, "store the types of cluster %s", cluster)
		}
	}
	if len(l.Made) > 0 {
		if err := InsertNodes(ctx, tx, tenant, cluster, l.Made); err != nil {
			return err
		}
	}
	if len(l.Changed) > 0 {
		data, err := encodeNodes(cluster, l.Changed)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, changeNodes, tenant, int64(cluster), data); err != nil {
			return wrap(err, "change %d nodes of cluster %s", len(l.Changed), cluster)
		}
	}
	if len(l.Leaving) > 0 {
		ids := make([]string, len(l.Leaving))
		for i, id := range l.Leaving {
			ids[i] = string(id)
		}
		if _, err := tx.ExecContext(ctx, leaveNodes, tenant, int64(cluster), pq.Array(ids)); err != nil {
			return wrap(err, "let %d nodes leave cluster %s", len(ids), cluster)
		}
	}
	return NodesWritten(ctx, tx, tenant, cluster)
}

func setServices(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, services map[string]loom.Service) error {
	data, err := json.Marshal(services)
	if err != nil {
		return fmt.Errorf("encode services of cluster %s: %w", cluster, err)
	}
	_, err = tx.ExecContext(ctx, setClusterServices, tenant, int64(cluster), data)
	return wrap(err, "store the services of cluster %s", cluster)
}

// encodeSnapshot gives what is stored of a layout, nil for none.
func encodeSnapshot(s *loom.Snapshot) (any, error) {
	if s == nil {
		return nil, nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a layout: %w", err)
	}
	return cleanJSON(data), nil
}

const snapshotBefore = `SELECT before FROM operations WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3`

// SnapshotBefore reads the layout before an operation; nil for a create and for
// operations of releases that did not keep it. NotFound.
func SnapshotBefore(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (*loom.Snapshot, error) {
	return readSnapshot(ctx, q, snapshotBefore, tenant, ref)
}

const snapshotStart = `SELECT start FROM operations WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3`

// SnapshotStart reads the layout at the start of an operation that mends another; nil
// for others. NotFound.
func SnapshotStart(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (*loom.Snapshot, error) {
	return readSnapshot(ctx, q, snapshotStart, tenant, ref)
}

func readSnapshot(ctx context.Context, q sqlx.ExtContext, query string, tenant loom.TenantID, ref loom.OperationRef) (*loom.Snapshot, error) {
	var data []byte
	if err := sqlx.GetContext(ctx, q, &data, query, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return nil, wrap(err, "read a layout of operation %s", ref)
	}
	if len(data) == 0 {
		return nil, nil
	}
	var s loom.Snapshot
	if err := decodeExact(data, &s); err != nil {
		return nil, fmt.Errorf("read a layout of operation %s: %w", ref, err)
	}
	return &s, nil
}

// Nodes that the operation was to make and that have no machine are gone for good.
const dropMade = `
WITH held AS (
    SELECT id FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND id::text <> ALL ($3) AND NOT (leaving AND state = 'deleted')
    ORDER BY id FOR UPDATE
)
UPDATE nodes n SET leaving = true, state = CASE WHEN coalesce(n.results->>'providerid', '') = '' THEN 'deleted' ELSE n.state END
FROM held h WHERE n.id = h.id`

// RestoreLayout gives a cluster, whose lock the caller holds, the nodes, services, config and
// copies of a layout that it had; what is known of machines stays.
func RestoreLayout(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, to loom.Snapshot) error {
	ids := make([]string, len(to.Nodes))
	for i, n := range to.Nodes {
		ids[i] = string(n.ID)
	}
	if _, err := tx.ExecContext(ctx, dropMade, tenant, int64(cluster), pq.Array(ids)); err != nil {
		return wrap(err, "drop the nodes that were to be made for cluster %s", cluster)
	}
	services := to.Services
	if services == nil {
		services = map[string]loom.Service{}
	}
	if err := SetClusterConfig(ctx, tx, tenant, cluster, to.Config); err != nil {
		return err
	}
	if to.Template != nil {
		if err := SetClusterTemplate(ctx, tx, tenant, cluster, *to.Template, nil); err != nil {
			return err
		}
	}
	var types loom.TypeSettings
	if to.Types != nil {
		types = *to.Types
	}
	// Those that were on their way out are so again.
	var leaving []loom.NodeID
	for _, n := range to.Nodes {
		if n.Leaving {
			leaving = append(leaving, n.ID)
		}
	}
	return SetLayout(ctx, tx, tenant, cluster, NewLayout{Changed: to.Nodes, Leaving: leaving, Services: services, Types: types})
}
