-- loom_lots puts tasks into the backlog, in their order. The caller marks them.
CREATE FUNCTION loom_lots(p_tasks bigint[], p_tenant text, p_operation bigint, p_priority smallint, p_since timestamptz) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO backlog_lots (tenant_id, operation_id, priority, since, tasks)
    SELECT p_tenant, p_operation, p_priority, p_since, p_tasks[s + 1:s + 100]
    FROM generate_series(0, cardinality(p_tasks) - 1, 100) AS s
    ORDER BY s
$$;
