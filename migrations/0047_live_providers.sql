-- Clusters keep no copy of their provider: each task reads it as it is then.

-- +goose Up

-- loom_provider is the newest version of a provider of a tenant, with a cluster's own
-- fields in front of those of the provider; only its name where it is gone.
-- +goose StatementBegin
CREATE FUNCTION loom_provider(p_tenant text, p_name text, p_own jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT v.body || jsonb_build_object('version', v.version, 'provisioner', coalesce(nullif(v.body->'provisioner', 'null'), '{}') || p_own)
         FROM catalog_versions v WHERE v.tenant_id = p_tenant AND v.kind = 'providers' AND v.name = p_name ORDER BY v.version DESC LIMIT 1),
        jsonb_build_object('name', p_name, 'provisioner', p_own))
$$;
-- +goose StatementEnd

ALTER TABLE clusters ADD COLUMN provider_fields jsonb NOT NULL DEFAULT '{}'; -- given for this cluster, without sensitive ones

-- A provider that was deleted under clusters with machines is there again, as the newest
-- of their copies says. Its sealed fields are gone and have to be given.
INSERT INTO catalog_versions (tenant_id, kind, name, version, body, created_by)
SELECT DISTINCT ON (c.tenant_id, c.provider_name) c.tenant_id, 'providers', c.provider_name, 1, c.provider - 'sealed' - 'version', 'system'
FROM clusters c
WHERE c.status <> 'terminated' AND NOT EXISTS (
    SELECT FROM catalog_versions v WHERE v.tenant_id = c.tenant_id AND v.kind = 'providers' AND v.name = c.provider_name)
ORDER BY c.tenant_id, c.provider_name, c.id DESC;

-- What a copy says beside the version that it was made from was given for its cluster.
-- Where that version is gone, the newest one stands for it, and only fields count that
-- users may give.
UPDATE clusters c SET provider_fields = coalesce((
    SELECT jsonb_object_agg(f.key, f.value)
    FROM jsonb_each(coalesce(nullif(c.provider->'provisioner', 'null'), '{}')) AS f
    WHERE coalesce(made.body, newest.body)->'provisioner'->f.key IS DISTINCT FROM f.value
      AND (made.body IS NOT NULL OR kind.body->'parameters'->'user'->'fields' ? f.key
           OR kind.body->'parameters'->'admin'->'fields'->f.key->>'override' = 'true')), '{}')
FROM clusters own
LEFT JOIN catalog_versions made ON made.tenant_id = own.tenant_id AND made.kind = 'providers' AND made.name = own.provider_name
    AND made.version = (own.provider->>'version')::int
LEFT JOIN LATERAL (SELECT v.body FROM catalog_versions v
    WHERE v.tenant_id = own.tenant_id AND v.kind = 'providers' AND v.name = own.provider_name ORDER BY v.version DESC LIMIT 1) newest ON true
LEFT JOIN LATERAL (SELECT v.body FROM catalog_versions v
    WHERE v.tenant_id = 'superadmin' AND v.kind = 'providertypes' AND v.name = own.provider->>'providertype' ORDER BY v.version DESC LIMIT 1) kind ON true
WHERE own.id = c.id;

-- Machines that are there keep the place that they were made at.
UPDATE nodes n SET results = n.results || jsonb_build_object('place', place.fields)
FROM clusters c
CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(f.key, f.value) AS fields FROM jsonb_each(coalesce(nullif(c.provider->'provisioner', 'null'), '{}')) AS f
    WHERE f.value <> '""' AND (f.key IN ('aws_region', 'openstack_region', 'openstack_tenant', 'rackspace_region', 'google_project', 'zone_name')
        OR f.key = 'ssh_key_resource' AND c.provider->>'providertype' IN ('local', 'aws', 'google', 'openstack', 'rackspace', 'digitalocean'))
) place
WHERE c.id = n.cluster_id AND c.status <> 'terminated' AND n.results ? 'providerid' AND place.fields IS NOT NULL;

-- As before, with the newest version of the provider.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_stamps(p_operations bigint[]) RETURNS TABLE (operation_id bigint, stamp text, nodes_version bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT o.id,
           concat_ws(' ', o.xmin, o.ctid, c.xmin, c.ctid, tn.xmin, tn.ctid, u.xmin, u.ctid,
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

-- As before, with the provider as it is.
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
                   'ssh_keys', to_jsonb(coalesce(u.ssh_keys, '{}')), 'resource_set', tn.resource_set, 'provider', loom_provider(c.tenant_id, c.provider_name, c.provider_fields), 'config', c.config,
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

ALTER TABLE clusters DROP COLUMN provider;
