package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// ResourceNameFilter narrows the list of plugin resources; empty fields do not filter. Q
// are words to be found in name, plugin or type.
type ResourceNameFilter struct {
	Q, Kind, Plugin, Type string
	Status                loom.ResourceStatus
}

// ResourceSorts lists what plugin resources can be sorted by, the default first: by
// plugin, type and name.
var ResourceSorts = []string{"plugin", "-plugin", "name", "-name", "-createTime", "createTime"}

type resourceSummaryRow struct {
	resourceRow
	LiveVersion   int `db:"live_version"`
	SlatedVersion int `db:"slated_version"`
	Versions      int `db:"versions"`
}

func (r resourceSummaryRow) summary() loom.ResourceSummary {
	return loom.ResourceSummary{Resource: r.resource(), LiveVersion: r.LiveVersion, SlatedVersion: r.SlatedVersion, Versions: r.Versions}
}

// resourceNames has a row for each name, with its newest version; a filter of the tenant
// reaches into the grouping.
const resourceNames = `(
	SELECT tenant_id, kind, plugin, type, name, max(version) AS newest, count(*) AS versions,
		coalesce(max(version) FILTER (WHERE live), 0) AS live_version, coalesce(max(version) FILTER (WHERE slated), 0) AS slated_version
	FROM resources GROUP BY tenant_id, kind, plugin, type, name) s
JOIN resources r ON r.tenant_id = s.tenant_id AND r.kind = s.kind AND r.plugin = s.plugin AND r.type = s.type AND r.name = s.name AND r.version = s.newest`

var resourceKeyset = keyset{
	columns: `r.kind, r.plugin, r.type, r.name, r.version, r.live, r.slated, r.size_bytes, r.sha256, r.format, r.permissions, r.object, r.sealed, r.created_at, r.created_by,
	s.live_version, s.slated_version, s.versions`,
	from: resourceNames, id: `(s.kind || '/' || s.plugin || '/' || s.type || '/' || s.name) COLLATE "C"`, idKind: "text",
	sorts: map[string]sortColumn{
		"plugin":     {`(s.plugin || '/' || s.type || '/' || s.name) COLLATE "C"`, "s.plugin || '/' || s.type || '/' || s.name", "text"},
		"name":       {`s.name COLLATE "C"`, "s.name", "text"},
		"createTime": byCreation("r"),
	},
}

// resourceStatus is what a resource as a whole has that status by
// (loom.ResourceSummary.Status).
var resourceStatus = map[loom.ResourceStatus]string{
	loom.ResourceInactive: "s.live_version = 0 AND s.slated_version = 0",
	loom.ResourceStaged:   "s.slated_version <> 0 AND s.slated_version <> s.live_version",
	loom.ResourceActive:   "s.live_version <> 0 AND s.slated_version = s.live_version",
	loom.ResourceRecalled: "s.live_version <> 0 AND s.slated_version = 0",
}

// ResourcePage reads a page of the plugin resources of a tenant, one for each name. Invalid
// for an unknown sort and for a cursor of another list.
func ResourcePage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f ResourceNameFilter, p loom.Page) (found []loom.ResourceSummary, next, prev string, err error) {
	var b binder
	conditions, err := allWords(&b, f.Q, "s.name", "s.plugin", "s.type")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append([]string{"s.tenant_id = " + b.add(tenant)}, conditions...)
	for _, c := range []struct{ column, value string }{{"s.kind", f.Kind}, {"s.plugin", f.Plugin}, {"s.type", f.Type}} {
		if c.value != "" {
			conditions = append(conditions, c.column+" = "+b.add(c.value))
		}
	}
	if is := resourceStatus[f.Status]; is != "" {
		conditions = append(conditions, "("+is+")")
	}
	type row struct {
		resourceSummaryRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, resourceKeyset, conditions, &b, f, p, ResourceSorts...)
	for _, r := range rows {
		found = append(found, r.summary())
	}
	return found, next, prev, err
}

// ResourcesWaiting counts the versions that the next sync of a tenant puts in use, and
// those that it takes out of use.
func ResourcesWaiting(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (in, out int, err error) {
	var n struct {
		In  int `db:"coming"`
		Out int `db:"going"`
	}
	err = sqlx.GetContext(ctx, q, &n, `SELECT count(*) FILTER (WHERE slated) AS coming, count(*) FILTER (WHERE live) AS going FROM resources WHERE tenant_id = $1 AND live <> slated`, tenant)
	return n.In, n.Out, wrap(err, "count what waits for a sync")
}
