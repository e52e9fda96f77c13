package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// UsageFilter narrows the usage of nodes; empty fields do not filter.
type UsageFilter struct {
	Tenant   loom.TenantID
	User     loom.UserID
	Cluster  loom.ClusterID
	Template string
}

// values are the arguments of the statements, $1 to $4.
func (f UsageFilter) values(more ...any) []any {
	return append([]any{f.Tenant, f.User, int64(f.Cluster), f.Template}, more...)
}

// usageSplits are what usage can be split by, with the expression of each.
var usageSplits = map[string]string{
	"":                `''`,
	"user":            `c.owner_id`,
	"clustertemplate": `c.template_name`,
	"cluster":         `loom_pad(c.id)`,
	"hardwaretype": `coalesce((SELECT r.types[i] FROM generate_subscripts(r.operations, 1) i WHERE r.operations[i] > t.operation_id ORDER BY i LIMIT 1),
                         (SELECT n.hardwaretype FROM nodes n WHERE n.id = t.node_id), '')`,
	"provider": `c.provider_name`,
	"tenant":   `coalesce((SELECT n.name FROM tenants n WHERE n.id = t.tenant_id), t.tenant_id)`,
}

// A node has the hardware type that the next operation which changes types found,
// or its present one after the last of them. What an undone resize made before it
// was undone counts under the type that was given back.
const retyped = `
    LEFT JOIN (SELECT p.node, array_agg(p.operation ORDER BY p.operation) AS operations, array_agg(p.type ORDER BY p.operation) AS types
               FROM (SELECT o.id AS operation, (n->>'id')::uuid AS node, n->>'hardwaretype' AS type
                     FROM operations o CROSS JOIN LATERAL jsonb_array_elements(o.before->'nodes') n
                     WHERE o.action IN ('cluster_resize', 'rollback') AND jsonb_typeof(o.before->'nodes') = 'array'
                       AND ($1 = '' OR o.tenant_id = $1)) p
               GROUP BY p.node) r ON r.node = t.node_id`

// livesBy gives the statement that finds lives, with what they are split by.
func livesBy(split string) string {
	join := ""
	if split == "hardwaretype" {
		join = retyped
	}
	return fmt.Sprintf(nodeLives, usageSplits[split], join)
}

// A node lives from the completion of CREATE to that of the next DELETE, or until
// now. A second CREATE without a DELETE between found the same machine: the life
// goes on. A machine that a delete left behind lives until it is gone or given up.
// Leans on tasks_lives.
var nodeLives = `
WITH turns AS (
    SELECT %s AS split, t.action, t.ended_at, lag(t.action) OVER turn AS before,
           min(t.ended_at) FILTER (WHERE t.action = 'delete') OVER (turn ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS gone
    FROM (SELECT id, operation_id, tenant_id, cluster_id, node_id, action, ended_at FROM tasks
          WHERE action IN ('create', 'delete') AND status IN ('complete', 'skipped') AND (status = 'complete' OR action = 'delete')
          UNION ALL
          SELECT 0, 0, tenant_id, cluster_id, node_id, 'delete', ended_at FROM leftovers WHERE ending IN ('removed', 'abandoned')) t
    JOIN clusters c ON c.id = t.cluster_id%s
    WHERE t.ended_at IS NOT NULL AND ($1 = '' OR t.tenant_id = $1) AND ($2 = '' OR c.owner_id = $2)
      AND ($3::bigint = 0 OR c.id = $3) AND ($4 = '' OR c.template_name = $4)
    WINDOW turn AS (PARTITION BY t.cluster_id, t.node_id ORDER BY t.ended_at, t.id)
), lives AS (
    SELECT split, extract(epoch FROM ended_at) AS began, extract(epoch FROM coalesce(gone, now())) AS ended
    FROM turns WHERE action = 'create' AND before IS DISTINCT FROM 'create'
)`

// FirstUseAllTenants gives the second in which the first node that matches came to
// be, ok false when there never was one, and the present one by the database clock.
func FirstUseAllTenants(ctx context.Context, q sqlx.ExtContext, f UsageFilter) (first int64, ok bool, now int64, err error) {
	var row struct {
		First sql.NullInt64 `db:"first"`
		Now   int64         `db:"now"`
	}
	query := livesBy("") + `
SELECT floor(min(began))::bigint AS first, floor(extract(epoch FROM now()))::bigint AS now FROM lives`
	err = sqlx.GetContext(ctx, q, &row, query, f.values()...)
	return row.First.Int64, row.First.Valid, row.Now, wrap(err, "find the first use of a node")
}

// UsedTime is the time that nodes were used in an interval: Value is a whole number
// in decimal, rounded down.
type UsedTime struct {
	// Interval counts from 0.
	Interval int    `db:"interval"`
	Split    string `db:"split"`
	Value    string `db:"value"`
}

// What was used up to a mark b is the sum of b - began over the lives that began
// before it, less the sum of b - ended over those that ended: counts and sums of
// times up to each mark are enough, however many lives and intervals there are.
const usedTime = `, used AS (
    SELECT split, greatest(began, ($5::numeric[])[1]) AS began, ended
    FROM lives WHERE began < $6::numeric AND ended > ($5::numeric[])[1] AND ended > began
), turning AS (
    SELECT split, began AS at, 1 AS sign FROM used
    UNION ALL
    SELECT split, ended, -1 FROM used WHERE ended < $6::numeric
), steps AS (
    SELECT split, width_bucket(at, $5::numeric[]) AS place, sum(sign) AS alive, sum(sign * at) AS at FROM turning GROUP BY 1, 2
), marks AS (
    SELECT mark, place FROM unnest($5::numeric[]) WITH ORDINALITY AS m (mark, place)
), upto AS (
    SELECT v.split, m.place,
           m.mark * coalesce(sum(s.alive) OVER before, 0) - coalesce(sum(s.at) OVER before, 0) AS total
    FROM (SELECT DISTINCT split COLLATE "C" AS split FROM used ORDER BY 1 LIMIT $10) v CROSS JOIN marks m
    LEFT JOIN steps s ON s.split = v.split AND s.place = m.place
    WINDOW before AS (PARTITION BY v.split ORDER BY m.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), differences AS (
    SELECT split, place, lead(total) OVER (PARTITION BY split ORDER BY place) - total AS value FROM upto
)
SELECT place - 1 AS interval, split, floor(value * $7::numeric / $8::numeric)::text AS value
FROM differences WHERE value IS NOT NULL ORDER BY place, split COLLATE "C" LIMIT $9`

// UsedTimeAllTenants sums up the time for which nodes were used between each two
// neighboring marks, which are seconds since 1970 and ascend. Values are seconds
// times/per: 1 and 60 give minutes. Split is "" or one of user, clustertemplate,
// cluster, hardwaretype, provider and tenant; what was not used at all is left
// out, and so is what comes behind the first limit values: no more parts are summed up than
// it takes to reach the limit.
func UsedTimeAllTenants(ctx context.Context, q sqlx.ExtContext, f UsageFilter, split string, marks []int64, times, per int64, limit int) ([]UsedTime, error) {
	if _, ok := usageSplits[split]; !ok || len(marks) < 2 {
		return nil, fmt.Errorf("usage cannot be split by %q into %d intervals", split, len(marks)-1)
	}
	var used []UsedTime
	intervals := len(marks) - 1
	err := sqlx.SelectContext(ctx, q, &used, livesBy(split)+usedTime,
		f.values(pq.Array(marks), marks[intervals], times, per, limit, (limit+intervals-1)/intervals)...)
	return used, wrap(err, "sum up the use of nodes")
}
