-- loom_pass lets what waits behind a task go on although the task failed: in the delete of a
-- cluster one machine must not keep the others. The caller holds the operation FOR UPDATE and
-- has given the task up.
CREATE FUNCTION loom_pass(p_task bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_open bigint[];
    v_ready uuid[];
    v_ends bigint[];
BEGIN
    PERFORM 1 FROM tasks g
    WHERE g.gate AND g.id IN (SELECT e.to_task FROM task_edges e WHERE e.from_task = p_task)
    ORDER BY g.id FOR UPDATE;
    WITH counted AS (
        UPDATE tasks g
        SET remaining = g.remaining - 1,
            status = CASE WHEN g.remaining = 1 AND g.status = 'blocked' THEN 'complete' ELSE g.status END,
            ended_at = CASE WHEN g.remaining = 1 THEN clock_timestamp() END
        FROM task_edges e WHERE e.from_task = p_task AND g.id = e.to_task AND g.gate
        RETURNING g.id, g.remaining
    )
    SELECT array_agg(id) INTO v_open FROM counted WHERE remaining = 0;
    PERFORM 1 FROM tasks t
    WHERE NOT t.gate AND t.id IN (SELECT e.to_task FROM task_edges e WHERE e.from_task = ANY(p_task || v_open))
    ORDER BY t.id FOR UPDATE;
    WITH down AS (
        SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(p_task || v_open) GROUP BY e.to_task
    ), counted AS (
        UPDATE tasks t
        SET remaining = t.remaining - down.n,
            status = CASE WHEN t.remaining = down.n AND t.status = 'blocked' THEN 'ready' ELSE t.status END
        FROM down WHERE t.id = down.to_task AND NOT t.gate
        RETURNING t.node_id, t.status
    )
    SELECT array_agg(node_id) INTO v_ready FROM counted WHERE status = 'ready';
    PERFORM loom_promote(array_cat(v_ready, ARRAY(SELECT t.node_id FROM tasks t WHERE t.id = p_task)));
    SELECT array_agg(o.id) INTO v_ends FROM operations o JOIN tasks t ON t.operation_id = o.id
    WHERE t.id = p_task AND o.end_gate = ANY(v_open);
    PERFORM loom_enqueue_end(v_ends);
END
$$;
