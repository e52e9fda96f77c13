package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// ActivityFilter limits a list of what happened; empty parts mean any.
type ActivityFilter struct {
	// Viewer sees his own actions from ViewerSince on, what happened to his own clusters, that one
	// was given to somebody else, and what changed in the catalog; "" sees all.
	Viewer      Viewer
	ViewerSince time.Time
	Actor       loom.UserID
	// Kinds are words of the audit log.
	Kinds   []string
	Cluster loom.ClusterID
	// ClusterName is that of one or several clusters, also of those that are gone.
	ClusterName string
	// Actions are those of operations, Verbs those of everything else; what has one of either
	// is listed.
	Actions []loom.ClusterAction
	Verbs   []string
	// Result is one of loom.ActivityRunning, ActivityDone, ActivityRefused and ActivityFailed.
	Result string
	Since  time.Time
	// NoOperations leaves out the operations themselves.
	NoOperations bool
}

// The entry with which an operation began represents it as long as it is kept. Of the rest of
// the audit log only ids, names and times of leases are read.
const (
	activityCluster = `CASE WHEN a.kind IN ('cluster', 'operation', 'task') OR a.kind = 'node' AND a.object ~ '^[0-9]{8,18}/'
	                        THEN substring(a.object FROM '^[0-9]{8,18}')::bigint END`
	activityEdit   = `a.kind = 'cluster' AND a.verb = 'update'`
	activityNumber = `CASE WHEN a.kind = 'cluster' THEN substring(a.after->>'operationId' FROM '^[0-9]{8,18}-([0-9]{1,9})$')::int END`
	activityResult = `CASE WHEN o.id IS NULL THEN a.result WHEN o.status = 'complete' THEN 'ok' WHEN o.ended_at IS NULL THEN 'running'
	                       WHEN o.status = 'failed' AND o.started_at IS NULL THEN 'refused' ELSE 'failed' END`
)

// It is read backwards along audit_time and audit_time_all.
var activity = keyset{
	columns: `a.created_at AS at, a.id AS entry, a.tenant_id AS tenant, coalesce(t.name, '') AS tenant_name, a.actor, a.verb, a.kind, a.object,
	` + activityResult + ` AS result, ` + activityCluster + ` AS cluster, coalesce(c.name, '') AS cluster_name, coalesce(a.after->>'action', '') AS asked,
	coalesce(a.before->>'expireTime', '') AS lease_before, coalesce(a.after->>'expireTime', '') AS lease_after,
	CASE WHEN ` + activityEdit + ` THEN coalesce(a.before->>'ownerId', '') ELSE '' END AS owner_before, CASE WHEN ` + activityEdit + ` THEN coalesce(a.after->>'ownerId', '') ELSE '' END AS owner_after,
	CASE WHEN o.id IS NULL THEN 0 ELSE coalesce((SELECT sum(n::int) FROM jsonb_path_query(a.before, '$.layout[*].count') n), 0) END AS nodes_before,
	CASE WHEN o.id IS NULL THEN 0 ELSE coalesce((SELECT sum(n::int) FROM jsonb_path_query(a.after, '$.layout[*].count') n), (a.after->'numMachines')::int, 0) END AS nodes_after,
	coalesce(o.id, 0) AS operation`,
	from: `audit a LEFT JOIN tenants t ON t.id = a.tenant_id
	LEFT JOIN clusters c ON c.tenant_id = a.tenant_id AND c.id = ` + activityCluster + `
	LEFT JOIN operations o ON o.cluster_id = c.id AND o.number = ` + activityNumber,
	id: "a.id", idKind: "bigint",
	sorts: map[string]sortColumn{"time": byCreation("a")},
}

type activityRow struct {
	pageKeys
	At          time.Time     `db:"at"`
	Entry       int64         `db:"entry"`
	Tenant      string        `db:"tenant"`
	TenantName  string        `db:"tenant_name"`
	Actor       string        `db:"actor"`
	Verb        string        `db:"verb"`
	Kind        string        `db:"kind"`
	Object      string        `db:"object"`
	Result      string        `db:"result"`
	Cluster     sql.NullInt64 `db:"cluster"`
	ClusterName string        `db:"cluster_name"`
	Asked       string        `db:"asked"`
	LeaseBefore string        `db:"lease_before"`
	LeaseAfter  string        `db:"lease_after"`
	OwnerBefore string        `db:"owner_before"`
	OwnerAfter  string        `db:"owner_after"`
	NodesBefore int           `db:"nodes_before"`
	NodesAfter  int           `db:"nodes_after"`
	Operation   int64         `db:"operation"`
}

func (f *ActivityFilter) where(b *binder) []string {
	conditions := []string{"a.kind = ANY (" + b.add(pq.Array(f.Kinds)) + ")"}
	add := func(is bool, text string, value any) {
		if is {
			conditions = append(conditions, text+b.add(value))
		}
	}
	if !f.Viewer.SeesAll() {
		viewer := b.add(f.Viewer)
		conditions = append(conditions, "((a.actor = "+viewing(viewer)+" OR "+activityEdit+" AND a.before->>'ownerId' = "+viewing(viewer)+" AND a.after->>'ownerId' <> "+viewing(viewer)+") AND a.created_at >= "+b.add(f.ViewerSince)+" OR "+seenBy(viewer)+" OR a.kind = ANY ("+b.add(pq.Array(CatalogWords()))+"))")
	}
	add(f.Actor != "", "a.actor = ", f.Actor)
	add(f.Cluster != 0, "c.id = ", int64(f.Cluster))
	add(f.ClusterName != "", "c.name = ", f.ClusterName)
	if len(f.Actions)+len(f.Verbs) > 0 {
		conditions = append(conditions, "CASE WHEN o.id IS NULL THEN a.verb = ANY ("+b.add(pq.Array(f.Verbs))+") ELSE o.action = ANY ("+b.add(textArray(f.Actions))+") END")
	}
	add(f.Result != "", activityResult+" = ", f.Result)
	add(!f.Since.IsZero(), "a.created_at >= ", f.Since)
	if f.NoOperations {
		conditions = append(conditions, "o.id IS NULL")
	}
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

// Names are what a list of activity can be limited to.
type Names struct {
	Users    []loom.UserID
	Clusters []string
}

// maxActivityNames bounds the names of each kind; those of the newest clusters are read.
const maxActivityNames = 200

var (
	activityUsers    = `SELECT DISTINCT u.id FROM users u WHERE ($1 = '' OR u.tenant_id = $1) AND (` + viewing("$2") + ` = '' OR u.id = ` + viewing("$2") + `) ORDER BY u.id LIMIT $3`
	activityClusters = `SELECT DISTINCT n.name FROM (
	SELECT c.name FROM clusters c WHERE ($1 = '' OR c.tenant_id = $1) AND `
)

// ActivityNames reads the users and the newest clusters of a tenant. A viewer has only himself and
// the clusters that he sees.
func ActivityNames(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer Viewer) (Names, error) {
	return activityNames(ctx, q, tenant, viewer)
}

// ActivityNamesAllTenants is ActivityNames over all tenants.
func ActivityNamesAllTenants(ctx context.Context, q sqlx.ExtContext) (Names, error) {
	return activityNames(ctx, q, "", Viewer{})
}

func activityNames(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer Viewer) (Names, error) {
	var names Names
	if err := sqlx.SelectContext(ctx, q, &names.Users, activityUsers, tenant, viewer, maxActivityNames); err != nil {
		return names, wrap(err, "read the users to filter by")
	}
	clusters := activityClusters + seenBy("$2") + ` ORDER BY c.id DESC LIMIT $3) n ORDER BY n.name`
	err := sqlx.SelectContext(ctx, q, &names.Clusters, clusters, tenant, viewer, maxActivityNames)
	return names, wrap(err, "read the clusters to filter by")
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
	return activityPage(ctx, q, &b, "a.tenant_id = "+b.add(tenant), string(tenant), f, p)
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
	began := map[int64]*loom.Activity{}
	for i, r := range rows {
		page.Items[i] = r.activity()
		if r.Operation > 0 {
			began[r.Operation] = &page.Items[i]
		}
	}
	return page, beganOperations(ctx, q, began)
}

func (r activityRow) activity() loom.Activity {
	a := loom.Activity{
		ID: r.Entry, Time: r.At, Tenant: loom.TenantID(r.Tenant), TenantName: r.TenantName, Actor: loom.UserID(r.Actor),
		Verb: r.Verb, Kind: r.Kind, Object: r.Object, Result: r.Result, Cluster: loom.ClusterID(r.Cluster.Int64), ClusterName: r.ClusterName,
		Action: loom.ClusterAction(r.Asked), NodesBefore: r.NodesBefore, NodesAfter: r.NodesAfter, LeaseBefore: r.LeaseBefore, LeaseAfter: r.LeaseAfter,
		OwnerBefore: loom.UserID(r.OwnerBefore), OwnerAfter: loom.UserID(r.OwnerAfter),
	}
	if r.Kind == "operation" {
		a.Operation, _ = loom.ParseOperationRef(r.Object)
	}
	return a
}

// The tasks of what is complete are not counted: there may be many, and all are complete.
var operationsByRow = fmt.Sprintf(withCounts, `SELECT `+operationReadColumns+` FROM operations o WHERE o.id = ANY ($1)`, "0 AND o.status <> 'complete'", "DESC")

// beganOperations fills in the operations of entries, by their rows.
func beganOperations(ctx context.Context, q sqlx.ExtContext, into map[int64]*loom.Activity) error {
	if len(into) == 0 {
		return nil
	}
	ids := make(pq.Int64Array, 0, len(into))
	for id := range into {
		ids = append(ids, id)
	}
	var rows []operationReadRow
	if err := sqlx.SelectContext(ctx, q, &rows, operationsByRow, ids); err != nil {
		return wrap(err, "read %d operations", len(ids))
	}
	operations, err := operationsOf(rows)
	for i := range operations {
		op := &operations[i]
		a := into[int64(op.Row)]
		a.Began, a.Operation, a.Action = op, op.Ref, op.Action
	}
	return err
}
