-- loom_provider is the newest version of a provider of a tenant, with a cluster's own fields in
-- front of those of the provider; only its name where it is gone.
CREATE FUNCTION loom_provider(p_tenant text, p_name text, p_own jsonb) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT v.body || jsonb_build_object('version', v.version, 'provisioner', coalesce(nullif(v.body->'provisioner', 'null'), '{}') || p_own)
         FROM catalog_versions v WHERE v.tenant_id = p_tenant AND v.kind = 'providers' AND v.name = p_name ORDER BY v.version DESC LIMIT 1),
        jsonb_build_object('name', p_name, 'provisioner', p_own))
$$;
