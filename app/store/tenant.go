package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type tenantRow struct {
	ID          string `db:"id"`
	Name        string `db:"name"`
	Description string `db:"description"`
	Workers     int    `db:"workers"`
	MaxClusters int    `db:"max_clusters"`
	MaxNodes    int    `db:"max_nodes"`
	ResourceSet int    `db:"resource_set"`
	permitsRow
	CreatedAt time.Time `db:"created_at"`
}

// permitsRow are the permits in the row of a tenant.
type permitsRow struct {
	PrivateNetworks bool           `db:"private_networks"`
	InstanceRoles   bool           `db:"instance_roles"`
	TypesOff        pq.StringArray `db:"provider_types_off"`
}

func (r permitsRow) permits() loom.Permits {
	return loom.Permits{PrivateNetworks: r.PrivateNetworks, InstanceRoles: r.InstanceRoles, TypesOff: r.TypesOff}
}

// Permits reads what a tenant may do with providers. NotFound.
func Permits(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (loom.Permits, error) {
	var row permitsRow
	err := sqlx.GetContext(ctx, q, &row, `SELECT private_networks, instance_roles, provider_types_off FROM tenants WHERE id = $1`, tenant)
	return row.permits(), wrap(err, "read what tenant %s may", tenant)
}

func (r tenantRow) tenant() loom.Tenant {
	return loom.Tenant{
		ID: loom.TenantID(r.ID), Name: r.Name, Description: r.Description, Workers: r.Workers,
		MaxClusters: r.MaxClusters, MaxNodes: r.MaxNodes, ResourceSet: r.ResourceSet, Permits: r.permits(), Created: r.CreatedAt,
	}
}

const tenantColumns = `SELECT id, name, description, workers, max_clusters, max_nodes, resource_set,
	private_networks, instance_roles, provider_types_off, created_at FROM tenants`

// lockTenant comes first in the order of locks: quotas are checked under it. It
// leaves the key alone, so that rows naming the tenant can be inserted meanwhile.
const lockTenant = tenantColumns + ` WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE`

// LockTenant reads a tenant and keeps others from changing it, its quotas and
// what counts against them until the transaction ends. NotFound when deleted.
func LockTenant(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) (loom.Tenant, error) {
	return oneTenant(ctx, tx, lockTenant, tenant)
}

// Tenant reads a tenant that is not deleted. NotFound.
func Tenant(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (loom.Tenant, error) {
	return oneTenant(ctx, q, tenantColumns+` WHERE id = $1 AND deleted_at IS NULL`, tenant)
}

// TenantByNameAllTenants reads a tenant that is not deleted. NotFound.
func TenantByNameAllTenants(ctx context.Context, q sqlx.ExtContext, name string) (loom.Tenant, error) {
	return oneTenant(ctx, q, tenantColumns+` WHERE name = $1 AND deleted_at IS NULL`, name)
}

func oneTenant[T any](ctx context.Context, q sqlx.ExtContext, query string, key T) (loom.Tenant, error) {
	var row tenantRow
	err := sqlx.GetContext(ctx, q, &row, query, key)
	if errors.Is(err, sql.ErrNoRows) {
		return loom.Tenant{}, &loom.Error{Kind: loom.NotFound, Message: "There is no such tenant.", Err: err}
	}
	return row.tenant(), wrap(err, "read tenant %v", key)
}

// TenantsAllTenants lists the tenants that are not deleted, by name.
func TenantsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.Tenant, error) {
	var rows []tenantRow
	if err := sqlx.SelectContext(ctx, q, &rows, tenantColumns+` WHERE deleted_at IS NULL ORDER BY name`); err != nil {
		return nil, wrap(err, "list tenants")
	}
	tenants := make([]loom.Tenant, len(rows))
	for i, r := range rows {
		tenants[i] = r.tenant()
	}
	return tenants, nil
}

// OnlyTenantAllTenants reads the name of the one tenant besides the built-in one, "" where
// there are none or several. It costs as much however many there are: anybody may ask.
func OnlyTenantAllTenants(ctx context.Context, q sqlx.ExtContext) (string, error) {
	var names []string
	if err := sqlx.SelectContext(ctx, q, &names, `SELECT name FROM tenants WHERE deleted_at IS NULL AND id <> $1 LIMIT 2`, loom.SuperTenant); err != nil {
		return "", wrap(err, "look for the only tenant")
	}
	if len(names) != 1 {
		return "", nil
	}
	return names[0], nil
}

// TenantSorts lists what tenants can be sorted by, the default first.
var TenantSorts = []string{"name", "-name", "-createTime", "createTime"}

var tenantKeyset = keyset{
	columns: `t.id, t.name, t.description, t.workers, t.max_clusters, t.max_nodes, t.resource_set,
		t.private_networks, t.instance_roles, t.provider_types_off, t.created_at`, from: "tenants t",
	id: `t.name COLLATE "C"`, idKind: "text", // names of tenants that are not deleted are unique
	sorts: map[string]sortColumn{"name": {`t.name COLLATE "C"`, "t.name", "text"}, "createTime": byCreation("t")},
}

// TenantPageAllTenants reads a page of the tenants that are not deleted; words are
// words to be found in name or description. Invalid for an unknown sort and for a
// cursor of another list.
func TenantPageAllTenants(ctx context.Context, q sqlx.ExtContext, words string, p loom.Page) (tenants []loom.Tenant, next, prev string, err error) {
	var b binder
	conditions, err := allWords(&b, words, "t.name", "t.description")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append([]string{"t.deleted_at IS NULL"}, conditions...)
	type row struct {
		tenantRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, tenantKeyset, conditions, &b, words, p, TenantSorts...)
	for _, r := range rows {
		tenants = append(tenants, r.tenant())
	}
	return tenants, next, prev, err
}

// TenantEverExistedAllTenants reports whether a tenant of that name exists or was
// deleted.
func TenantEverExistedAllTenants(ctx context.Context, q sqlx.ExtContext, name string) (bool, error) {
	var there bool
	err := sqlx.GetContext(ctx, q, &there, `SELECT EXISTS (SELECT FROM tenants WHERE name = $1)`, name)
	return there, wrap(err, "look for tenant %s", name)
}

const insertTenant = `
INSERT INTO tenants (id, name, description, workers, max_clusters, max_nodes, private_networks, instance_roles, provider_types_off)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($9, '{}'::text[])) RETURNING created_at`

// InsertTenantAllTenants makes a tenant. Conflict when the name is in use.
func InsertTenantAllTenants(ctx context.Context, tx *sqlx.Tx, t loom.Tenant) (loom.Tenant, error) {
	err := tx.GetContext(ctx, &t.Created, insertTenant, t.ID, t.Name, t.Description, t.Workers, t.MaxClusters, t.MaxNodes,
		t.Permits.PrivateNetworks, t.Permits.InstanceRoles, pq.Array(t.Permits.TypesOff))
	return t, wrap(err, "insert tenant %s", t.Name)
}

// EnsureSuperTenant makes the row of the built-in tenant if it is not there.
func EnsureSuperTenant(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `
INSERT INTO tenants (id, name, description, workers, private_networks, instance_roles, provider_types_off)
VALUES ($1, $1, 'The installation itself', 1, true, true, '{}') ON CONFLICT (id) DO NOTHING`, loom.SuperTenant)
	return wrap(err, "make the built-in tenant")
}

const updateTenant = `
UPDATE tenants SET description = $2, workers = $3, max_clusters = $4, max_nodes = $5,
	private_networks = $6, instance_roles = $7, provider_types_off = coalesce($8, '{}'::text[]) WHERE id = $1`

// UpdateTenant stores description, workers, quotas and permits of a locked tenant.
func UpdateTenant(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, t loom.Tenant) error {
	_, err := tx.ExecContext(ctx, updateTenant, tenant, t.Description, t.Workers, t.MaxClusters, t.MaxNodes,
		t.Permits.PrivateNetworks, t.Permits.InstanceRoles, pq.Array(t.Permits.TypesOff))
	return wrap(err, "update tenant %s", tenant)
}

// AssignedWorkers counts the workers of a tenant in live provisioners.
func AssignedWorkers(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `
SELECT coalesce(sum(w.workers), 0) FROM worker_assignments w JOIN processes p ON p.id = w.process_id
WHERE w.tenant_id = $1 AND p.expires_at > now()`, tenant)
	return n, wrap(err, "count the workers of tenant %s", tenant)
}

// DeleteTenant marks a locked tenant as deleted, which frees its name, and takes
// away everything that acts for it: sessions, tokens, previews, kept answers.
// The rest stays, for the record.
func DeleteTenant(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	for _, statement := range []string{
		`UPDATE tenants SET deleted_at = now(), workers = 0 WHERE id = $1`,
		`DELETE FROM worker_assignments WHERE tenant_id = $1`,
		`DELETE FROM sessions WHERE tenant_id = $1`,
		`UPDATE tokens SET revoked_at = now() WHERE tenant_id = $1 AND revoked_at IS NULL`,
		`DELETE FROM previews WHERE tenant_id = $1`,
		`DELETE FROM idempotency_keys WHERE tenant_id = $1`,
	} {
		if _, err := tx.ExecContext(ctx, statement, tenant); err != nil {
			return wrap(err, "delete tenant %s", tenant)
		}
	}
	return nil
}

// nodesInUse counts the nodes of live clusters of tenant t. They and the terminated
// clusters are known from indexes alone (nodes_in_use, clusters_by_status); joining all
// other clusters costs more than leaving those out.
const nodesInUse = `(SELECT count(*) FROM nodes n WHERE n.tenant_id = t.id AND n.state <> 'deleted'
		AND n.cluster_id NOT IN (SELECT c.id FROM clusters c WHERE c.tenant_id = t.id AND c.status COLLATE "C" = 'terminated'))`

const quotaUse = `
SELECT t.max_clusters AS max_clusters, t.max_nodes AS max_nodes,
	(SELECT count(*) FROM clusters c WHERE c.tenant_id = t.id AND c.status COLLATE "C" <> 'terminated') AS clusters,
	` + nodesInUse + ` AS nodes
FROM tenants t WHERE t.id = $1 AND t.deleted_at IS NULL`

// QuotaUse counts the live clusters and nodes of a tenant; to rely on it, hold
// LockTenant.
func QuotaUse(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (loom.QuotaUse, error) {
	var row struct {
		MaxClusters int `db:"max_clusters"`
		MaxNodes    int `db:"max_nodes"`
		Clusters    int `db:"clusters"`
		Nodes       int `db:"nodes"`
	}
	err := sqlx.GetContext(ctx, q, &row, quotaUse, tenant)
	return loom.QuotaUse{Clusters: row.Clusters, MaxClusters: row.MaxClusters, Nodes: row.Nodes, MaxNodes: row.MaxNodes}, wrap(err, "count what tenant %s uses", tenant)
}

const nodesOfTenant = `SELECT t.max_nodes AS most, ` + nodesInUse + ` AS nodes FROM tenants t WHERE t.id = $1 AND t.deleted_at IS NULL`

// NodesInUse counts the live nodes of a tenant, as QuotaUse does, and gives how many it
// may have.
func NodesInUse(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (nodes, most int, err error) {
	var row struct {
		Most  int `db:"most"`
		Nodes int `db:"nodes"`
	}
	err = sqlx.GetContext(ctx, q, &row, nodesOfTenant, tenant)
	return row.Nodes, row.Most, wrap(err, "count the nodes of tenant %s", tenant)
}

const workerCapacity = `
SELECT coalesce(sum(capacity), 0) FROM processes
WHERE kind = 'provisioner' AND only_tenant IS NULL AND NOT draining AND NOT drain_asked AND expires_at > now()`

// WorkerCapacityAllTenants gives the capacity of the live provisioners that serve all
// tenants.
func WorkerCapacityAllTenants(ctx context.Context, q sqlx.ExtContext) (int, error) {
	var capacity int
	err := sqlx.GetContext(ctx, q, &capacity, workerCapacity)
	return capacity, wrap(err, "read the capacity for workers")
}

// WorkerHolder is a tenant with workers; Busy of them run a task.
type WorkerHolder struct {
	Name    string `db:"name"`
	Workers int    `db:"workers"`
	Busy    int    `db:"busy"`
}

const workerHolders = `
WITH busy AS MATERIALIZED (SELECT tenant_id, count(*) AS n FROM running_tasks GROUP BY tenant_id)
SELECT t.name, t.workers, coalesce(b.n, 0) AS busy
FROM tenants t LEFT JOIN busy b ON b.tenant_id = t.id
WHERE t.deleted_at IS NULL AND t.workers > 0
ORDER BY t.id <> $1, t.workers DESC, t.name`

// WorkerHoldersAllTenants lists the tenants that are to have workers: the installation
// itself, then those with most first.
func WorkerHoldersAllTenants(ctx context.Context, q sqlx.ExtContext) ([]WorkerHolder, error) {
	var holders []WorkerHolder
	err := sqlx.SelectContext(ctx, q, &holders, workerHolders, loom.SuperTenant)
	return holders, wrap(err, "list who holds the workers")
}

// BusyWorkers counts the tasks of a tenant that run.
func BusyWorkers(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `SELECT count(*) FROM running_tasks WHERE tenant_id = $1`, tenant)
	return n, wrap(err, "count the tasks of tenant %s that run", tenant)
}

// MaxTokenDays gives the longest life of a token by the tenant's settings, in
// days; 0 means for ever. NotFound.
func MaxTokenDays(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (int, error) {
	s, err := Settings(ctx, q, tenant)
	if err != nil || s.MaxTokenDays == nil {
		return 0, err
	}
	return *s.MaxTokenDays, nil
}

// Settings reads the settings of a tenant; what was never set has its default.
// NotFound.
func Settings(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (loom.Settings, error) {
	var raw []byte
	s := loom.DefaultSettings()
	if err := sqlx.GetContext(ctx, q, &raw, `SELECT settings FROM tenants WHERE id = $1`, tenant); err != nil {
		return s, wrap(err, "read the settings of tenant %s", tenant)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("read the settings of tenant %s: %w", tenant, err)
	}
	return s, nil
}

// SetSettings stores the settings of a locked tenant.
func SetSettings(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, s loom.Settings) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE tenants SET settings = $2 WHERE id = $1`, tenant, string(raw))
	return wrap(err, "store the settings of tenant %s", tenant)
}

// SettingsAllTenants reads the settings of all tenants; what was never set has its
// default.
func SettingsAllTenants(ctx context.Context, q sqlx.ExtContext) (map[loom.TenantID]loom.Settings, error) {
	var rows []struct {
		ID       string `db:"id"`
		Settings []byte `db:"settings"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT id, settings FROM tenants`); err != nil {
		return nil, wrap(err, "read the settings of all tenants")
	}
	all := make(map[loom.TenantID]loom.Settings, len(rows))
	for _, r := range rows {
		s := loom.DefaultSettings()
		if err := json.Unmarshal(r.Settings, &s); err != nil {
			return nil, fmt.Errorf("read the settings of tenant %s: %w", r.ID, err)
		}
		all[loom.TenantID(r.ID)] = s
	}
	return all, nil
}

const quotaUses = `
SELECT t.id, t.max_clusters, t.max_nodes, coalesce(c.n, 0) AS clusters, coalesce(n.n, 0) AS nodes
FROM tenants t
LEFT JOIN LATERAL (SELECT count(*) AS n FROM clusters WHERE tenant_id = t.id AND status <> 'terminated') c ON true
LEFT JOIN LATERAL (SELECT count(*) AS n FROM nodes n JOIN clusters c ON c.id = n.cluster_id
	WHERE c.tenant_id = t.id AND c.status <> 'terminated' AND n.state <> 'deleted') n ON true
WHERE t.id = ANY ($1) AND t.deleted_at IS NULL`

// QuotaUsesAllTenants is QuotaUse of several tenants. Those that are not there are
// left out.
func QuotaUsesAllTenants(ctx context.Context, q sqlx.ExtContext, ids []loom.TenantID) (map[loom.TenantID]loom.QuotaUse, error) {
	var rows []struct {
		ID          string `db:"id"`
		MaxClusters int    `db:"max_clusters"`
		MaxNodes    int    `db:"max_nodes"`
		Clusters    int    `db:"clusters"`
		Nodes       int    `db:"nodes"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, quotaUses, texts(ids)); err != nil {
		return nil, wrap(err, "count what %d tenants use", len(ids))
	}
	uses := make(map[loom.TenantID]loom.QuotaUse, len(rows))
	for _, r := range rows {
		uses[loom.TenantID(r.ID)] = loom.QuotaUse{Clusters: r.Clusters, MaxClusters: r.MaxClusters, Nodes: r.Nodes, MaxNodes: r.MaxNodes}
	}
	return uses, nil
}
