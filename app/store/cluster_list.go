package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// ClusterList is a page of the list. Next and Prev are cursors, empty at the
// ends; Total counts the clusters that match the filter, as far as loom.CountLimit
// and one more, unless it was left out.
type ClusterList struct {
	Items      []loom.ClusterSummary
	Next, Prev string
	Total      int
}

// clusterSorts maps a field to its column, never NULL, the text of its value in
// cursors and the type of that text. The id is always the second key.
var clusterSorts = map[string]struct{ column, key, kind string }{
	"createTime": {"c.created_at", `to_char(c.created_at AT TIME ZONE 'UTC', '` + cursorTime + `')`, "timestamptz"},
	"name":       {`c.name COLLATE "C"`, "c.name", "text"},
	"expireTime": {"coalesce(c.expires_at, 'infinity')",
		`coalesce(to_char(c.expires_at AT TIME ZONE 'UTC', '` + cursorTime + `'), 'infinity')`, "timestamptz"},
	"status": {`c.status COLLATE "C"`, "c.status", "text"},
}

const cursorTime = `YYYY-MM-DD"T"HH24:MI:SS.US"Z"`

// ClusterSorts lists what clusters can be sorted by, the default first.
var ClusterSorts = []string{"-createTime", "createTime", "name", "-name", "expireTime", "-expireTime", "status", "-status"}

// place gives the sort key and the id a cursor stands at; whoever made it may
// have tampered with it.
func (f *ClusterFilter) place(c *loom.Cursor, kind string) (string, int64, bool) {
	key := c.Keys[0]
	id, err := strconv.ParseInt(c.Keys[1], 10, 64)
	ok := err == nil && c.Keys[2] == f.fingerprint() && utf8.ValidString(key) && !strings.Contains(key, "\x00")
	if kind == "timestamptz" && key != "infinity" {
		_, err := time.Parse(time.RFC3339Nano, key)
		ok = ok && err == nil
	}
	return key, id, ok
}

type clusterSummaryRow struct {
	ID                  int64          `db:"id"`
	TenantID            string         `db:"tenant_id"`
	OwnerID             string         `db:"owner_id"`
	Name                string         `db:"name"`
	Description         string         `db:"description"`
	Status              string         `db:"status"`
	CreatedAt           time.Time      `db:"created_at"`
	ExpiresAt           sql.NullTime   `db:"expires_at"`
	EndedAt             sql.NullTime   `db:"ended_at"`
	Nodes               int            `db:"nodes"`
	ProviderName        string         `db:"provider_name"`
	ProviderLabel       string         `db:"provider_label"`
	ProviderDescription string         `db:"provider_description"`
	ProviderIcon        string         `db:"provider_icon"`
	ProviderVersion     int            `db:"provider_version"`
	TemplateName        string         `db:"template_name"`
	TemplateLabel       string         `db:"template_label"`
	TemplateDescription string         `db:"template_description"`
	TemplateIcon        string         `db:"template_icon"`
	TemplateVersion     int            `db:"template_version"`
	Services            pq.StringArray `db:"services"`
	Linked              bool           `db:"linked"`
	Health              sql.NullString `db:"health"`
	HealthSince         sql.NullTime   `db:"health_since"`
	CheckedAt           sql.NullTime   `db:"checked_at"`
	LatestOperation     int            `db:"latest_operation"`
	Action              string         `db:"action"`
	OperationStatus     string         `db:"operation_status"`
	OperationStarted    sql.NullTime   `db:"operation_started"`
	OperationEnded      sql.NullTime   `db:"operation_ended"`
	Total               int            `db:"total"`
	Done                int            `db:"done"`
	Protected           bool           `db:"protected"`
	Revision            int            `db:"revision"`
	NewestTemplate      int            `db:"newest_template"`
	Key                 string         `db:"key"`
	Matches             int            `db:"matches"`
}

func (r *clusterSummaryRow) summary() loom.ClusterSummary {
	return loom.ClusterSummary{
		ID: loom.ClusterID(r.ID), Name: r.Name, Description: r.Description,
		Owner:  loom.Account{User: loom.UserID(r.OwnerID), Tenant: loom.TenantID(r.TenantID)},
		Status: loom.ClusterStatus(r.Status), Created: r.CreatedAt, Expires: r.ExpiresAt.Time, Ended: r.EndedAt.Time, Nodes: r.Nodes,
		Provider: loom.Base{Name: r.ProviderName, Label: r.ProviderLabel, Description: r.ProviderDescription, Icon: r.ProviderIcon, Version: r.ProviderVersion},
		Template: loom.Base{Name: r.TemplateName, Label: r.TemplateLabel, Description: r.TemplateDescription, Icon: r.TemplateIcon, Version: r.TemplateVersion},
		Services: r.Services, Linked: r.Linked, LatestOperation: r.LatestOperation, Protected: r.Protected, Revision: r.Revision, NewestTemplate: r.NewestTemplate,
		Health: loom.ClusterHealth{Status: loom.HealthStatus(r.Health.String), Since: r.HealthSince.Time, CheckedAt: r.CheckedAt.Time},
		Progress: loom.Progress{Action: loom.ClusterAction(r.Action), Status: loom.OperationStatus(r.OperationStatus), Total: r.Total, Done: r.Done,
			Started: r.OperationStarted.Time, Ended: r.OperationEnded.Time},
	}
}

// The page is cut first; only its rows are joined with what costs reading. The tasks
// of all of them are counted in one go: row by row the planner may read the whole
// table for each, since it cannot know how many tasks an operation has.
const clusterSummaries = `
WITH %[1]s, progress AS MATERIALIZED (
    SELECT t.operation_id, count(*) AS total, count(*) FILTER (WHERE t.status IN ('complete', 'skipped')) AS done
    FROM tasks t
    WHERE %[3]s AND NOT t.gate AND t.operation_id = ANY (ARRAY(SELECT o.id FROM page JOIN clusters c ON c.id = page.id
                                                     JOIN operations o ON o.cluster_id = c.id AND o.number = c.latest_operation))
    GROUP BY t.operation_id)
SELECT c.id, c.tenant_id, c.owner_id, c.name, c.description, c.status, c.created_at, c.expires_at,
       CASE WHEN c.status = 'terminated' THEN o.ended_at END AS ended_at,
       CASE WHEN o.action = 'cluster_delete' AND o.before IS NOT NULL THEN coalesce(jsonb_array_length(nullif(o.before->'nodes', 'null')), 0)
            ELSE (SELECT count(*) FROM nodes n WHERE n.cluster_id = c.id
                  AND (c.status = 'terminated' OR o.action = 'cluster_delete' OR NOT (n.leaving AND n.state = 'deleted'))) END AS nodes,
       c.provider_name, coalesce(pb.label, '') AS provider_label, coalesce(pb.description, '') AS provider_description,
       coalesce(pb.icon, '') AS provider_icon, coalesce(pb.version, 0) AS provider_version,
       c.template_name, coalesce(tb.label, '') AS template_label, coalesce(tb.description, '') AS template_description,
       coalesce(tb.icon, '') AS template_icon, c.template_version, c.service_names AS services, jsonb_path_exists(c.template, '$.links[*]') AS linked, c.latest_operation,
       coalesce(o.action, '') AS action, coalesce(o.status, '') AS operation_status, o.started_at AS operation_started, o.ended_at AS operation_ended,
       coalesce(p.total, 0) AS total, coalesce(p.done, 0) AS done, c.protected, c.revision,
       coalesce((SELECT max(v.version) FROM catalog_versions v WHERE v.tenant_id = c.tenant_id AND v.kind = 'clustertemplates' AND v.name = c.template_name AND v.released), 0) AS newest_template,
       ` + clusterHealth + ` AS health, h.since AS health_since, CASE WHEN h.status IN ('degraded', 'failing') THEN (SELECT max(nh.checked_at) FROM node_health nh WHERE nh.cluster_id = c.id AND (nh.status IN ('failing', 'unreachable', 'stopped', 'gone') OR nh.drift <> '[]'))
            WHEN h.status IS NOT NULL THEN (SELECT min(least(nh.checked_at, CASE WHEN nh.status = 'healthy' THEN (
                 SELECT min((s->>'passedAt')::timestamptz) FROM jsonb_path_query(nh.services, '$.* ? (@.status == "passing")') s) END)) FROM node_health nh WHERE nh.cluster_id = c.id) END AS checked_at,
       %[2]s AS key, page.matches
FROM page JOIN clusters c ON c.id = page.id
CROSS JOIN LATERAL jsonb_to_record(loom_provider(c.tenant_id, c.provider_name, '{}')) AS pb(label text, description text, icon text, version int)
CROSS JOIN LATERAL jsonb_to_record(c.template) AS tb(label text, description text, icon text)
LEFT JOIN operations o ON o.cluster_id = c.id AND o.number = c.latest_operation
LEFT JOIN progress p ON p.operation_id = o.id
LEFT JOIN cluster_health h ON h.cluster_id = c.id AND c.status <> 'terminated'
ORDER BY page.place`

const (
	// An index that has the order is walked as far as the page goes.
	walkedPage = `page AS MATERIALIZED (
    SELECT c.id, row_number() OVER (ORDER BY %[1]s %[2]s, c.id %[2]s) AS place, 0 AS matches FROM clusters c
    WHERE %[3]s
    ORDER BY %[1]s %[2]s, c.id %[2]s %[4]s)`
	// What costs looking for is looked for once, for the page and for the total.
	foundPage = `found AS MATERIALIZED (
    SELECT c.id, %[1]s AS sorted FROM clusters c
    WHERE %[3]s
), page AS MATERIALIZED (
    SELECT c.id, row_number() OVER (ORDER BY c.sorted %[2]s, c.id %[2]s) AS place, (SELECT count(*) FROM (SELECT FROM found LIMIT %[6]d) x) AS matches FROM found c
    WHERE %[5]s
    ORDER BY c.sorted %[2]s, c.id %[2]s %[4]s)`
)

const countClusters = `SELECT count(*) FROM (SELECT FROM clusters c WHERE %s LIMIT %d) x`

// ClustersByTenant reads a page of the clusters of a tenant. Each cluster is on
// exactly one page as long as nothing changes what the list is sorted by.
// Invalid for an unknown sort and for a cursor of another list.
func ClustersByTenant(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f ClusterFilter, p loom.Page) (ClusterList, error) {
	cursor, err := p.Check(3, ClusterSorts...)
	if err != nil {
		return ClusterList{}, err
	}
	field, descending := strings.CutPrefix(p.Sort, "-")
	sort := clusterSorts[field]
	// A page before a cursor is the page after it in the opposite order, turned round.
	back := p.Before != ""
	direction, comparison := "ASC", ">"
	if descending != back {
		direction, comparison = "DESC", "<"
	}
	var b binder
	where := f.where(&b, tenant)
	// Of few letters nobody knows how many clusters have them, and a walk may go wrong.
	once := f.searches() && !f.CountOnly && (!f.Uncounted || slices.ContainsFunc(f.Words, FewLetters))
	filtered := len(b.values)
	count := func() (n int, err error) {
		err = sqlx.GetContext(ctx, q, &n, fmt.Sprintf(countClusters, where, loom.CountLimit+1), b.values[:filtered]...)
		return n, wrap(err, "count clusters")
	}
	total := 0
	if !f.Uncounted && !once {
		if total, err = count(); err != nil {
			return ClusterList{}, err
		}
	}
	if f.CountOnly {
		return ClusterList{Total: total}, nil
	}
	column := sort.column
	if once {
		column = "c.sorted"
	}
	behind := "true"
	if cursor != nil {
		key, id, ok := f.place(cursor, sort.kind)
		if !ok {
			name := "after"
			if back {
				name = "before"
			}
			return ClusterList{}, loom.InvalidFields([]loom.FieldError{{Field: name,
				Message: "This cursor belongs to another list, order or filter; start from the first page."}})
		}
		behind = fmt.Sprintf("(%s, c.id) %s (%s::%s, %s)", column, comparison, b.add(key), sort.kind, b.add(id))
	}
	limit := ""
	if p.Limit > 0 {
		limit = "LIMIT " + b.add(p.Limit+1)
	}
	page := fmt.Sprintf(walkedPage, sort.column, direction, where+"\n  AND "+behind, limit)
	if once {
		page = fmt.Sprintf(foundPage, sort.column, direction, where, limit, behind, loom.CountLimit+1)
	}
	var rows []clusterSummaryRow
	query := fmt.Sprintf(clusterSummaries, page, sort.key, strconv.FormatBool(!f.Brief))
	if err := sqlx.SelectContext(ctx, q, &rows, query, b.values...); err != nil {
		return ClusterList{}, wrap(err, "list clusters")
	}
	switch {
	case f.Uncounted:
	case once && len(rows) > 0:
		total = rows[0].Matches
	case once && cursor != nil: // the page behind the last one still has a total
		if total, err = count(); err != nil {
			return ClusterList{}, err
		}
	}
	result := ClusterList{Total: total}
	rows, result.Next, result.Prev = loom.CutPage(p, rows, false, func(r clusterSummaryRow) []string {
		return []string{r.Key, strconv.FormatInt(r.ID, 10), f.fingerprint()}
	})
	result.Items = make([]loom.ClusterSummary, len(rows))
	for i := range rows {
		result.Items[i] = rows[i].summary()
	}
	return result, nil
}

// ClusterOfTenant is a cluster as superadmins see it: by name and number, without
// what is in it.
type ClusterOfTenant struct {
	ID       loom.ClusterID
	Tenant   string
	Owner    loom.UserID
	Name     string
	Template string
	Status   loom.ClusterStatus
	Nodes    int
	Created  time.Time
	Expires  time.Time
}

// ClusterOfTenantFilter limits a list over all tenants; empty parts mean any, but
// terminated clusters are only listed by their status.
type ClusterOfTenantFilter struct {
	Tenant, Owner, Words string
	Status               loom.ClusterStatus
}

// Leans on the primary key: the newest have the highest numbers.
var clusterOfTenantKeyset = keyset{
	columns: `c.id, t.name AS tenant_name, c.owner_id, c.name, c.template_name, c.status, c.created_at, c.expires_at,
	(SELECT count(*) FROM nodes n WHERE n.cluster_id = c.id AND n.state <> 'deleted') AS nodes`,
	from: "clusters c JOIN tenants t ON t.id = c.tenant_id", id: "c.id", idKind: "bigint",
	sorts: map[string]sortColumn{"id": {"c.id", "c.id::text", "bigint"}},
}

type clusterOfTenantRow struct {
	pageKeys
	ID       int64        `db:"id"`
	Tenant   string       `db:"tenant_name"`
	Owner    string       `db:"owner_id"`
	Name     string       `db:"name"`
	Template string       `db:"template_name"`
	Status   string       `db:"status"`
	Created  time.Time    `db:"created_at"`
	Expires  sql.NullTime `db:"expires_at"`
	Nodes    int          `db:"nodes"`
}

// ClusterListAllTenants reads a page of the clusters of all tenants, the newest
// first. Invalid for a cursor of another list.
func ClusterListAllTenants(ctx context.Context, q sqlx.ExtContext, f ClusterOfTenantFilter, p loom.Page) (found []ClusterOfTenant, next, prev string, err error) {
	var b binder
	conditions := []string{"c.status <> 'terminated'"}
	if f.Status != "" {
		conditions = []string{"c.status = " + b.add(f.Status)}
	}
	if f.Tenant != "" {
		conditions = append(conditions, "t.name = "+b.add(f.Tenant))
	}
	if f.Owner != "" {
		conditions = append(conditions, "c.owner_id = "+b.add(f.Owner))
	}
	searched, err := allWords(&b, f.Words, "c.name", "c.description", "c.template_name", "loom_pad(c.id)")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append(conditions, searched...)
	rows, next, prev, err := readKeyset[clusterOfTenantRow](ctx, q, clusterOfTenantKeyset, conditions, &b, f, p, "-id")
	if err != nil {
		return nil, "", "", err
	}
	for _, r := range rows {
		found = append(found, ClusterOfTenant{ID: loom.ClusterID(r.ID), Tenant: r.Tenant, Owner: loom.UserID(r.Owner), Name: r.Name, Template: r.Template,
			Status: loom.ClusterStatus(r.Status), Nodes: r.Nodes, Created: r.Created, Expires: r.Expires.Time})
	}
	return found, next, prev, nil
}

const liveClustersOf = `
SELECT status, count(*) AS n FROM clusters WHERE tenant_id = $1 AND status <> 'terminated' GROUP BY status`

// LiveClusters counts the clusters of a tenant that are not terminated, by status.
func LiveClusters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (map[loom.ClusterStatus]int, error) {
	var rows []struct {
		Status loom.ClusterStatus `db:"status"`
		N      int                `db:"n"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, liveClustersOf, tenant); err != nil {
		return nil, wrap(err, "count the clusters of a tenant")
	}
	counts := map[loom.ClusterStatus]int{}
	for _, r := range rows {
		counts[r.Status] = r.N
	}
	return counts, nil
}

// ClusterIDs lists the clusters that match, by id.
func ClusterIDs(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f ClusterFilter) ([]loom.ClusterID, error) {
	var b binder
	where := f.where(&b, tenant)
	var ids []loom.ClusterID
	err := sqlx.SelectContext(ctx, q, &ids, `SELECT c.id FROM clusters c WHERE `+where+` ORDER BY c.id`, b.values...)
	return ids, wrap(err, "list the ids of clusters")
}
