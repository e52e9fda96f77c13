-- loom_drop drops all that waits in an operation and returns how many tasks that were.
CREATE FUNCTION loom_drop(p_operation bigint) RETURNS int
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_tasks bigint[];
    v_nodes uuid[];
BEGIN
    SELECT array_agg(w.id) INTO v_tasks
    FROM (SELECT t.id FROM tasks t WHERE t.operation_id = p_operation AND t.status IN ('blocked', 'ready')
          ORDER BY t.gate DESC, t.id FOR UPDATE) AS w;
    IF v_tasks IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE tasks t SET status = 'dropped', ended_at = clock_timestamp() FROM unnest(v_tasks) AS d (id) WHERE t.id = d.id;
    SELECT array_agg(w.id) INTO v_nodes
    FROM (SELECT n.id FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id JOIN tasks t ON t.id = n.task_id
          WHERE o.id = p_operation AND t.operation_id = p_operation AND t.status || '' = 'dropped'
          ORDER BY n.id FOR UPDATE OF n) AS w;
    UPDATE nodes n SET task_id = NULL FROM unnest(v_nodes) AS d (id) WHERE n.id = d.id;
    PERFORM loom_deliver(v_tasks, false);
    RETURN cardinality(v_tasks);
END
$$;
