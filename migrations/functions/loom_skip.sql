-- loom_skip leaves out a task that is next on its node: it counts as complete for those behind
-- it. The caller holds the operation FOR UPDATE. False says that the task does not wait to run.
CREATE FUNCTION loom_skip(p_task bigint, p_by text, p_reason text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_open bigint[];
    v_ready bigint[];
    v_nodes uuid[];
    v_ends bigint[];
BEGIN
    PERFORM 1 FROM tasks t WHERE t.id = p_task AND NOT t.gate AND t.status = 'ready' FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE tasks t SET status = 'skipped', skipped_by = p_by, skip_reason = p_reason, ended_at = clock_timestamp() WHERE t.id = p_task;

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
        RETURNING t.id, t.status
    )
    SELECT array_agg(id) INTO v_ready FROM counted WHERE status = 'ready';

    SELECT array_agg(DISTINCT t.node_id) INTO v_nodes FROM tasks t WHERE t.id = ANY(p_task || v_ready) AND t.node_id IS NOT NULL;
    PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
    -- Who leaves out a DELETE says that the machine is gone, who leaves out the last
    -- step of making one that it is there.
    UPDATE nodes n
    SET task_id = CASE WHEN n.task_id = t.id THEN NULL ELSE n.task_id END,
        incarnation = n.incarnation + CASE WHEN t.action = 'delete' THEN 1 ELSE 0 END,
        results = CASE WHEN t.action = 'delete' THEN n.results - 'providerid' ELSE n.results END,
        ipaddresses = CASE WHEN t.action = 'delete' THEN '{}' ELSE n.ipaddresses END,
        service_states = CASE WHEN t.action = 'delete' THEN '{}' ELSE n.service_states END,
        state = CASE
            WHEN t.action = 'delete' THEN
                CASE WHEN EXISTS (
                         SELECT 1 FROM task_edges e JOIN tasks b ON b.id = e.to_task
                         WHERE e.from_task = t.id AND b.node_id = n.id AND b.action = 'create')
                     THEN 'planned' ELSE 'deleted' END
            WHEN t.action IN ('confirm', 'bootstrap') AND NOT EXISTS (
                     SELECT 1 FROM task_edges e JOIN tasks b ON b.id = e.to_task
                     WHERE e.from_task = t.id AND b.node_id = n.id AND b.action IN ('confirm', 'bootstrap'))
                THEN 'ready'
            ELSE n.state END
    FROM tasks t WHERE t.id = p_task AND n.id = t.node_id;
    PERFORM loom_promote(v_nodes);
    INSERT INTO node_changes (cluster_id, version)
    SELECT t.cluster_id, 1 FROM tasks t WHERE t.id = p_task AND t.action = 'delete'
    ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 1;

    -- A River job that was fetched is put right by loom_start.
    UPDATE river_job r SET state = 'cancelled', finalized_at = now()
    FROM tasks t
    WHERE t.id = p_task AND r.id = t.river_job_id AND r.state IN ('pending', 'available', 'scheduled', 'retryable');
    SELECT array_agg(o.id) INTO v_ends
    FROM tasks t JOIN operations o ON o.id = t.operation_id
    WHERE t.id = p_task AND o.end_gate = ANY(v_open);
    PERFORM loom_enqueue_end(v_ends);
    PERFORM loom_signal(ARRAY[p_task], v_nodes);
    RETURN true;
END
$$;
