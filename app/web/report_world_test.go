package web_test

import (
	"fmt"
	"time"

	"loom/app/loom"
)

// tenantID gives the id of a tenant by its name.
func (r *rooms) tenantID(name string) loom.TenantID {
	r.t.Helper()
	var id string
	check(r.t, r.db.GetContext(r.ctx, &id, `SELECT id FROM tenants WHERE name = $1 AND deleted_at IS NULL`, name))
	return loom.TenantID(id)
}

// exec runs a statement.
func (r *rooms) exec(query string, args ...any) {
	r.t.Helper()
	_, err := r.db.ExecContext(r.ctx, query, args...)
	check(r.t, err)
}

// past stores a cluster as it would be after its making ended, some time ago, with
// nodes that were used for so long; used 0 means that they still are. It gives the
// number of the cluster.
func (r *rooms) past(tenant loom.TenantID, owner, template, hardware string, nodes int, ago, used time.Duration) int {
	r.t.Helper()
	var cluster, operation int
	check(r.t, r.db.GetContext(r.ctx, &cluster, `
		INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services, created_at)
		VALUES ($1, $2, $3, 'active', $3, 1, '{}', 'local', '{}', '{}', now() - make_interval(secs => $4)) RETURNING id`, tenant, owner, template, ago.Seconds()))
	check(r.t, r.db.GetContext(r.ctx, &operation, `
		INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, created_at, started_at, ended_at)
		VALUES ($1, $2, 1, 'cluster_create', 'complete', $3, now() - make_interval(secs => $4), now() - make_interval(secs => $4), now() - make_interval(secs => $4)) RETURNING id`,
		tenant, cluster, owner, ago.Seconds()))
	r.exec(`UPDATE clusters SET latest_operation = 1 WHERE id = $1`, cluster)
	r.exec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, after, created_at)
		VALUES ($1, $2, 'session', 'create', 'cluster', $3, 'ok', jsonb_build_object('operationId', $3 || '-001', 'numMachines', $4::int), now() - make_interval(secs => $5))`,
		tenant, owner, loom.ClusterID(cluster).String(), nodes, ago.Seconds())
	for n := range nodes {
		id := fmt.Sprintf("00000000-0000-4000-8000-%06d%06d", cluster, n+1)
		r.exec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, state)
			VALUES ($1, $2, $3, $4, 'node', $5, 'debian', 'f', 'i', 'root', '{}', '{}', 'ready')`, id, cluster, tenant, n+1, hardware)
		r.exec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, started_at, ended_at)
			VALUES ($1, $2, $3, $4, $5, 'create', 'complete', now() - make_interval(secs => $6), now() - make_interval(secs => $6))`, operation, tenant, cluster, n+1, id, ago.Seconds())
		if used > 0 {
			r.exec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, started_at, ended_at)
				VALUES ($1, $2, $3, $4, $5, 'delete', 'complete', now() - make_interval(secs => $6), now() - make_interval(secs => $6))`, operation, tenant, cluster, nodes+n+1, id, (ago - used).Seconds())
		}
	}
	return cluster
}
