package store

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

const carriedPlugins = `
SELECT count(DISTINCT p.id) AS live, coalesce(array_agg(DISTINCT x.name) FILTER (WHERE x.name IS NOT NULL), '{}') AS names
FROM processes p LEFT JOIN LATERAL unnest(p.plugins) AS x (name) ON true
WHERE p.kind = 'provisioner' AND p.expires_at > now() AND (p.only_tenant IS NULL OR p.only_tenant = $1)`

// CarriedPlugins lists the plugin types that live provisioners carry for a
// tenant; live is how many provisioners there are.
func CarriedPlugins(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (live int, names []string, err error) {
	var row struct {
		Live  int            `db:"live"`
		Names pq.StringArray `db:"names"`
	}
	err = sqlx.GetContext(ctx, q, &row, carriedPlugins, tenant)
	return row.Live, row.Names, wrap(err, "read the plugins of live provisioners")
}
