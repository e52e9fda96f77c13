-- loom_promote lets each of the nodes that holds no task take its ready task of the highest rank, and
-- makes what they hold available.
CREATE FUNCTION loom_promote(p_nodes uuid[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    -- Who makes a task ready and who frees its node meet here: the later one sees both.
    PERFORM 1 FROM nodes n WHERE n.id = ANY(p_nodes) ORDER BY n.id FOR UPDATE;
    UPDATE nodes n SET task_id = next.task
    FROM (SELECT m.id, loom_next(o.id, m.id) AS task
          FROM nodes m JOIN operations o ON o.cluster_id = m.cluster_id
          WHERE m.id = ANY(p_nodes) AND m.task_id IS NULL
            AND o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')) AS next
    WHERE n.id = next.id AND n.task_id IS NULL AND next.task IS NOT NULL;
    PERFORM loom_deliver(ARRAY(
        SELECT n.task_id FROM nodes n JOIN tasks t ON t.id = n.task_id
        WHERE n.id = ANY(p_nodes) AND t.status || '' = 'ready'), false);
END
$$;
