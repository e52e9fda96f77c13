package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// clustersMadeFrom looks at the copies that clusters keep, so that what is
// deleted from the catalog is still found.
var clustersMadeFrom = `
SELECT id FROM clusters c
WHERE tenant_id = $1 AND status <> 'terminated' AND ` + seenBy("$2") + ` AND CASE $3
	WHEN 'clustertemplates' THEN template_name = $4
	WHEN 'partialtemplates' THEN coalesce(template->'includes', '[]') @> jsonb_build_array(jsonb_build_object('name', $4::text))
	WHEN 'providers' THEN provider_name = $4
	WHEN 'services' THEN jsonb_exists(services, $4)
	WHEN 'hardwaretypes' THEN jsonb_exists(coalesce(type_settings->'hardware', '{}'), $4)
	WHEN 'imagetypes' THEN jsonb_exists(coalesce(type_settings->'image', '{}'), $4)
	WHEN 'providertypes' THEN loom_provider(tenant_id, provider_name, '{}')->>'providertype' = $4
	WHEN 'automatortypes' THEN EXISTS (SELECT FROM nodes WHERE nodes.cluster_id = c.id AND nodes.state <> 'deleted' AND $4 = ANY (nodes.automators))
	ELSE false END
ORDER BY id`

// ClustersMadeFrom lists the clusters that are not terminated, are made from a catalog
// entry and are seen by a viewer; see SeenBy.
func ClustersMadeFrom(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer loom.UserID, kind loom.EntityKind, name string) ([]loom.ClusterID, error) {
	var ids []loom.ClusterID
	err := sqlx.SelectContext(ctx, q, &ids, clustersMadeFrom, tenant, viewer, kind, name)
	return ids, wrap(err, "list clusters made from %s %s", kind, name)
}
