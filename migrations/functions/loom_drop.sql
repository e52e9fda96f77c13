-- loom_drop gives up all that waits in an operation, which the caller holds FOR UPDATE, and
-- nothing of the operation stays in the backlog. River jobs that were fetched but not started
-- are put right by loom_start.
--
-- Each row is found by its key: an operation of many thousand tasks was dropped for minutes
-- while the planner knew old statistics.
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
    v_jobs bigint[];
BEGIN
    SELECT array_agg(w.id) INTO v_tasks FROM (
        SELECT t.id FROM tasks t WHERE t.operation_id = p_operation AND t.status IN ('blocked', 'ready') ORDER BY t.gate DESC, t.id FOR UPDATE) AS w;
    IF v_tasks IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE tasks t SET status = 'dropped', in_backlog = false, ended_at = clock_timestamp()
    FROM unnest(v_tasks) AS d (id) WHERE t.id = d.id;
    DELETE FROM backlog_lots l WHERE l.operation_id = p_operation;

    SELECT array_agg(w.id) INTO v_nodes FROM (
        SELECT n.id FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id JOIN tasks t ON t.id = n.task_id
        WHERE o.id = p_operation AND t.operation_id = p_operation AND t.status = 'dropped'
        ORDER BY n.id FOR UPDATE OF n) AS w;
    UPDATE nodes n SET task_id = NULL FROM unnest(v_nodes) AS d (id) WHERE n.id = d.id;

    SELECT array_agg(w.id) INTO v_jobs FROM (
        SELECT r.id FROM unnest(v_tasks) AS d (id) JOIN tasks t ON t.id = d.id JOIN river_job r ON r.id = t.river_job_id
        WHERE r.state IN ('pending', 'available', 'scheduled', 'retryable')
        ORDER BY r.id FOR UPDATE OF r) AS w;
    UPDATE river_job r SET state = 'cancelled', finalized_at = now() FROM unnest(v_jobs) AS d (id) WHERE r.id = d.id;
    RETURN cardinality(v_tasks);
END
$$;
