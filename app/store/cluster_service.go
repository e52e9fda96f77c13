package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// A provisioner says which versions it ran; the hashes of these are kept, since a file whose
// content is the same under another number is no other file.
const keepFiles = `
UPDATE nodes n SET service_files = n.service_files || jsonb_build_object(x.service, coalesce(n.service_files->x.service, '{}') || jsonb_build_object(x.action, x.files))
FROM (SELECT t.node_id, t.service, t.action, coalesce((
		SELECT jsonb_object_agg(f.key, r.sha256) FROM jsonb_each_text(i.files) f
		JOIN resources r ON r.tenant_id = t.tenant_id AND r.kind = 'automatortypes' AND r.plugin = split_part(f.key, '/', 1)
			AND r.type = split_part(f.key, '/', 2) AND r.name = split_part(f.key, '/', 3) AND r.version = f.value::int), '{}') AS files
	FROM unnest($1::bigint[], $2::jsonb[]) AS i (task, files) JOIN tasks t ON t.id = i.task) x
WHERE n.id = x.node_id`

// KeepFilesAllTenants keeps on the nodes of tasks that ended well the hashes of the files
// that their actions ran: files[i] gives the versions by loom.FileKey for tasks[i].
func KeepFilesAllTenants(ctx context.Context, tx *sqlx.Tx, tasks []loom.TaskID, files []map[string]int) error {
	bodies := make([]string, len(files))
	for i, f := range files {
		body, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("marshal the files of task %d: %w", tasks[i], err)
		}
		bodies[i] = string(body)
	}
	_, err := tx.ExecContext(ctx, keepFiles, pq.Array(taskIDs(tasks)), pq.Array(bodies))
	return wrap(err, "keep the files of %d tasks", len(tasks))
}

// ChangedFile is a file that an action of a service ran on a node of a cluster, and of which
// Version, with another content, is in use now, or staged.
type ChangedFile struct {
	Cluster loom.ClusterID  `db:"cluster_id"`
	Service string          `db:"service"`
	Action  loom.TaskAction `db:"action"`
	Plugin  string          `db:"plugin"`
	Type    string          `db:"type"`
	Name    string          `db:"name"`
	Version int             `db:"version"`
	// Staged is a version that is staged and not in use.
	Staged bool `db:"staged"`
}

const changedFiles = `
SELECT DISTINCT n.cluster_id, s.key AS service, a.key AS action, r.plugin, r.type, r.name, r.version, NOT r.live AS staged
FROM nodes n CROSS JOIN LATERAL jsonb_each(n.service_files) s CROSS JOIN LATERAL jsonb_each(s.value) a CROSS JOIN LATERAL jsonb_each_text(a.value) f
JOIN resources r ON r.tenant_id = $1 AND (CASE WHEN $3 THEN r.slated ELSE r.live END) AND r.kind = 'automatortypes' AND r.plugin || '/' || r.type || '/' || r.name = f.key
WHERE n.tenant_id = $1 AND n.cluster_id = ANY ($2) AND n.state <> 'deleted' AND s.key = ANY (n.services) AND r.sha256 <> f.value
ORDER BY 1, 2, 3, 4, 5, 6`

// ChangedFiles lists the files that services of clusters ran and that changed since; with release,
// as it is once the staged files are released.
func ChangedFiles(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, release bool, clusters ...loom.ClusterID) ([]ChangedFile, error) {
	var changed []ChangedFile
	err := sqlx.SelectContext(ctx, q, &changed, changedFiles, tenant, idArray(clusters), release)
	return changed, wrap(err, "list the changed files of %d clusters", len(clusters))
}

// ReleasedFile is a file of an automator that came into use after an action of a service
// failed.
type ReleasedFile struct {
	loom.ResourceRef
	Service string
	Action  loom.TaskAction
	// Version is in use now, Used was when the action began; 0: none.
	Version, Used int
}

const releasedFiles = `
SELECT f.service, f.action, r.kind, r.plugin, r.type, r.name, r.version, coalesce(u.version, 0) AS used
FROM (SELECT t.service, t.action, max(a.started_at) AS at
	FROM operations o JOIN tasks t ON t.operation_id = o.id JOIN attempts a ON a.task_id = t.id
	WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3 AND t.status = 'failed' AND t.service <> ''
	GROUP BY t.service, t.action) f
JOIN resources r ON r.tenant_id = $1 AND r.kind = 'automatortypes' AND r.live AND r.live_since > f.at
LEFT JOIN LATERAL (SELECT p.version, p.sha256 FROM resources p
	WHERE p.tenant_id = $1 AND p.kind = r.kind AND p.plugin = r.plugin AND p.type = r.type AND p.name = r.name AND p.live_since <= f.at
	ORDER BY p.live_since DESC LIMIT 1) u ON true
WHERE r.sha256 IS DISTINCT FROM u.sha256
ORDER BY 1, 2, 4, 5, 6`

// ReleasedFiles lists, for each action of a service that failed in an operation, all files
// with another content that came into use since. Which of them the action runs is for the
// caller to find.
func ReleasedFiles(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]ReleasedFile, error) {
	var rows []struct {
		Service string `db:"service"`
		Action  string `db:"action"`
		Kind    string `db:"kind"`
		Plugin  string `db:"plugin"`
		Type    string `db:"type"`
		Name    string `db:"name"`
		Version int    `db:"version"`
		Used    int    `db:"used"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, releasedFiles, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return nil, wrap(err, "list the files that came into use after operation %s failed", ref)
	}
	files := make([]ReleasedFile, len(rows))
	for i, r := range rows {
		files[i] = ReleasedFile{loom.ResourceRef{Kind: r.Kind, Plugin: r.Plugin, Type: r.Type, Name: r.Name}, r.Service, loom.TaskAction(r.Action), r.Version, r.Used}
	}
	return files, nil
}

const fileUses = `
SELECT f.value AS sha256, c.id, c.name, count(DISTINCT n.id) AS nodes
FROM nodes n JOIN clusters c ON c.id = n.cluster_id
CROSS JOIN LATERAL jsonb_each(n.service_files) s CROSS JOIN LATERAL jsonb_each(s.value) a CROSS JOIN LATERAL jsonb_each_text(a.value) f
WHERE n.tenant_id = $1 AND n.state <> 'deleted' AND c.status <> 'terminated' AND s.key = ANY (n.services) AND f.key = $2
GROUP BY f.value, c.id, c.name
ORDER BY c.name, c.id`

// FileUses lists the clusters that use a file of an automator, by content.
func FileUses(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.ResourceRef) ([]loom.ResourceCluster, error) {
	var rows []struct {
		SHA256 string `db:"sha256"`
		ID     int64  `db:"id"`
		Name   string `db:"name"`
		Nodes  int    `db:"nodes"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, fileUses, tenant, ref.FileKey()); err != nil {
		return nil, wrap(err, "list the clusters that use %s", ref.Name)
	}
	uses := make([]loom.ResourceCluster, len(rows))
	for i, r := range rows {
		uses[i] = loom.ResourceCluster{SHA256: r.SHA256, Cluster: loom.ClusterID(r.ID), Name: r.Name, Nodes: r.Nodes}
	}
	return uses, nil
}

const fileNodes = `
SELECT f.key, count(DISTINCT n.id) AS nodes
FROM nodes n JOIN clusters c ON c.id = n.cluster_id
CROSS JOIN LATERAL jsonb_each(n.service_files) s CROSS JOIN LATERAL jsonb_each(s.value) a CROSS JOIN LATERAL jsonb_each_text(a.value) f
WHERE n.tenant_id = $1 AND n.state <> 'deleted' AND c.status <> 'terminated' AND s.key = ANY (n.services) AND f.key = ANY ($2)
GROUP BY f.key`

// FileNodes counts the nodes that use files of automators, in whatever version.
func FileNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, refs []loom.ResourceRef) (map[loom.ResourceRef]int, error) {
	by, keys := map[string]loom.ResourceRef{}, []string{}
	for _, ref := range refs {
		if ref.Kind == string(loom.KindAutomatorType) {
			by[ref.FileKey()] = ref
			keys = append(keys, ref.FileKey())
		}
	}
	var rows []struct {
		Key   string `db:"key"`
		Nodes int    `db:"nodes"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, fileNodes, tenant, pq.Array(keys)); err != nil {
		return nil, wrap(err, "count the nodes that use %d files", len(refs))
	}
	nodes := make(map[loom.ResourceRef]int, len(rows))
	for _, r := range rows {
		nodes[by[r.Key]] = r.Nodes
	}
	return nodes, nil
}

// ServicesOfClusters gives the copies of services that clusters hold.
func ServicesOfClusters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, clusters []loom.ClusterID) (map[loom.ClusterID]map[string]loom.Service, error) {
	var rows []struct {
		ID       int64  `db:"id"`
		Services []byte `db:"services"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `SELECT id, services FROM clusters WHERE tenant_id = $1 AND id = ANY ($2)`, tenant, pq.Array(clusters))
	if err != nil {
		return nil, wrap(err, "read the services of %d clusters", len(clusters))
	}
	all := make(map[loom.ClusterID]map[string]loom.Service, len(rows))
	for _, r := range rows {
		services := map[string]loom.Service{}
		if err := decodeExact(r.Services, &services); err != nil {
			return nil, fmt.Errorf("read the services of cluster %d: %w", r.ID, err)
		}
		all[loom.ClusterID(r.ID)] = services
	}
	return all, nil
}
