-- loom_deliver puts the River jobs of tasks where loom_river_state says, and wakes the queues on which
-- some became available. A retry with a later due time is scheduled. What River has delivered
-- and may still begin is left to loom_start, unless p_over says that those deliveries
-- came to nothing.
CREATE FUNCTION loom_deliver(p_tasks bigint[], p_over boolean) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_queues text[];
BEGIN
    WITH due AS MATERIALIZED (
        SELECT r.id, t.attempt, t.cluster_id, loom_river_state(t.status, o.status, coalesce(n.task_id = t.id, false)) AS state
        FROM unnest(p_tasks) AS x (id)
        JOIN tasks t ON t.id = x.id
        JOIN operations o ON o.id = t.operation_id
        JOIN nodes n ON n.id = t.node_id
        JOIN river_job r ON r.id = t.river_job_id
        WHERE t.status || '' <> 'running' AND (p_over OR r.state::text <> 'running' OR t.status || '' <> 'ready')
        ORDER BY r.id FOR UPDATE OF r
    ), weight AS MATERIALIZED (
        SELECT c.cluster_id, loom_priority(c.cluster_id) AS priority
        FROM (SELECT DISTINCT due.cluster_id FROM due WHERE due.state = 'available') AS c
    ), moved AS (
        UPDATE river_job r
        SET state = CASE WHEN due.state = 'available' AND r.scheduled_at > clock_timestamp() THEN 'scheduled' ELSE due.state END,
            scheduled_at = CASE WHEN due.state = 'available' THEN greatest(r.scheduled_at, clock_timestamp()) ELSE r.scheduled_at END,
            finalized_at = CASE WHEN due.state IN ('completed', 'discarded', 'cancelled') THEN now() END,
            -- River takes a number back when a process gives a job back: attempts never repeat one.
            attempt = greatest(r.attempt, due.attempt),
            priority = coalesce(weight.priority, r.priority)
        FROM due LEFT JOIN weight USING (cluster_id)
        WHERE r.id = due.id AND r.state <> due.state
        RETURNING r.queue, r.state
    )
    SELECT array_agg(DISTINCT moved.queue) INTO v_queues FROM moved WHERE moved.state = 'available';
    PERFORM loom_wake(v_queues);
END
$$;
