package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// NewCluster is a cluster to insert. Created, Expires and Revision of the
// cluster are ignored: the database clock and LeaseMillis (0: never expires)
// give them.
type NewCluster struct {
	loom.Cluster
	LeaseMillis int64
}

type clusterRow struct {
	ID              int64        `db:"id"`
	TenantID        string       `db:"tenant_id"`
	OwnerID         string       `db:"owner_id"`
	Name            string       `db:"name"`
	Description     string       `db:"description"`
	Status          string       `db:"status"`
	Template        []byte       `db:"template"`
	Provider        []byte       `db:"provider"`
	ProviderFields  []byte       `db:"provider_fields"`
	Services        []byte       `db:"services"`
	Types           []byte       `db:"type_settings"`
	Config          []byte       `db:"config"`
	Labels          []byte       `db:"labels"`
	Repair          []byte       `db:"repair"`
	DNSSuffix       string       `db:"dns_suffix"`
	Protected       bool         `db:"protected"`
	Revision        int          `db:"revision"`
	LatestOperation int          `db:"latest_operation"`
	DeleteWanted    string       `db:"delete_wanted_by"`
	CreatedAt       time.Time    `db:"created_at"`
	ExpiresAt       sql.NullTime `db:"expires_at"`
}

func (r *clusterRow) cluster() (loom.Cluster, error) {
	c := loom.Cluster{
		ID: loom.ClusterID(r.ID), Name: r.Name, Description: r.Description,
		Owner:  loom.Account{User: loom.UserID(r.OwnerID), Tenant: loom.TenantID(r.TenantID)},
		Status: loom.ClusterStatus(r.Status), Created: r.CreatedAt, Expires: r.ExpiresAt.Time,
		DNSSuffix: r.DNSSuffix, Protected: r.Protected, Revision: r.Revision, LatestOperation: r.LatestOperation,
		DeleteWanted: loom.UserID(r.DeleteWanted),
	}
	for _, part := range []struct {
		name string
		data []byte
		into any
	}{
		{"template", r.Template, &c.Template}, {"provider", r.Provider, &c.Provider}, {"provider fields", r.ProviderFields, &c.ProviderFields}, {"services", r.Services, &c.Services}, {"types", r.Types, &c.Types},
		{"config", r.Config, &c.Config}, {"labels", r.Labels, &c.Labels}, {"repair policy", r.Repair, &c.Repair},
	} {
		if err := decodeExact(part.data, part.into); err != nil {
			return loom.Cluster{}, fmt.Errorf("read the %s of cluster %s: %w", part.name, c.ID, err)
		}
	}
	return c, nil
}

// decodeExact decodes JSON and keeps numbers of free-form values as written.
func decodeExact(data []byte, into any) error {
	if string(data) == "{}" { // many are empty, and a decoder is not cheap
		return json.Unmarshal(data, into)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// ReserveClusterID takes the next cluster number. A number whose cluster never
// comes to be leaves a gap.
func ReserveClusterID(ctx context.Context, q sqlx.ExtContext) (loom.ClusterID, error) {
	var id int64
	err := sqlx.GetContext(ctx, q, &id, `SELECT nextval(pg_get_serial_sequence('clusters', 'id'))`)
	return loom.ClusterID(id), wrap(err, "reserve a cluster number")
}

const insertCluster = `
INSERT INTO clusters (id, tenant_id, owner_id, name, description, status, template_name, template_version, template,
                      provider_name, provider_fields, services, type_settings, config, labels, dns_suffix, protected, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
        CASE WHEN $18::bigint > 0 THEN now() + make_interval(secs => $18::float8 / 1000) END)
RETURNING created_at, expires_at, revision`

// InsertCluster inserts a cluster under its reserved number and gives it with
// the times the database set. Conflict when the number is taken.
func InsertCluster(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, n NewCluster) (loom.Cluster, error) {
	c := n.Cluster
	parts := make([][]byte, 6)
	for i, v := range []any{c.Template, orEmpty(c.ProviderFields), c.Services, c.Types, orEmpty(c.Config), orEmpty(c.Labels)} {
		data, err := json.Marshal(v)
		if err != nil {
			return loom.Cluster{}, fmt.Errorf("encode cluster %s: %w", c.ID, err)
		}
		parts[i] = data
	}
	var row clusterRow
	err := tx.QueryRowxContext(ctx, insertCluster, int64(c.ID), tenant, c.Owner.User, c.Name, c.Description, c.Status,
		c.Template.Name, c.Template.Version, parts[0], c.Provider.Name, parts[1], parts[2], parts[3], parts[4], parts[5],
		c.DNSSuffix, c.Protected, n.LeaseMillis).Scan(&row.CreatedAt, &row.ExpiresAt, &row.Revision)
	if err != nil {
		return loom.Cluster{}, wrap(err, "insert cluster %s", c.ID)
	}
	c.Created, c.Expires, c.Revision = row.CreatedAt, row.ExpiresAt.Time, row.Revision
	return c, nil
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

const clusterColumns = `id, tenant_id, owner_id, name, description, status, template,
       loom_provider(tenant_id, provider_name, provider_fields) AS provider, provider_fields, services, type_settings, config, labels,
       dns_suffix, protected, repair, revision, latest_operation, delete_wanted_by, created_at, expires_at`

const clusterByID = `SELECT ` + clusterColumns + ` FROM clusters WHERE tenant_id = $1 AND id = $2`

// ClusterByID reads a cluster; NotFound when the tenant has none of that number.
func ClusterByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) (loom.Cluster, error) {
	return oneCluster(ctx, q, clusterByID, tenant, id)
}

const clustersByIDs = `SELECT ` + clusterColumns + ` FROM clusters WHERE tenant_id = $1 AND id = ANY ($2) ORDER BY id`

// ClustersByIDs reads clusters by id; those that the tenant does not have are left out.
func ClustersByIDs(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ids []loom.ClusterID) ([]loom.Cluster, error) {
	var rows []clusterRow
	if err := sqlx.SelectContext(ctx, q, &rows, clustersByIDs, tenant, idArray(ids)); err != nil {
		return nil, wrap(err, "read %d clusters", len(ids))
	}
	clusters := make([]loom.Cluster, len(rows))
	for i := range rows {
		var err error
		if clusters[i], err = rows[i].cluster(); err != nil {
			return nil, err
		}
	}
	return clusters, nil
}

// LockCluster reads a cluster and locks its row until the transaction ends, so
// that no second operation starts. NotFound as ClusterByID.
func LockCluster(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID) (loom.Cluster, error) {
	return oneCluster(ctx, tx, clusterByID+` FOR NO KEY UPDATE`, tenant, id)
}

func oneCluster(ctx context.Context, q sqlx.ExtContext, query string, tenant loom.TenantID, id loom.ClusterID) (loom.Cluster, error) {
	var row clusterRow
	if err := sqlx.GetContext(ctx, q, &row, query, tenant, int64(id)); err != nil {
		return loom.Cluster{}, wrap(err, "read cluster %s", id)
	}
	return row.cluster()
}

const clusterObject = `SELECT owner_id, template_name FROM clusters WHERE tenant_id = $1 AND id = $2`

// ClusterObject reads all that a check of rights needs of a cluster. NotFound.
func ClusterObject(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) (loom.Object, error) {
	var row struct {
		Owner    loom.UserID `db:"owner_id"`
		Template string      `db:"template_name"`
	}
	err := sqlx.GetContext(ctx, q, &row, clusterObject, tenant, int64(id))
	return loom.Object{Tenant: tenant, Owner: row.Owner, Template: row.Template, Cluster: id}, wrap(err, "read the owner of cluster %s", id)
}

const setClusterStatus = `
UPDATE clusters SET status = $3, revision = revision + 1 WHERE tenant_id = $1 AND id = $2`

// SetClusterStatus stores a status; the caller holds the cluster's lock and
// knows that the transition is allowed.
func SetClusterStatus(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, status loom.ClusterStatus) error {
	_, err := tx.ExecContext(ctx, setClusterStatus, tenant, int64(id), status)
	return wrap(err, "set the status of cluster %s", id)
}

const addProviderFields = `UPDATE clusters SET provider_fields = provider_fields || $3 WHERE tenant_id = $1 AND id = $2`

// AddProviderFields lays more of the cluster's own provider fields over those it has.
// Sensitive ones are not among them.
func AddProviderFields(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, fields map[string]any) error {
	body, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode the provider fields of cluster %s: %w", id, err)
	}
	_, err = tx.ExecContext(ctx, addProviderFields, tenant, int64(id), body)
	return wrap(err, "store the provider fields of cluster %s", id)
}

const updateCluster = `
UPDATE clusters SET description = $3, labels = $4, protected = $5, expires_at = $6, owner_id = $7, repair = $8, revision = revision + 1,
       delete_wanted_by = CASE WHEN $5 THEN '' ELSE delete_wanted_by END
WHERE tenant_id = $1 AND id = $2 RETURNING revision`

// UpdateCluster stores what changes without an operation: description, labels,
// owner, repair policy, the end of the lease, and protection, which takes back a wish to delete.
// It gives the new revision.
func UpdateCluster(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, c loom.Cluster) (int, error) {
	labels, err := json.Marshal(orEmpty(c.Labels))
	if err != nil {
		return 0, fmt.Errorf("encode the labels of cluster %s: %w", c.ID, err)
	}
	policy, err := json.Marshal(c.Repair)
	if err != nil {
		return 0, fmt.Errorf("encode the repair policy of cluster %s: %w", c.ID, err)
	}
	var revision int
	err = sqlx.GetContext(ctx, tx, &revision, updateCluster, tenant, int64(c.ID), c.Description, labels, c.Protected,
		sql.NullTime{Time: c.Expires, Valid: !c.Expires.IsZero()}, c.Owner.User, policy)
	return revision, wrap(err, "update cluster %s", c.ID)
}

// EntryVersion names a version of a catalog entry.
type EntryVersion struct {
	Kind    loom.EntityKind `db:"kind" json:"kind"`
	Name    string          `db:"name" json:"name"`
	Version int             `db:"version" json:"version"`
	// Unreleased is set for one that was not released when it was read.
	Unreleased bool `db:"unreleased" json:"unreleased,omitempty"`
}

const missingVersions = `
SELECT w.kind, w.name, w.version FROM unnest($2::text[], $3::text[], $4::int[], $5::boolean[]) AS w(kind, name, version, unreleased)
WHERE NOT EXISTS (SELECT FROM catalog_versions v WHERE v.tenant_id = $1 AND v.kind = w.kind AND v.name = w.name AND v.version = w.version
    AND (v.released OR w.unreleased))`

// MissingVersions returns those of the versions that were deleted or withdrawn.
func MissingVersions(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, named []EntryVersion) ([]EntryVersion, error) {
	kinds, names, versions := columnsOf(named)
	var unreleased []bool
	for _, n := range named {
		unreleased = append(unreleased, n.Unreleased)
	}
	var gone []EntryVersion
	err := sqlx.SelectContext(ctx, q, &gone, missingVersions, tenant, pq.Array(kinds), pq.Array(names), pq.Array(versions), pq.Array(unreleased))
	return gone, wrap(err, "look for %d versions of catalog entries", len(named))
}

// VersionState is what became of a version of a catalog entry.
type VersionState struct {
	EntryVersion
	// Newest is the newest released version, 0 where there is none.
	Newest int `db:"newest"`
	// Deprecation is the message of the version, "" for none.
	Deprecation string `db:"deprecation"`
}

// ClusterRollout is the rollout that will change a cluster or changes it, 0 for none.
type ClusterRollout struct {
	Number int `db:"rollout"`
	// Wave is that of the cluster.
	Wave   int                       `db:"wave"`
	Status loom.RolloutClusterStatus `db:"rollout_status"`
	// Stopped says that it stopped, and begins nothing before it is resumed.
	Stopped bool `db:"stopped"`
}

const clusterNotices = `
SELECT w.kind, w.name, w.version, coalesce(max(v.version) FILTER (WHERE v.released), 0) AS newest,
       coalesce(max(v.deprecation) FILTER (WHERE v.version = w.version), '') AS deprecation,
       coalesce(r.number, 0) AS rollout, coalesce(r.wave, 0) AS wave, coalesce(r.status, '') AS rollout_status, coalesce(r.stopped, false) AS stopped
FROM unnest($3::text[], $4::text[], $5::int[]) WITH ORDINALITY AS w(kind, name, version, place)
LEFT JOIN catalog_versions v ON v.tenant_id = $1 AND v.kind = w.kind AND v.name = w.name
LEFT JOIN (
    SELECT r.number, rc.wave, rc.status, r.status = 'stopped' AS stopped FROM rollout_clusters rc JOIN rollouts r ON r.id = rc.rollout_id
    WHERE rc.tenant_id = $1 AND rc.cluster_id = $2 AND rc.status IN ('waiting', 'running') AND r.status <> 'ready'
) r ON true
GROUP BY w.place, w.kind, w.name, w.version, r.number, r.wave, r.status, r.stopped ORDER BY w.place`

// ClusterNotices reads what the owner of a cluster is to know: what became of the versions that
// it is made of, in the order given, of which there is at least one; and the rollout that will
// change it, once that was started.
func ClusterNotices(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID, named []EntryVersion) ([]VersionState, ClusterRollout, error) {
	kinds, names, versions := columnsOf(named)
	var rows []struct {
		VersionState
		ClusterRollout
	}
	if err := sqlx.SelectContext(ctx, q, &rows, clusterNotices, tenant, int64(id), pq.Array(kinds), pq.Array(names), pq.Array(versions)); err != nil {
		return nil, ClusterRollout{}, wrap(err, "read what became of %d versions, and the rollout of cluster %s", len(named), id)
	}
	var rollout ClusterRollout
	states := make([]VersionState, len(rows))
	for i, row := range rows {
		states[i], rollout = row.VersionState, row.ClusterRollout
	}
	return states, rollout, nil
}

func columnsOf(named []EntryVersion) (kinds, names []string, versions []int64) {
	for _, n := range named {
		kinds, names, versions = append(kinds, string(n.Kind)), append(names, n.Name), append(versions, int64(n.Version))
	}
	return kinds, names, versions
}

const newestVersions = `
SELECT w.kind, w.name, coalesce((SELECT max(v.version) FROM catalog_versions v
        WHERE v.tenant_id = w.tenant_id AND v.kind = w.kind AND v.name = w.name AND v.released), 0) AS version
FROM unnest($1::text[], $2::text[], $3::text[]) AS w(tenant_id, kind, name)`

// NewestVersions reads the newest released version numbers of the named entries, 0 for
// one that is gone. Plugin types are looked up where they are global.
func NewestVersions(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, named []EntryVersion) ([]EntryVersion, error) {
	var tenants, kinds, names []string
	for _, n := range named {
		owner := tenant
		if n.Kind == loom.KindProviderType || n.Kind == loom.KindAutomatorType {
			owner = loom.SuperTenant
		}
		tenants, kinds, names = append(tenants, string(owner)), append(kinds, string(n.Kind)), append(names, n.Name)
	}
	var versions []EntryVersion
	err := sqlx.SelectContext(ctx, q, &versions, newestVersions, pq.Array(tenants), pq.Array(kinds), pq.Array(names))
	return versions, wrap(err, "read versions of %d catalog entries", len(named))
}
