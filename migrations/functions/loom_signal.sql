-- loom_signal tells of tasks and nodes that changed: one event per operation, and where nodes
-- are given one per cluster, whatever the size of the batch. More than 100 are not
-- named. One statement: it is part of every batch of tasks that end, and with few
-- of them a statement costs more than its rows.
CREATE FUNCTION loom_signal(p_tasks bigint[], p_nodes uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (tenant_id, topic, ids)
    WITH of_operation AS (
        SELECT t.operation_id, count(*) AS n, array_agg(t.number::text ORDER BY t.number) AS numbers
        FROM tasks t WHERE t.id = ANY(p_tasks) AND NOT t.gate GROUP BY t.operation_id
    ), of_cluster AS MATERIALIZED (
        SELECT n.tenant_id, n.cluster_id, count(*) AS n, array_agg(n.id::text ORDER BY n.number) AS nodes
        FROM nodes n WHERE n.id = ANY(p_nodes) GROUP BY n.tenant_id, n.cluster_id
    )
    SELECT o.tenant_id, 'op:' || loom_pad(o.cluster_id) || '/' || o.number, CASE WHEN t.n > 100 THEN '{}' ELSE t.numbers END
    FROM of_operation t JOIN operations o ON o.id = t.operation_id
    UNION ALL
    SELECT c.tenant_id, 'cluster:' || loom_pad(c.cluster_id), CASE WHEN c.n > 100 THEN '{}' ELSE c.nodes END FROM of_cluster c
    UNION ALL
    SELECT c.tenant_id, 'clusters', array_agg(loom_pad(c.cluster_id) ORDER BY c.cluster_id) FROM of_cluster c GROUP BY c.tenant_id;
    PERFORM pg_notify('loom_event', '');
END
$$;
