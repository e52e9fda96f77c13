package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

const insertConfigRevision = `
INSERT INTO config_revisions (tenant_id, cluster_id, revision, config, author, operation)
SELECT c.tenant_id, c.id, coalesce((SELECT max(r.revision) FROM config_revisions r WHERE r.cluster_id = c.id), 0) + 1, c.config, $3, $4
FROM clusters c WHERE c.tenant_id = $1 AND c.id = $2`

const trimConfigRevisions = `
DELETE FROM config_revisions WHERE tenant_id = $1 AND cluster_id = $2 AND revision IN (
    SELECT revision FROM (
        SELECT revision, row_number() OVER newest AS place, sum(pg_column_size(config)) OVER newest AS bytes
        FROM config_revisions WHERE cluster_id = $2 WINDOW newest AS (ORDER BY revision DESC)
    ) r WHERE place > 1 AND (place > $3 OR bytes > $4))`

// InsertConfigRevision keeps the present config of a cluster, whose lock the
// caller holds, as its next revision. The oldest ones go where there are more than
// loom.MaxRevisions, or where they take more of the disk than loom.MaxRevisionBytes.
func InsertConfigRevision(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.OperationRef, author loom.UserID) error {
	if _, err := tx.ExecContext(ctx, insertConfigRevision, tenant, int64(ref.Cluster), author, ref.Number); err != nil {
		return wrap(err, "keep the config of cluster %s", ref.Cluster)
	}
	_, err := tx.ExecContext(ctx, trimConfigRevisions, tenant, int64(ref.Cluster), loom.MaxRevisions, loom.MaxRevisionBytes)
	return wrap(err, "trim the configs of cluster %s", ref.Cluster)
}

const configRevisions = `
SELECT revision, author, operation, created_at FROM config_revisions
WHERE tenant_id = $1 AND cluster_id = $2 ORDER BY revision DESC`

// ConfigRevisions lists the configs that a cluster has had, the newest first.
func ConfigRevisions(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) ([]loom.ConfigRevision, error) {
	var rows []struct {
		Revision  int       `db:"revision"`
		Author    string    `db:"author"`
		Operation int       `db:"operation"`
		CreatedAt time.Time `db:"created_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, configRevisions, tenant, int64(id)); err != nil {
		return nil, wrap(err, "list the configs of cluster %s", id)
	}
	out := make([]loom.ConfigRevision, len(rows))
	for i, r := range rows {
		out[i] = loom.ConfigRevision{Revision: r.Revision, Author: loom.UserID(r.Author), Operation: r.Operation, Time: r.CreatedAt}
	}
	return out, nil
}

const configOfRevision = `
SELECT config FROM config_revisions WHERE tenant_id = $1 AND cluster_id = $2 AND revision = $3`

// ConfigOfRevision reads a config that a cluster has had. NotFound.
func ConfigOfRevision(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID, revision int) (map[string]any, error) {
	var data []byte
	if err := sqlx.GetContext(ctx, q, &data, configOfRevision, tenant, int64(id), revision); err != nil {
		return nil, wrap(err, "read config %d of cluster %s", revision, id)
	}
	var config map[string]any
	if err := decodeExact(data, &config); err != nil {
		return nil, fmt.Errorf("read config %d of cluster %s: %w", revision, id, err)
	}
	return config, nil
}

const setClusterConfig = `UPDATE clusters SET config = $3 WHERE tenant_id = $1 AND id = $2`

// SetClusterConfig replaces the config of a cluster whose lock the caller holds;
// the revision goes up with the status that changes along with it.
func SetClusterConfig(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, config map[string]any) error {
	data, err := json.Marshal(orEmpty(config))
	if err != nil {
		return fmt.Errorf("encode the config of cluster %s: %w", id, err)
	}
	_, err = tx.ExecContext(ctx, setClusterConfig, tenant, int64(id), data)
	return wrap(err, "store the config of cluster %s", id)
}

const setClusterTemplate = `
UPDATE clusters SET template = $3, template_name = $4, template_version = $5, revision = revision + 1
WHERE tenant_id = $1 AND id = $2`

const forgetChecks = `UPDATE node_health SET operation = 0 WHERE tenant_id = $1 AND cluster_id = $2`

// SetClusterTemplate replaces the cluster's copy of its template, which is
// resolved, and takes the next revision of the cluster. Unless services is nil, it replaces
// their copies as well, and what their checks saw before no longer counts.
func SetClusterTemplate(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, t loom.Template, services map[string]loom.Service) error {
	data, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode the template of cluster %s: %w", id, err)
	}
	if _, err = tx.ExecContext(ctx, setClusterTemplate, tenant, int64(id), data, t.Name, t.Version); err != nil {
		return wrap(err, "store the template of cluster %s", id)
	}
	if services == nil {
		return nil
	}
	if err := setServices(ctx, tx, tenant, id, services); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, forgetChecks, tenant, int64(id))
	return wrap(err, "forget what checks of cluster %s saw", id)
}

const setDeleteWanted = `
UPDATE clusters SET delete_wanted_by = $3, revision = revision + 1 WHERE tenant_id = $1 AND id = $2`

// SetDeleteWanted notes who wants a cluster deleted once its operation has ended;
// "" takes that back.
func SetDeleteWanted(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, by loom.UserID) error {
	_, err := tx.ExecContext(ctx, setDeleteWanted, tenant, int64(id), by)
	return wrap(err, "note the wish to delete cluster %s", id)
}

// WantedDelete is a cluster that somebody wants deleted and that no operation
// keeps from it any more.
type WantedDelete struct {
	Tenant loom.TenantID
	ID     loom.ClusterID
	By     loom.UserID
}

// Leans on clusters_delete_wanted.
const wantedDeletes = `
SELECT tenant_id, id, delete_wanted_by FROM clusters
WHERE delete_wanted_by <> '' AND status NOT IN ('pending', 'terminated') AND id > $1 ORDER BY id LIMIT $2`

// WantedDeletesAllTenants reads clusters that wait to be deleted, by id, those
// behind after.
func WantedDeletesAllTenants(ctx context.Context, q sqlx.ExtContext, after loom.ClusterID, limit int) ([]WantedDelete, error) {
	var rows []clusterRow
	if err := sqlx.SelectContext(ctx, q, &rows, wantedDeletes, int64(after), limit); err != nil {
		return nil, wrap(err, "read clusters that wait to be deleted")
	}
	wanted := make([]WantedDelete, len(rows))
	for i, r := range rows {
		wanted[i] = WantedDelete{Tenant: loom.TenantID(r.TenantID), ID: loom.ClusterID(r.ID), By: loom.UserID(r.DeleteWanted)}
	}
	return wanted, nil
}

const settleDelete = `
UPDATE clusters SET delete_wanted_by = CASE WHEN status = 'terminated' THEN '' ELSE delete_wanted_by END
WHERE tenant_id = $1 AND id = $2 AND delete_wanted_by <> '' RETURNING delete_wanted_by <> ''`

// wakeDelete lets the duty that deletes clusters run at once where somebody waits
// for the end of this operation, and forgets the wish where nothing is left to
// delete. Without it the duty's own time comes.
func wakeDelete(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) error {
	var wanted bool
	err := tx.GetContext(ctx, &wanted, settleDelete, op.Tenant, op.Ref.Cluster)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !wanted {
		return nil
	}
	if err != nil {
		return wrap(err, "look whether cluster %s is to be deleted", op.Ref.Cluster)
	}
	return Enqueue(ctx, tx, jobs.ExpireClusters{})
}

// TaskKind is what durations are known by: a service's action, or a node's where
// Service is "".
type TaskKind struct {
	Service string
	Action  loom.TaskAction
}

// The newest operations of the tenant stand for its past; of huge ones their
// beginning and their end are enough.
const typicalDurations = `
WITH providers AS MATERIALIZED (
    SELECT DISTINCT ON (name) name, body->>'providertype' AS providertype FROM catalog_versions
    WHERE tenant_id = $1 AND kind = 'providers' ORDER BY name, version DESC
), recent AS (
    SELECT o.id FROM operations o JOIN clusters c ON c.id = o.cluster_id
    WHERE o.tenant_id = $1 AND c.provider_name IN (SELECT p.name FROM providers p WHERE p.providertype = $2) ORDER BY o.id DESC LIMIT 40
), done AS (
    SELECT t.service, t.action, a.ended_at, extract(epoch FROM a.ended_at - a.started_at)::float8 AS seconds
    FROM recent r CROSS JOIN LATERAL (
        (SELECT t.id, t.service, t.action, t.attempt FROM tasks t
         WHERE t.operation_id = r.id AND NOT t.gate AND t.status = 'complete' ORDER BY t.number LIMIT 1000)
        UNION
        (SELECT t.id, t.service, t.action, t.attempt FROM tasks t
         WHERE t.operation_id = r.id AND NOT t.gate AND t.status = 'complete' ORDER BY t.number DESC LIMIT 1000)) t
    JOIN attempts a ON a.task_id = t.id AND a.number = t.attempt AND a.status = 'complete' AND a.ended_at IS NOT NULL
), numbered AS (
    SELECT service, action, seconds, row_number() OVER (PARTITION BY service, action ORDER BY ended_at DESC) AS n,
           row_number() OVER (PARTITION BY action ORDER BY ended_at DESC) AS of_action FROM done
)
SELECT service, action, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS seconds, false AS whole
FROM numbered WHERE n <= 20 GROUP BY service, action
UNION ALL
SELECT '', action, percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), true FROM numbered WHERE of_action <= 20 GROUP BY action`

// TypicalDurations gives how long the tasks of a tenant took on machines of a
// provider type: medians of the last 20 complete attempts, by service and action,
// and by action alone.
func TypicalDurations(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, providerType string) (map[TaskKind]time.Duration, map[loom.TaskAction]time.Duration, error) {
	var rows []struct {
		Service string  `db:"service"`
		Action  string  `db:"action"`
		Seconds float64 `db:"seconds"`
		Whole   bool    `db:"whole"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, typicalDurations, tenant, providerType); err != nil {
		return nil, nil, wrap(err, "read how long tasks take")
	}
	byKind, byAction := map[TaskKind]time.Duration{}, map[loom.TaskAction]time.Duration{}
	for _, r := range rows {
		d := time.Duration(r.Seconds * float64(time.Second))
		if r.Whole {
			byAction[loom.TaskAction(r.Action)] = d
		} else {
			byKind[TaskKind{r.Service, loom.TaskAction(r.Action)}] = d
		}
	}
	return byKind, byAction, nil
}
