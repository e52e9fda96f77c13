package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// ActivityFilter limits a list of what happened; empty parts mean any. Since is
// inclusive, Until is not.
type ActivityFilter struct {
	// Viewer sees what he did himself from ViewerSince on, what happened to his own clusters, and what
	// changed in the catalog; "" sees all.
	Viewer      loom.UserID
	ViewerSince time.Time
	Actor       loom.UserID
	// Kinds are words of the audit.
	Kinds   []string
	Cluster loom.ClusterID
	// ClusterName is that of one or several clusters, also of those that are gone.
	ClusterName  string
	Verb, Result string
	Since, Until time.Time
}

// Of the audit only what is told is read: ids, names, times of leases. An operation
// that ended has no entry there; it is told from its own row.
const (
	auditActivity = `
	SELECT a.created_at AS at, 'a' || lpad(a.id::text, 19, '0') AS key, a.tenant_id, a.actor, a.via, a.verb, a.kind, a.object, a.result,
		CASE WHEN a.kind IN ('cluster', 'operation', 'task') OR a.kind = 'node' AND a.object ~ '^[0-9]{8,18}/'
		     THEN substring(a.object FROM '^[0-9]{8,18}')::bigint END AS cluster_id,
		coalesce(a.after->>'action', '') AS action, coalesce(a.after->>'operationId', '') AS operation, '' AS status, '' AS message, 0::bigint AS operation_row,
		coalesce(a.before->>'expireTime', '') AS lease_before, coalesce(a.after->>'expireTime', '') AS lease_after
	FROM audit a`
	endedActivity = `
	SELECT o.ended_at AS at, 'o' || lpad(o.id::text, 19, '0') AS key, o.tenant_id, o.requested_by AS actor, '' AS via, 'finish' AS verb, 'operation' AS kind,
		loom_pad(o.cluster_id) || '-' || lpad(o.number::text, greatest(3, length(o.number::text)), '0') AS object,
		CASE o.status WHEN 'complete' THEN 'ok' ELSE 'failed' END AS result, o.cluster_id, o.action, '' AS operation, o.status, o.message, o.id AS operation_row,
		'' AS lease_before, '' AS lease_after
	FROM operations o WHERE o.ended_at IS NOT NULL`
)

// activityCut cuts both sources before they are put together: each is read backwards
// along its index of times (audit_time, operations_ended and those of all tenants)
// and ends where the page does.
func activityCut(conditions, order, limit string) string {
	part := func(rows string) string {
		return `(SELECT x.*, coalesce(c.name, '') AS cluster_name FROM (` + rows + `) x
	LEFT JOIN clusters c ON c.tenant_id = x.tenant_id AND c.id = x.cluster_id
	WHERE ` + conditions + order + limit + `)`
	}
	return `(` + part(auditActivity) + ` UNION ALL ` + part(endedActivity) + `) x LEFT JOIN tenants t ON t.id = x.tenant_id`
}

var activity = keyset{
	columns: `x.at, x.key, x.tenant_id, coalesce(t.name, '') AS tenant_name, x.actor, x.via, x.verb, x.kind, x.object, x.result, x.cluster_id,
	x.cluster_name, x.action, x.operation, x.status, x.message, x.operation_row, x.lease_before, x.lease_after`,
	cut: activityCut, id: "x.key", idKind: "text",
	sorts: map[string]sortColumn{"time": {"x.at", `to_char(x.at AT TIME ZONE 'UTC', '` + cursorTime + `')`, "timestamptz"}},
}

type activityRow struct {
	pageKeys
	At           time.Time     `db:"at"`
	Key          string        `db:"key"`
	Tenant       string        `db:"tenant_id"`
	TenantName   string        `db:"tenant_name"`
	Actor        string        `db:"actor"`
	Via          string        `db:"via"`
	Verb         string        `db:"verb"`
	Kind         string        `db:"kind"`
	Object       string        `db:"object"`
	Result       string        `db:"result"`
	Cluster      sql.NullInt64 `db:"cluster_id"`
	ClusterName  string        `db:"cluster_name"`
	Action       string        `db:"action"`
	Operation    string        `db:"operation"`
	Status       string        `db:"status"`
	Message      string        `db:"message"`
	OperationRow int64         `db:"operation_row"`
	LeaseBefore  string        `db:"lease_before"`
	LeaseAfter   string        `db:"lease_after"`
}

func (f *ActivityFilter) where(b *binder) []string {
	kinds := "x.kind = ANY (" + b.add(pq.Array(f.Kinds)) + ")"
	conditions := []string{kinds}
	add := func(is bool, text string, value any) {
		if is {
			conditions = append(conditions, text+b.add(value))
		}
	}
	if f.Viewer != "" {
		viewer := b.add(f.Viewer)
		conditions = append(conditions, "(x.actor = "+viewer+" AND x.at >= "+b.add(f.ViewerSince)+" OR "+seenBy(viewer)+" OR x.kind = ANY ("+b.add(pq.Array(CatalogWords()))+"))")
	}
	add(f.Actor != "", "x.actor = ", f.Actor)
	add(f.Cluster != 0, "x.cluster_id = ", int64(f.Cluster))
	add(f.ClusterName != "", "c.name = ", f.ClusterName)
	add(f.Verb != "", "x.verb = ", f.Verb)
	add(f.Result != "", "x.result = ", f.Result)
	add(!f.Since.IsZero(), "x.at >= ", f.Since)
	add(!f.Until.IsZero(), "x.at < ", f.Until)
	return conditions
}

// CatalogWords are the kinds of the audit that are about the catalog.
func CatalogWords() []string {
	words := []string{"catalog"}
	for _, kind := range loom.TenantKinds {
		words = append(words, kind.Word())
	}
	return words
}

// ActivityList is a page of what happened, with the cursors of its neighbours.
type ActivityList struct {
	Items      []loom.Activity
	Next, Prev string
}

// Activity reads a page of what happened in a tenant, the newest first: two
// statements whatever the number of rows. Invalid for a cursor of another list.
func Activity(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f ActivityFilter, p loom.Page) (ActivityList, error) {
	var b binder
	return activityPage(ctx, q, &b, "x.tenant_id = "+b.add(tenant), string(tenant), f, p)
}

// ActivityAllTenants is Activity over all tenants.
func ActivityAllTenants(ctx context.Context, q sqlx.ExtContext, f ActivityFilter, p loom.Page) (ActivityList, error) {
	var b binder
	return activityPage(ctx, q, &b, "true", "*", f, p)
}

func activityPage(ctx context.Context, q sqlx.ExtContext, b *binder, of, list string, f ActivityFilter, p loom.Page) (ActivityList, error) {
	conditions := append([]string{of}, f.where(b)...)
	rows, next, prev, err := readKeyset[activityRow](ctx, q, activity, conditions, b, []any{"activity", list, f}, p, "-time")
	if err != nil {
		return ActivityList{}, err
	}
	page := ActivityList{Items: make([]loom.Activity, len(rows)), Next: next, Prev: prev}
	ended := map[int64]*loom.Activity{}
	var ids []int64
	for i, r := range rows {
		page.Items[i] = r.activity()
		if r.OperationRow > 0 && r.Result == "failed" {
			ended[r.OperationRow] = &page.Items[i]
			ids = append(ids, r.OperationRow)
		}
	}
	return page, failuresOf(ctx, q, ids, ended)
}

func (r activityRow) activity() loom.Activity {
	a := loom.Activity{
		Key: r.Key, Time: r.At, Tenant: loom.TenantID(r.Tenant), TenantName: r.TenantName, Actor: loom.UserID(r.Actor), Via: r.Via,
		Verb: r.Verb, Kind: r.Kind, Object: r.Object, Result: r.Result, Cluster: loom.ClusterID(r.Cluster.Int64), ClusterName: r.ClusterName,
		Action: loom.ClusterAction(r.Action), Status: loom.OperationStatus(r.Status), Message: r.Message,
		LeaseBefore: r.LeaseBefore, LeaseAfter: r.LeaseAfter,
	}
	text := r.Operation
	if r.Kind == "operation" {
		text = r.Object
	}
	if ref, ok := loom.ParseOperationRef(text); ok {
		a.Operation = ref
	}
	return a
}

// Leans on tasks_operation.
const operationFailures = `
SELECT operation_id, count(*) AS tasks, count(DISTINCT node_id) AS nodes
FROM tasks WHERE operation_id = ANY ($1) AND status = 'failed' GROUP BY operation_id`

// failuresOf counts the failed tasks of operations, and their nodes.
func failuresOf(ctx context.Context, q sqlx.ExtContext, ids []int64, into map[int64]*loom.Activity) error {
	if len(ids) == 0 {
		return nil
	}
	var rows []struct {
		Operation int64 `db:"operation_id"`
		Tasks     int   `db:"tasks"`
		Nodes     int   `db:"nodes"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, operationFailures, pq.Array(ids)); err != nil {
		return wrap(err, "count the failed tasks of %d operations", len(ids))
	}
	for _, r := range rows {
		into[r.Operation].FailedTasks, into[r.Operation].FailedNodes = r.Tasks, r.Nodes
	}
	return nil
}
