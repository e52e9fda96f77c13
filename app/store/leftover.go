package store

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

// PassTask lets what waits behind a task go on that was given up. The message stays
// on the operation unless it has one already.
func PassTask(ctx context.Context, tx *sqlx.Tx, h *HeldTask, message string) error {
	if h.Operation.Message == "" {
		if _, err := tx.ExecContext(ctx, `UPDATE operations SET message = $2 WHERE id = $1`, h.Operation.Row, cleanText(message)); err != nil {
			return wrap(err, "note what failed in operation %s", h.Operation.Ref)
		}
		h.Operation.Message = message
	}
	if _, err := tx.ExecContext(ctx, `SELECT loom_pass($1)`, h.Key.Task); err != nil {
		return wrap(err, "pass task %d", h.Key.Task)
	}
	return InsertEvents(ctx, tx, operationEvents(&h.Operation)...)
}

const failedDeletes = `
SELECT t.number, n.number AS node_number, t.message,
       (SELECT count(*) FROM attempts a WHERE a.task_id = t.id AND a.status = 'failed') AS tries
FROM tasks t JOIN nodes n ON n.id = t.node_id
WHERE t.operation_id = $1 AND t.action = 'delete' AND t.status = 'failed' ORDER BY t.ended_at, t.number`

// FailedDelete is a DELETE that was given up.
type FailedDelete struct {
	Number     int    `db:"number"`
	NodeNumber int    `db:"node_number"`
	Message    string `db:"message"`
	Tries      int    `db:"tries"`
}

// FailedDeletes lists the DELETEs of a held operation that were given up, in the
// order in which they were.
func FailedDeletes(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) ([]FailedDelete, error) {
	var failed []FailedDelete
	err := tx.SelectContext(ctx, &failed, failedDeletes, int64(op.Row))
	return failed, wrap(err, "read what operation %s could not delete", op.Ref)
}

const putLeftovers = `
INSERT INTO leftovers (tenant_id, cluster_id, node_id, incarnation, provider_name, machine_id, last_error, tries)
SELECT t.tenant_id, t.cluster_id, n.id, n.incarnation, c.provider_name, coalesce(n.results->>'providerid', ''), t.message,
       (SELECT count(*) FROM attempts a WHERE a.task_id = t.id AND a.status = 'failed')
FROM tasks t JOIN nodes n ON n.id = t.node_id JOIN clusters c ON c.id = t.cluster_id
WHERE t.operation_id = $1 AND t.tenant_id = $2 AND t.action = 'delete' AND t.status = 'failed'
ON CONFLICT (node_id, incarnation)
DO UPDATE SET machine_id = excluded.machine_id, last_error = excluded.last_error, tries = leftovers.tries + excluded.tries, last_at = now(),
	ended_at = NULL, ending = ''`

// PutLeftovers notes the machines that a held delete could not delete.
func PutLeftovers(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, op loom.OperationID) error {
	_, err := tx.ExecContext(ctx, putLeftovers, int64(op), tenant)
	return wrap(err, "note what operation %d could not delete", op)
}

// A node whose machine was deleted meanwhile has another incarnation.
const settleLeftovers = `
UPDATE leftovers l SET ended_at = now(), ending = CASE WHEN n.incarnation <> l.incarnation THEN 'removed' ELSE 'settled' END
FROM nodes n
WHERE l.tenant_id = $1 AND l.cluster_id = $2 AND l.ended_at IS NULL AND n.id = l.node_id AND ($3 OR n.incarnation <> l.incarnation)`

// SettleLeftovers ends the leftovers of a held cluster whose machines an operation
// deleted; with all, every one of them: the machines belong to the cluster again.
func SettleLeftovers(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, all bool) error {
	_, err := tx.ExecContext(ctx, settleLeftovers, tenant, int64(id), all)
	return wrap(err, "settle leftovers of cluster %s", id)
}

type leftoverRow struct {
	ID          int64     `db:"id"`
	Tenant      string    `db:"tenant_id"`
	Cluster     int64     `db:"cluster_id"`
	Node        string    `db:"node_id"`
	NodeNumber  int       `db:"node_number"`
	Hostname    string    `db:"hostname"`
	Incarnation int       `db:"incarnation"`
	Provider    string    `db:"provider_name"`
	Machine     string    `db:"machine_id"`
	Error       string    `db:"last_error"`
	Tries       int       `db:"tries"`
	First       time.Time `db:"first_at"`
	Last        time.Time `db:"last_at"`
}

func (r leftoverRow) leftover() loom.Leftover {
	return loom.Leftover{ID: r.ID, Tenant: loom.TenantID(r.Tenant), Cluster: loom.ClusterID(r.Cluster), Node: loom.NodeID(r.Node), NodeNumber: r.NodeNumber,
		Hostname: r.Hostname, Incarnation: r.Incarnation, Provider: r.Provider, Machine: r.Machine, Error: r.Error, Tries: r.Tries, First: r.First, Last: r.Last}
}

const leftoverColumns = `
SELECT l.id, l.tenant_id, l.cluster_id, l.node_id, n.number AS node_number, n.hostname, l.incarnation, l.provider_name, l.machine_id,
       l.last_error, l.tries, l.first_at, l.last_at
FROM leftovers l JOIN nodes n ON n.id = l.node_id`

// Leftovers lists the machines that the delete of a cluster left behind and that may
// still be there, by node.
func Leftovers(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) ([]loom.Leftover, error) {
	var rows []leftoverRow
	err := sqlx.SelectContext(ctx, q, &rows, leftoverColumns+` WHERE l.tenant_id = $1 AND l.cluster_id = $2 AND l.ended_at IS NULL ORDER BY n.number`, tenant, int64(id))
	if err != nil {
		return nil, wrap(err, "list leftovers of cluster %s", id)
	}
	all := make([]loom.Leftover, len(rows))
	for i, r := range rows {
		all[i] = r.leftover()
	}
	return all, nil
}

// LeftoverAllTenants reads one that may still be there. NotFound.
func LeftoverAllTenants(ctx context.Context, q sqlx.ExtContext, id int64) (loom.Leftover, error) {
	var row leftoverRow
	err := sqlx.GetContext(ctx, q, &row, leftoverColumns+` WHERE l.id = $1 AND l.ended_at IS NULL`, id)
	return row.leftover(), wrap(err, "read leftover %d", id)
}

// One request at a time for each; while an operation of the cluster is at work it
// is left alone.
const requestLeftovers = `
INSERT INTO provider_requests (tenant_id, provider_name, purpose, leftover_id, requested_by)
SELECT l.tenant_id, l.provider_name, 'leftover', l.id, 'system'
FROM leftovers l JOIN clusters c ON c.id = l.cluster_id AND c.status = 'incomplete'
WHERE l.ended_at IS NULL
  AND NOT EXISTS (SELECT FROM provider_requests r WHERE r.leftover_id = l.id AND r.ended_at IS NULL)
ORDER BY l.id RETURNING id`

// RequestLeftoversAllTenants asks provisioners to remove all leftovers, with the
// River jobs for it, and says how many there are.
func RequestLeftoversAllTenants(ctx context.Context, tx *sqlx.Tx) (int, error) {
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, requestLeftovers); err != nil {
		return 0, wrap(err, "ask for the removal of leftovers")
	}
	for _, id := range ids {
		if err := Enqueue(ctx, tx, jobs.ProbeProvider{RequestID: id, Slow: true}); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

const endLeftover = `
UPDATE leftovers SET last_at = now(), tries = tries + 1, last_error = CASE WHEN $4 = '' THEN last_error ELSE $4 END,
	ended_at = CASE WHEN $4 = '' THEN now() END, ending = CASE WHEN $4 = '' THEN 'removed' ELSE '' END
WHERE tenant_id = $1 AND id = $2 AND cluster_id = $3 AND ended_at IS NULL
RETURNING node_id, incarnation`

const nodeIsGone = `
UPDATE nodes SET state = 'deleted', leaving = true, incarnation = incarnation + 1, ipaddresses = '{}', service_states = '{}',
	results = results - '{providerid,ssh-auth,ssh_host_keys,ssh_port,ssh_keys}'::text[]
WHERE tenant_id = $1 AND id = $2 AND incarnation = $3`

// TriedLeftover records a try to remove a leftover of a held cluster: failure says
// why it is still there, "" that it is gone. False when it was settled meanwhile.
func TriedLeftover(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, l loom.Leftover, failure string) (bool, error) {
	var rows []struct {
		Node        string `db:"node_id"`
		Incarnation int    `db:"incarnation"`
	}
	if err := tx.SelectContext(ctx, &rows, endLeftover, tenant, l.ID, int64(l.Cluster), cleanText(failure)); err != nil {
		return false, wrap(err, "record a try to remove leftover %d", l.ID)
	}
	if len(rows) == 0 || failure != "" {
		return len(rows) > 0, nil
	}
	_, err := tx.ExecContext(ctx, nodeIsGone, tenant, rows[0].Node, rows[0].Incarnation)
	return true, wrap(err, "note that node %s is gone", rows[0].Node)
}

const abandonLeftovers = `
UPDATE leftovers SET ended_at = now(), ending = 'abandoned' WHERE tenant_id = $1 AND cluster_id = $2 AND ended_at IS NULL`

// AbandonLeftovers gives up all leftovers of a held cluster.
func AbandonLeftovers(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID) error {
	_, err := tx.ExecContext(ctx, abandonLeftovers, tenant, int64(id))
	return wrap(err, "give up the leftovers of cluster %s", id)
}

// Remains says that a held cluster still has, or may have, machines.
func Remains(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID) (bool, error) {
	var remains bool
	err := tx.GetContext(ctx, &remains, `
SELECT EXISTS (SELECT FROM leftovers WHERE tenant_id = $1 AND cluster_id = $2 AND ended_at IS NULL)
    OR EXISTS (SELECT FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND state <> 'deleted')`, tenant, int64(id))
	return remains, wrap(err, "look for what remains of cluster %s", id)
}

// TerminateCluster ends a held, incomplete cluster of which nothing remains, or
// nothing anybody waits for, as its delete would have: its secrets are wiped, hooks
// hear of the success of the delete, and who acted is in the audit with after.
func TerminateCluster(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, tenant loom.TenantID, c loom.Cluster, after map[string]any) error {
	if !c.Status.MayBecome(loom.ClusterTerminated) {
		return fmt.Errorf("cluster %s is %s; it cannot be terminated", c.ID, c.Status)
	}
	if err := SetClusterStatus(ctx, tx, tenant, c.ID, loom.ClusterTerminated); err != nil {
		return err
	}
	if c.DeleteWanted != "" {
		if err := SetDeleteWanted(ctx, tx, tenant, c.ID, ""); err != nil {
			return err
		}
	}
	if err := wipeSecrets(ctx, tx, tenant, c.ID); err != nil {
		return err
	}
	became := map[string]any{"status": loom.ClusterTerminated}
	maps.Copy(became, after)
	err := InsertAudit(ctx, tx, loom.AuditEntry{Actor: actor, Verb: "delete", Kind: "cluster", Object: c.ID.String(), Result: "ok",
		Before: map[string]any{"name": c.Name, "status": c.Status}, After: became})
	if err != nil {
		return err
	}
	op, err := LockOperation(ctx, tx, tenant, loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation})
	if err != nil {
		return err
	}
	if op.Action == loom.ClusterDelete {
		told, err := hooksFor(ctx, tx, tenant, c.ID, op.Action, op.Row, loom.HookSuccess)
		if err != nil {
			return err
		}
		if err := insertNotices(ctx, tx, &op, loom.HookSuccess, told); err != nil {
			return err
		}
	}
	events := append(operationEvents(&op), loom.Event{Tenant: tenant, Topic: "tenant"})
	return InsertEvents(ctx, tx, events...)
}

// Which nodes the cluster had at its end stays known.
const forgetLayouts = `
UPDATE operations SET after = NULL,
    before = CASE WHEN action = 'cluster_delete' AND before IS NOT NULL THEN jsonb_build_object('nodes', before->'nodes') END
WHERE tenant_id = $1 AND cluster_id = $2`

// wipeSecrets deletes the secrets of a cluster that is gone, and the layouts that its
// operations kept: nothing leads back to them, and their configs may hold what looks
// secret.
func wipeSecrets(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID) error {
	if err := DeleteSecrets(ctx, tx, tenant, ClusterSecrets(id)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, forgetLayouts, tenant, int64(id)); err != nil {
		return wrap(err, "forget the layouts of cluster %s", id)
	}
	return DeleteNodeSecrets(ctx, tx, tenant, id)
}

// maxLeftovers bounds the list of all tenants.
const maxLeftovers = 500

// LeftoversAllTenants lists the machines that deletes left behind and that may still
// be there, the oldest first, 500 at most.
func LeftoversAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.Leftover, error) {
	var rows []leftoverRow
	err := sqlx.SelectContext(ctx, q, &rows, leftoverColumns+` WHERE l.ended_at IS NULL ORDER BY l.id LIMIT $1`, maxLeftovers)
	if err != nil {
		return nil, wrap(err, "list leftovers")
	}
	all := make([]loom.Leftover, len(rows))
	for i, r := range rows {
		all[i] = r.leftover()
	}
	return all, nil
}
