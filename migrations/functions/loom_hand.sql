-- loom_hand makes River jobs of ready tasks available, in the one place in the order that the
-- tasks have. If a job is locked by somebody else, it is being given up and stays as it is.
CREATE FUNCTION loom_hand(p_tasks bigint[], p_priority smallint, p_since timestamptz) RETURNS int
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_count int;
    v_queues text[];
BEGIN
    UPDATE tasks t SET in_backlog = false WHERE t.id = ANY(p_tasks) AND t.in_backlog;
    WITH due AS MATERIALIZED (
        SELECT r.id FROM unnest(p_tasks) AS x (task)
        JOIN tasks t ON t.id = x.task JOIN operations o ON o.id = t.operation_id
        JOIN river_job r ON r.id = t.river_job_id
        WHERE t.status || '' = 'ready' AND o.status || '' IN ('running', 'rolling_back') AND r.state::text = 'pending'
        ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
    ), flipped AS (
        UPDATE river_job r SET state = 'available', scheduled_at = p_since, priority = p_priority
        FROM due WHERE r.id = due.id
        RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT queue) INTO v_count, v_queues FROM flipped;
    IF v_count > 0 THEN
        PERFORM loom_wake(v_queues);
    END IF;
    RETURN v_count;
END
$$;
