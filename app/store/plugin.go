package store

import (
	"context"
	"encoding/json"
	"fmt"

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

const pluginTimeouts = `
SELECT t.name, t.timeouts FROM (
	SELECT DISTINCT ON (kind, name) kind, name, body->'timeouts' AS timeouts FROM catalog_versions
	WHERE tenant_id = $1 AND kind IN ($2, $3) ORDER BY kind, name, version DESC) t
WHERE jsonb_typeof(t.timeouts) = 'object'`

// PluginTimeouts reads the time limits that plugin types set, by plugin. A provider
// type and an automator type of one name have no action in common.
func PluginTimeouts(ctx context.Context, q sqlx.ExtContext) (map[string]loom.PluginTimeouts, error) {
	var rows []struct {
		Name     string `db:"name"`
		Timeouts []byte `db:"timeouts"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, pluginTimeouts, loom.SuperTenant, loom.KindProviderType, loom.KindAutomatorType)
	if err != nil {
		return nil, wrap(err, "read the time limits of plugin types")
	}
	all := make(map[string]loom.PluginTimeouts, len(rows))
	for _, r := range rows {
		var of loom.PluginTimeouts
		if err := json.Unmarshal(r.Timeouts, &of); err != nil {
			return nil, fmt.Errorf("read the time limits of the plugin type %s: %w", r.Name, err)
		}
		if all[r.Name] == nil {
			all[r.Name] = loom.PluginTimeouts{}
		}
		for action, seconds := range of {
			all[r.Name][action] = seconds
		}
	}
	return all, nil
}
