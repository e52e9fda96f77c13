-- loom_backlog_tenants gives the tenants with a backlog, however long that is.
CREATE FUNCTION loom_backlog_tenants() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE named AS (
        (SELECT b.tenant_id FROM backlog_lots b ORDER BY b.tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT b.tenant_id FROM backlog_lots b WHERE b.tenant_id > named.tenant_id ORDER BY b.tenant_id LIMIT 1)
        FROM named WHERE named.tenant_id IS NOT NULL
    )
    SELECT tenant_id FROM named WHERE tenant_id IS NOT NULL
$$;
