-- loom_stamps gives, for each of some operations, a text that is another one once something
-- changed of what the specs of its tasks have in common (loom_spec, common), and the version of
-- its cluster's nodes.
CREATE FUNCTION loom_stamps(p_operations bigint[]) RETURNS TABLE (operation_id bigint, stamp text, nodes_version bigint)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off
AS $$
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
