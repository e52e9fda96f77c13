package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

// Limits of the nodes that go into the predecessor's body: a cluster may have ten
// thousand, each with facts of any size.
const (
	maxNoticeNodes = 1000
	maxNoticeFacts = 4096 // bytes of the facts of a node
)

// hookMatch is a hook that is to hear of an event.
type hookMatch struct {
	ID         int64  `db:"id"`
	TenantID   string `db:"tenant_id"`
	Blocking   bool   `db:"blocking"`
	LegacyBody bool   `db:"legacy_body"`
}

// The lock keeps a hook from going away before its delivery is stored. A hook
// that has heard of the start, because it was asked, does not hear of it again.
const matchHooks = `
SELECT h.id, h.tenant_id, h.blocking AND $3 = 'start' AS blocking, h.legacy_body
FROM hooks h JOIN clusters c ON c.tenant_id = $1 AND c.id = $2
WHERE h.enabled AND (h.tenant_id = $1 OR h.global) AND $3 = ANY (h.events)
  AND (h.actions = '{}' OR $4 = ANY (h.actions)) AND (h.templates = '{}' OR c.template_name = ANY (h.templates))
  AND NOT EXISTS (SELECT FROM hook_deliveries d WHERE d.hook_id = h.id AND d.operation_id = $5 AND d.event = $3)
ORDER BY h.id FOR KEY SHARE OF h`

func hooksFor(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, action loom.ClusterAction, op loom.OperationID, event loom.HookEvent) ([]hookMatch, error) {
	var matches []hookMatch
	err := tx.SelectContext(ctx, &matches, matchHooks, tenant, int64(cluster), string(event), string(action), int64(op))
	return matches, wrap(err, "find the hooks of an operation")
}

// blockingOnly keeps the hooks that are asked first; all of them when none is.
func blockingOnly(matches []hookMatch) (asked []hookMatch, blocking bool) {
	for _, m := range matches {
		if m.Blocking {
			asked = append(asked, m)
		}
	}
	if len(asked) == 0 {
		return matches, false
	}
	return asked, true
}

// insertNotices stores what the hooks are told of an event of an operation, as
// the facts are now, and enqueues the deliveries.
func insertNotices(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, event loom.HookEvent, matches []hookMatch) error {
	var plain, legacy []byte
	for _, m := range matches {
		body := &plain
		if m.LegacyBody {
			body = &legacy
		}
		if *body == nil {
			var err error
			if *body, err = notice(ctx, tx, op, m.LegacyBody); err != nil {
				return err
			}
		}
		if err := insertDelivery(ctx, tx, m, op.Row, event, *body); err != nil {
			return err
		}
	}
	return nil
}

const insertHookDelivery = `
INSERT INTO hook_deliveries (hook_id, tenant_id, operation_id, event, blocking, notice)
VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`

func insertDelivery(ctx context.Context, tx *sqlx.Tx, m hookMatch, op loom.OperationID, event loom.HookEvent, notice []byte) error {
	var id int64
	err := tx.GetContext(ctx, &id, insertHookDelivery, m.ID, m.TenantID, int64(op), string(event), m.Blocking, cleanJSON(notice))
	return enqueueDelivery(ctx, tx, m, id, notice, err)
}

func enqueueDelivery(ctx context.Context, tx *sqlx.Tx, m hookMatch, id int64, notice []byte, err error) error {
	if err != nil {
		return wrap(err, "insert a delivery of hook %d", m.ID)
	}
	if len(notice) >= largeNotice || id%smallNotices == 0 {
		if err := dropDeliveries(ctx, tx, loom.HookID(m.ID)); err != nil {
			return err
		}
	}
	return Enqueue(ctx, tx, jobs.DeliverHook{DeliveryID: id})
}

const (
	matchHealthHooks = `
SELECT h.id, h.tenant_id, c.id AS cluster_id, c.tenant_id AS of_tenant
FROM clusters c JOIN hooks h ON (h.tenant_id = c.tenant_id OR h.global)
WHERE c.id = ANY($1) AND h.enabled AND 'health' = ANY (h.events) AND (h.templates = '{}' OR c.template_name = ANY (h.templates))
ORDER BY c.id, h.id FOR KEY SHARE OF h`
	// What still waits is overtaken.
	dropHealthDelivery   = `DELETE FROM hook_deliveries WHERE hook_id = $1 AND cluster_id = $2 AND event = 'health' AND status = 'waiting'`
	insertHealthDelivery = `
INSERT INTO hook_deliveries (hook_id, tenant_id, cluster_id, event, notice, next_at)
SELECT $1, $2, $3, 'health', $4, greatest(now(), max(coalesce(d.ended_at, d.created_at)) + interval '1 minute')
FROM hook_deliveries d WHERE d.hook_id = $1 AND d.cluster_id = $3 AND d.event = 'health' RETURNING id`
)

// InsertHealthNotices tells hooks of clusters whose health changed, by cluster: of each cluster at most once
// a minute, and of the last change only.
func InsertHealthNotices(ctx context.Context, tx *sqlx.Tx, changes map[loom.ClusterID]loom.HealthNotice) error {
	var matches []struct {
		hookMatch
		Cluster  int64         `db:"cluster_id"`
		OfTenant loom.TenantID `db:"of_tenant"`
	}
	if err := tx.SelectContext(ctx, &matches, matchHealthHooks, idArray(slices.Collect(maps.Keys(changes)))); err != nil {
		return wrap(err, "find the hooks of clusters whose health changed")
	}
	bodies := map[int64][]byte{}
	for _, m := range matches {
		id := loom.ClusterID(m.Cluster)
		body := bodies[m.Cluster]
		if body == nil {
			var err error
			if body, err = healthNotice(ctx, tx, m.OfTenant, id, changes[id]); err != nil {
				return err
			}
			bodies[m.Cluster] = body
		}
		if _, err := tx.ExecContext(ctx, dropHealthDelivery, m.ID, m.Cluster); err != nil {
			return wrap(err, "overtake a delivery of hook %d", m.ID)
		}
		var delivery int64
		err := tx.GetContext(ctx, &delivery, insertHealthDelivery, m.ID, m.TenantID, m.Cluster, cleanJSON(body))
		if err := enqueueDelivery(ctx, tx, m.hookMatch, delivery, body, err); err != nil {
			return err
		}
	}
	return nil
}

// healthNotice reads the facts of a cluster whose health changed.
func healthNotice(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, change loom.HealthNotice) ([]byte, error) {
	of, err := Tenant(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	n := loom.Notice{TenantName: of.Name, Health: &change}
	if n.Cluster, err = clusterSummary(ctx, tx, tenant, cluster); err != nil {
		return nil, err
	}
	lasting := true
	list, err := Incidents(ctx, tx, tenant, IncidentFilter{Cluster: cluster, Open: &lasting}, loom.Page{Limit: loom.MaxNoticeIncidents})
	if err != nil {
		return nil, err
	}
	change.Incidents = list.Items
	body, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("marshal the notice of cluster %s: %w", cluster, err)
	}
	return body, nil
}

const (
	// maxNotices are the bytes of notices that a hook keeps, as they are stored.
	maxNotices = 64 << 20
	// After each notice of largeNotice bytes the others are counted, of smaller ones after
	// every so many.
	largeNotice, smallNotices = 64 << 10, 100
)

// What an operation waits for is kept, and so is the newest.
const oldDeliveries = `
DELETE FROM hook_deliveries WHERE id IN (
	SELECT d.id FROM (
		SELECT id, blocking AND status = 'waiting' AS asked, row_number() OVER newest AS place, sum(pg_column_size(notice)) OVER newest AS bytes
		FROM hook_deliveries WHERE hook_id = $1 WINDOW newest AS (ORDER BY id DESC)
	) d WHERE NOT d.asked AND d.place > 1 AND d.bytes > $2)`

// dropDeliveries deletes the oldest deliveries of a hook whose notices take too much, sent
// or not.
func dropDeliveries(ctx context.Context, tx *sqlx.Tx, hook loom.HookID) error {
	_, err := tx.ExecContext(ctx, oldDeliveries, int64(hook), maxNotices)
	return wrap(err, "drop old deliveries of hook %d", hook)
}

// notice reads the facts of an operation and its cluster.
func notice(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, legacy bool) ([]byte, error) {
	tenant, err := Tenant(ctx, tx, op.Tenant)
	if err != nil {
		return nil, err
	}
	n := loom.Notice{TenantName: tenant.Name}
	if n.Operation, err = OperationByRef(ctx, tx, op.Tenant, op.Ref); err != nil {
		return nil, err
	}
	if n.Cluster, err = clusterSummary(ctx, tx, op.Tenant, op.Ref.Cluster); err != nil {
		return nil, err
	}
	if legacy {
		if n.Legacy, err = legacyNotice(ctx, tx, op, n.Cluster.Nodes); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("marshal the notice of operation %s: %w", op.Ref, err)
	}
	return body, nil
}

// clusterSummary reads one row of the list of clusters.
func clusterSummary(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID) (loom.ClusterSummary, error) {
	var row clusterSummaryRow
	page := fmt.Sprintf(walkedPage, "c.created_at", "ASC", "c.tenant_id = $1 AND c.id = $2", "")
	query := fmt.Sprintf(clusterSummaries, page, "''", "true")
	if err := tx.GetContext(ctx, &row, query, tenant, int64(id)); err != nil {
		return loom.ClusterSummary{}, wrap(err, "read the summary of cluster %s", id)
	}
	return row.summary(), nil
}

const nodesOfNotice = `
SELECT id, cluster_id, number, incarnation, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, ipaddresses,
       CASE WHEN length(results::text) > $4 THEN '{}' ELSE results END AS results, service_states
FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND ($5 OR NOT (leaving AND state = 'deleted')) ORDER BY number LIMIT $3`

// legacyNotice reads what only the predecessor's body has, without what is
// secret or may hold secrets.
func legacyNotice(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, nodes int) (*loom.LegacyNotice, error) {
	tenant, id := op.Tenant, op.Ref.Cluster
	cluster, err := ClusterByID(ctx, tx, tenant, id)
	if err != nil {
		return nil, err
	}
	secrets := loom.SecretKeysOf(cluster.Services)
	for name := range cluster.Services {
		cluster.Services[name] = loom.Service{Base: loom.Base{Name: name}}
	}
	cluster.Config = secrets.Mask(cluster.Config)
	cluster.Provider.Fields = masked(cluster.Provider.Fields)
	var rows []nodeRow
	if err := tx.SelectContext(ctx, &rows, nodesOfNotice, tenant, int64(id), maxNoticeNodes, maxNoticeFacts,
		op.Action == loom.ClusterDelete || cluster.Status == loom.ClusterTerminated); err != nil {
		return nil, wrap(err, "read the nodes of cluster %s", id)
	}
	n := &loom.LegacyNotice{Cluster: cluster, Omitted: max(0, nodes-len(rows))}
	for i := range rows {
		node, err := rows[i].node()
		if err != nil {
			return nil, err
		}
		node.Results = masked(loom.ResultsFor("", node.Results))
		delete(node.Results, "ssh-auth") // how to sign in is nobody's business
		n.Nodes = append(n.Nodes, node)
	}
	return n, nil
}

func masked(values map[string]any) map[string]any {
	out, _ := loom.MaskSecrets(values).(map[string]any)
	return out
}

// noticeEnd tells the hooks how a held operation has ended.
func noticeEnd(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) error {
	if !op.Status.Final() {
		return nil // it rolls back
	}
	event := loom.HookFailure
	if op.Status == loom.OperationComplete {
		event = loom.HookSuccess
	}
	matches, err := hooksFor(ctx, tx, op.Tenant, op.Ref.Cluster, op.Action, op.Row, event)
	if err != nil {
		return err
	}
	return insertNotices(ctx, tx, op, event, matches)
}

const beginOperation = `
UPDATE operations SET status = 'running', started_at = now(), request = NULL WHERE id = $1 RETURNING started_at`

// BeginIfAgreed lets a held operation run that was not submitted, once no hook is
// left that has to agree, and tells the other hooks; false says that it still
// waits, or does not wait any more.
func BeginIfAgreed(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) (bool, error) {
	if op.Status != loom.OperationNotSubmitted {
		return false, nil
	}
	var waits bool
	err := tx.GetContext(ctx, &waits, `SELECT EXISTS (SELECT FROM hook_deliveries WHERE operation_id = $1 AND blocking AND status = 'waiting')`, int64(op.Row))
	if err != nil || waits {
		return false, wrap(err, "look whether hooks of operation %s have agreed", op.Ref)
	}
	if err := tx.GetContext(ctx, &op.Started, beginOperation, int64(op.Row)); err != nil {
		return false, wrap(err, "begin operation %s", op.Ref)
	}
	op.Status = loom.OperationRunning
	if _, err := tx.ExecContext(ctx, `SELECT loom_promote((SELECT array_agg(id) FROM nodes WHERE cluster_id = $1))`, int64(op.Ref.Cluster)); err != nil {
		return false, wrap(err, "promote the tasks of operation %s", op.Ref)
	}
	matches, err := hooksFor(ctx, tx, op.Tenant, op.Ref.Cluster, op.Action, op.Row, loom.HookStart)
	if err != nil {
		return false, err
	}
	if err := insertNotices(ctx, tx, op, loom.HookStart, matches); err != nil {
		return false, err
	}
	// A plan without tasks ends at once.
	if err := Enqueue(ctx, tx, jobs.EndOperation{OperationID: int64(op.Row)}); err != nil {
		return false, err
	}
	return true, InsertEvents(ctx, tx, operationEvents(op)...)
}

// AgreedOperationsAllTenants lists operations that were not submitted and that no
// hook holds back: the one they waited for was deleted.
func AgreedOperationsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.OperationID, error) {
	var ids []loom.OperationID
	err := sqlx.SelectContext(ctx, q, &ids, `
SELECT o.id FROM operations o
WHERE o.status = 'not_submitted'
  AND NOT EXISTS (SELECT FROM hook_deliveries d WHERE d.operation_id = o.id AND d.blocking AND d.status = 'waiting')
ORDER BY o.id`)
	return ids, wrap(err, "list operations that no hook holds back")
}

const takeBackConfig = `
UPDATE clusters c SET config = r.config
FROM config_revisions r
WHERE c.tenant_id = $1 AND c.id = $2 AND r.cluster_id = c.id AND r.revision = (
		SELECT max(o.revision) FROM config_revisions o WHERE o.cluster_id = c.id AND o.operation <> $3)
	AND EXISTS (SELECT FROM config_revisions o WHERE o.cluster_id = c.id AND o.operation = $3)`

// TakeBackConfig gives the held cluster of an operation that never began the
// config from before it; a cluster that was made by it keeps its own.
func TakeBackConfig(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) error {
	result, err := tx.ExecContext(ctx, takeBackConfig, op.Tenant, int64(op.Ref.Cluster), op.Ref.Number)
	if err != nil {
		return wrap(err, "take back the config of operation %s", op.Ref)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM config_revisions WHERE tenant_id = $1 AND cluster_id = $2 AND operation = $3`,
		op.Tenant, int64(op.Ref.Cluster), op.Ref.Number)
	return wrap(err, "forget the config of operation %s", op.Ref)
}
