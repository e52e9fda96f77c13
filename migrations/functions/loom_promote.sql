-- loom_promote gives each idle node its ready task of the longest remaining path and makes the
-- River jobs of the tasks so held available where the operation runs. The caller holds the
-- operations. It returns how many became available.
CREATE FUNCTION loom_promote(p_nodes uuid[]) RETURNS int
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    IF coalesce(cardinality(p_nodes), 0) = 0 THEN
        RETURN 0;
    END IF;
    PERFORM 1 FROM nodes WHERE id = ANY(p_nodes) ORDER BY id FOR UPDATE;

    UPDATE nodes n SET task_id = best.id
    FROM (SELECT DISTINCT ON (t.node_id) t.node_id, t.id
          FROM ready_tasks r JOIN tasks t ON t.id = r.task_id
          WHERE r.node_id = ANY(p_nodes)
          ORDER BY t.node_id, t.rank DESC, t.action_order, t.service, t.number) AS best
    WHERE n.id = best.node_id AND n.task_id IS NULL;

    RETURN loom_deliver(ARRAY(SELECT n.task_id FROM nodes n WHERE n.id = ANY(p_nodes) AND n.task_id IS NOT NULL));
END
$$;
