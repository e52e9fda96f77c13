-- loom_spec reads what the specs of tasks are built from, but for the description of nodes.
-- Tasks of one service form a group: what they have in common is large, so
-- that it comes with the first of them only.
CREATE FUNCTION loom_spec(p_tasks bigint[])
RETURNS TABLE (task_id bigint, operation_id bigint, task_number int, action text, service text, task_status text, attempt int, old boolean, undo boolean,
               started_at timestamptz, node_id uuid, incarnation int, leaving boolean, results jsonb, sealed_node jsonb, common jsonb)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
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
                   'now', now())
        FROM operations o
        JOIN clusters c ON c.id = o.cluster_id
        JOIN tenants tn ON tn.id = c.tenant_id
        LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.owner_id
        WHERE o.id = f.operation) END
    FROM found f;
END
$$;
