package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// ClusterFacets are the choices of the facets of a list of clusters, "" for any. Lease has the
// values of the term of searches.
type ClusterFacets struct{ Health, Template, Label, Lease string }

// The values of the facet of health besides those of loom.HealthStatus, which count clusters that are active.
const (
	FacetChanging = "changing" // an operation runs
	FacetFailed   = "failed"   // the last one failed
)

// LeaseWithin are the times within which leases end that the facet counts, with their seconds.
var LeaseWithin = []struct {
	Value   string
	Seconds int64
}{{"48h", 48 * 3600}, {"7d", 7 * 86_400}, {"30d", 30 * 86_400}}

// FacetCount is how many clusters have a value.
type FacetCount struct {
	Value string `db:"value"`
	N     int    `db:"n"`
}

// ClusterCounts counts clusters: those of an owner, those shared with him, all that live and
// those that are terminated; and by value of each facet those that a list has, as the other facets are
// chosen. Counts go as far as loom.CountLimit and one more; Many says that more match,
// so that those of facets are of a part.
type ClusterCounts struct {
	Mine, Shared, All, Terminated   int
	Health, Template, Label, Leases []FacetCount
	Many                            bool
}

const (
	// maxFacet is how many values a facet has.
	maxFacet = 50

	// The search, which is the costly part, runs once; each facet counts its result.
	facetCounts = `
WITH base AS MATERIALIZED (
    SELECT c.id, c.status, c.template_name, c.expires_at, c.labels FROM clusters c WHERE %[1]s LIMIT %[2]d
), seen AS MATERIALIZED (
    SELECT c.template_name, c.expires_at, c.labels, f.health, %[3]s AS in_health, %[4]s AS in_template, %[5]s AS in_label, %[6]s AS in_lease
    FROM base c LEFT JOIN cluster_health h ON h.cluster_id = c.id
    CROSS JOIN LATERAL (SELECT CASE c.status WHEN 'pending' THEN 'changing' WHEN 'active' THEN coalesce(h.status, '') WHEN 'terminated' THEN '' ELSE 'failed' END AS health) f
)
SELECT 'health' AS facet, health AS value, count(*) AS n FROM seen WHERE in_template AND in_label AND in_lease GROUP BY health
UNION ALL (SELECT 'template', template_name, count(*) FROM seen WHERE in_health AND in_label AND in_lease GROUP BY template_name ORDER BY 3 DESC, 2 LIMIT %[7]d)
UNION ALL (SELECT 'label', l.key || '=' || l.value, count(*) FROM seen CROSS JOIN LATERAL jsonb_each_text(labels) l
    WHERE in_health AND in_template AND in_lease GROUP BY l.key, l.value ORDER BY 3 DESC, 2 LIMIT %[7]d)
UNION ALL SELECT 'lease', l.value, count(*) FROM seen CROSS JOIN LATERAL (VALUES %[8]s) l(value, has)
    WHERE l.has AND in_health AND in_template AND in_label GROUP BY l.value
UNION ALL SELECT 'base', '', count(*) FROM base
UNION ALL SELECT 'scope', 'mine', count(*) FROM (SELECT FROM clusters c WHERE c.tenant_id = $1 AND c.owner_id = %[9]s AND c.status <> 'terminated' LIMIT %[2]d) x
UNION ALL SELECT 'scope', 'shared', count(*) FROM (SELECT FROM clusters c WHERE c.tenant_id = $1 AND %[11]s AND c.status <> 'terminated' LIMIT %[2]d) x
UNION ALL SELECT 'scope', 'all', count(*) FROM (SELECT FROM clusters c WHERE %[10]s AND c.status <> 'terminated' LIMIT %[2]d) x
UNION ALL SELECT 'scope', 'terminated', count(*) FROM (SELECT FROM clusters c WHERE %[10]s AND c.status COLLATE "C" = 'terminated' LIMIT %[2]d) x`
)

// CountClusters counts the clusters of a tenant for the facets of a list, which the filter
// narrows before the facets do, and those that its reader owns or that are shared with him.
func CountClusters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f ClusterFilter, chosen ClusterFacets, reader Viewer) (ClusterCounts, error) {
	var b binder
	where := f.where(&b, tenant) // its first value is the tenant
	health, template, label, lease := "true", "true", "true", "true"
	if chosen.Health != "" {
		health = "f.health = " + b.add(chosen.Health)
	}
	if chosen.Template != "" {
		template = b.termCondition("$1", "template", chosen.Template)
	}
	if chosen.Label != "" {
		label = b.termCondition("$1", "label", chosen.Label)
	}
	if condition := b.leaseCondition(chosen.Lease); chosen.Lease != "" && condition != "" {
		lease = "coalesce(" + condition + ", false)"
	}
	leases := []string{"('none', expires_at IS NULL)", "('ended', expires_at <= now())"}
	for _, w := range LeaseWithin {
		leases = append(leases, fmt.Sprintf("('%s', expires_at < now() + make_interval(secs => %d))", w.Value, w.Seconds))
	}
	scope := strings.Join(append([]string{"c.tenant_id = $1"}, b.seen(f.Viewer)...), " AND ")
	query := fmt.Sprintf(facetCounts, where, loom.CountLimit+1, health, template, label, lease, maxFacet, strings.Join(leases, ", "), b.add(reader.User), scope, b.ofOthers(reader))
	var rows []struct {
		Facet string `db:"facet"`
		FacetCount
	}
	var counts ClusterCounts
	if err := sqlx.SelectContext(ctx, q, &rows, query, b.values...); err != nil {
		return counts, wrap(err, "count clusters by facet")
	}
	scopes := map[string]*int{"mine": &counts.Mine, "shared": &counts.Shared, "all": &counts.All, "terminated": &counts.Terminated}
	facets := map[string]*[]FacetCount{"health": &counts.Health, "template": &counts.Template, "label": &counts.Label, "lease": &counts.Leases}
	for _, r := range rows {
		switch {
		case r.Facet == "scope":
			*scopes[r.Value] = r.N
		case r.Facet == "base":
			counts.Many = r.N > loom.CountLimit
		default:
			*facets[r.Facet] = append(*facets[r.Facet], r.FacetCount)
		}
	}
	return counts, nil
}
