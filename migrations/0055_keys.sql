-- Who asked for keys on the machines of a cluster, beside its owner, and what tasks that put
-- keys there are given: the operations say who asked, so nothing else has to keep it.

-- +goose Up

CREATE INDEX operations_authorize ON operations (cluster_id) WHERE action = 'cluster_authorize';

-- askers are the users who asked for their keys on the machines of a cluster and who may
-- still see it, once for each time they asked. One who got the id of a deleted user asked
-- for nothing. A view, because it becomes part of the plan of what reads it.
CREATE VIEW askers AS
SELECT o.cluster_id, u.id, u.ssh_keys, concat(u.xmin, u.ctid) AS stamp
FROM operations o
JOIN clusters c ON c.id = o.cluster_id
JOIN users u ON u.tenant_id = o.tenant_id AND u.id = o.requested_by
WHERE o.action = 'cluster_authorize' AND o.started_at IS NOT NULL
  AND o.created_at >= u.created_at AND u.id <> c.owner_id AND u.role = 'admin' AND NOT u.disabled;

-- As before, with those who asked.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_stamps(p_operations bigint[]) RETURNS TABLE (operation_id bigint, stamp text, nodes_version bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT o.id,
           concat_ws(' ', o.xmin, o.ctid, c.xmin, c.ctid, tn.xmin, tn.ctid, u.xmin, u.ctid,
               (SELECT string_agg(a.stamp, ' ' ORDER BY a.id) FROM askers a WHERE a.cluster_id = c.id),
               (SELECT concat(v.xmin, v.ctid) FROM catalog_versions v
                WHERE v.tenant_id = c.tenant_id AND v.kind = 'providers' AND v.name = c.provider_name ORDER BY v.version DESC LIMIT 1),
               (SELECT string_agg(concat(s.xmin, s.ctid), ' ' ORDER BY s.entity, s.field) FROM secrets s
                WHERE s.tenant_id = c.tenant_id AND s.entity IN ('provider:' || c.provider_name, 'cluster:' || loom_pad(c.id)))),
           coalesce((SELECT v.version FROM node_changes v WHERE v.cluster_id = c.id), 0)
    FROM operations o
    JOIN clusters c ON c.id = o.cluster_id
    JOIN tenants tn ON tn.id = c.tenant_id
    LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.owner_id
    WHERE o.id = ANY(p_operations);
END
$$;
-- +goose StatementEnd
ALTER FUNCTION loom_stamps SET enable_seqscan = off;

-- As before, with the keys of those who asked.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_spec(p_tasks bigint[])
RETURNS TABLE (task_id bigint, operation_id bigint, task_number int, action text, service text, task_status text, attempt int, old boolean, undo boolean,
               started_at timestamptz, node_id uuid, incarnation int, leaving boolean, results jsonb, sealed_node jsonb, common jsonb)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT t.id AS task, t.operation_id AS operation, t.number, t.action, t.service, t.status, t.attempt, t.old, t.undo,
               a.started_at, t.node_id, n.incarnation, n.leaving, n.results,
               (SELECT jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', '')))
                FROM secrets s WHERE s.tenant_id = t.tenant_id AND s.entity = 'node:' || t.node_id::text) AS sealed
        FROM tasks t JOIN nodes n ON n.id = t.node_id
        LEFT JOIN attempts a ON a.task_id = t.id AND a.number = t.attempt
        WHERE t.id = ANY(p_tasks)
    ), first AS MATERIALIZED (
        SELECT min(f.task) AS task FROM found f GROUP BY f.operation, f.service, f.old, f.undo
    )
    SELECT f.*, CASE WHEN f.task IN (SELECT first.task FROM first) THEN (
        SELECT jsonb_build_object('tenant', c.tenant_id, 'cluster', c.id, 'operation', o.number, 'owner', c.owner_id,
                   'ssh_keys', (SELECT coalesce(jsonb_agg(k.line), '[]')
                                FROM (SELECT unnest(u.ssh_keys) AS line
                                      UNION ALL SELECT unnest(a.ssh_keys) FROM askers a WHERE a.cluster_id = c.id) AS k),
                   'resource_set', tn.resource_set, 'provider', loom_provider(c.tenant_id, c.provider_name, c.provider_fields), 'config', c.config,
                   'service', CASE WHEN f.old THEN o.before->'services'->f.service
                                   WHEN f.undo THEN coalesce(o.after, '{}')->'services'->f.service
                                   ELSE c.services->f.service END,
                   'hardware', c.type_settings->'hardware', 'image', c.type_settings->'image',
                   'nodes_version', coalesce((SELECT v.version FROM node_changes v WHERE v.cluster_id = c.id), 0),
                   'sealed', (SELECT jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', ''))) FROM secrets s
                              WHERE s.tenant_id = c.tenant_id AND s.entity IN ('provider:' || c.provider_name, 'cluster:' || loom_pad(c.id))),
                   'now', now(), 'stamp', (SELECT st.stamp FROM loom_stamps(ARRAY[o.id]) AS st))
        FROM operations o
        JOIN clusters c ON c.id = o.cluster_id
        JOIN tenants tn ON tn.id = c.tenant_id
        LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.owner_id
        WHERE o.id = f.operation) END
    FROM found f;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION loom_spec SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_spec SET enable_seqscan = off;
ALTER FUNCTION loom_spec SET jit = off;
