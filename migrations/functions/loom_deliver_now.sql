-- loom_deliver_now makes the River jobs of ready tasks available without regard to the backlog.
CREATE FUNCTION loom_deliver_now(p_tasks bigint[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
BEGIN
    IF coalesce(cardinality(p_tasks), 0) = 0 THEN
        RETURN 0;
    END IF;
    WITH due AS (
        SELECT t.river_job_id, t.cluster_id
        FROM tasks t JOIN operations o ON o.id = t.operation_id
        WHERE t.id = ANY(p_tasks) AND t.status || '' = 'ready' AND o.status || '' IN ('running', 'rolling_back')
    ), weight AS MATERIALIZED (
        SELECT c.cluster_id, loom_priority(c.cluster_id) AS priority FROM (SELECT DISTINCT cluster_id FROM due) AS c
    ), flipped AS (
        UPDATE river_job r SET state = 'available', scheduled_at = now(), priority = w.priority
        FROM due JOIN weight w USING (cluster_id)
        WHERE r.id = due.river_job_id AND r.state::text = 'pending'
        RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT queue) INTO v_count, v_queues FROM flipped;
    IF v_count > 0 THEN
        PERFORM loom_wake(v_queues);
    END IF;
    RETURN v_count;
END
$$;
