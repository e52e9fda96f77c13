-- loom_release counts down what waits behind tasks that are over, gates first. Returns the nodes on which
-- tasks became ready, and the gates that opened.
CREATE FUNCTION loom_release(p_tasks bigint[], OUT nodes uuid[], OUT gates bigint[])
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
BEGIN
    WITH behind AS MATERIALIZED (
        SELECT e.to_task AS id, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(p_tasks) GROUP BY e.to_task ORDER BY e.to_task
    ), counted AS (
        UPDATE tasks g
        SET remaining = g.remaining - behind.n,
            status = CASE WHEN g.remaining = behind.n AND g.status = 'blocked' THEN 'complete' ELSE g.status END,
            ended_at = CASE WHEN g.remaining = behind.n THEN clock_timestamp() END
        FROM behind WHERE g.id = behind.id AND g.gate
        RETURNING g.id, g.remaining
    )
    SELECT array_agg(counted.id) INTO gates FROM counted WHERE counted.remaining = 0;

    WITH behind AS MATERIALIZED (
        SELECT e.to_task AS id, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(p_tasks || gates) GROUP BY e.to_task ORDER BY e.to_task
    ), counted AS (
        UPDATE tasks t
        SET remaining = t.remaining - behind.n,
            status = CASE WHEN t.remaining = behind.n AND t.status = 'blocked' THEN 'ready' ELSE t.status END
        FROM behind WHERE t.id = behind.id AND NOT t.gate
        RETURNING t.node_id, t.remaining, t.status
    )
    SELECT array_agg(DISTINCT counted.node_id) INTO nodes FROM counted WHERE counted.remaining = 0 AND counted.status = 'ready';
END
$$;
