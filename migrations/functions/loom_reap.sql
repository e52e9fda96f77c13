-- loom_reap removes processes whose lease is over and gives back what River delivered to them, started
-- or not. Returns each process that is gone, with the tasks it was running.
CREATE FUNCTION loom_reap() RETURNS TABLE (process_id text, kind text, tasks bigint[])
LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    v_gone text[];
    v_kinds text[];
    v_jobs bigint[];
    v_tasks bigint[];
    v_owners text[];
    v_lost bigint[];
    v_dropped bigint[];
    v_operations bigint[];
    v_nodes uuid[];
    v_queues text[];
BEGIN
    WITH gone AS (
        DELETE FROM processes p
        WHERE p.id IN (SELECT d.id FROM processes d WHERE d.expires_at < now() ORDER BY d.id FOR UPDATE)
        RETURNING p.id, p.kind
    )
    SELECT array_agg(gone.id), array_agg(gone.kind) INTO v_gone, v_kinds FROM gone;
    SELECT array_agg(r.id) FILTER (WHERE r.kind <> 'run_task'),
           array_agg((r.args->>'task_id')::bigint ORDER BY r.id) FILTER (WHERE r.kind = 'run_task')
    INTO v_jobs, v_tasks
    FROM river_job r
    WHERE r.state = 'running' AND r.attempted_by[array_upper(r.attempted_by, 1)] NOT IN (SELECT p.id FROM processes p);

    IF v_tasks IS NOT NULL THEN
        PERFORM 1 FROM operations o
        WHERE o.id IN (SELECT t.operation_id FROM tasks t WHERE t.id = ANY(v_tasks))
        ORDER BY o.id FOR SHARE;
        SELECT array_agg(w.id), array_agg(w.process_id) INTO v_lost, v_owners
        FROM (SELECT t.id, t.process_id FROM tasks t
              WHERE t.id = ANY(v_tasks) AND t.status = 'running' AND t.process_id NOT IN (SELECT p.id FROM processes p)
              ORDER BY t.id FOR UPDATE) AS w;
        UPDATE attempts a SET status = 'interrupted', code = -1, message = 'The process that ran it was lost.', ended_at = clock_timestamp()
        FROM tasks t
        WHERE t.id = ANY(v_lost) AND a.task_id = t.id AND a.number = t.attempt AND a.status = 'running';
        -- In a failing operation nothing starts again.
        WITH moved AS (
            UPDATE tasks t
            SET status = CASE WHEN o.status = 'failing' THEN 'dropped' ELSE 'ready' END,
                message = 'The process that ran it was lost.',
                ended_at = CASE WHEN o.status = 'failing' THEN clock_timestamp() END
            FROM operations o
            WHERE t.id = ANY(v_lost) AND o.id = t.operation_id
            RETURNING t.id, t.status, t.node_id, t.operation_id
        )
        SELECT array_agg(m.id) FILTER (WHERE m.status = 'dropped'), array_agg(m.node_id), array_agg(DISTINCT m.operation_id)
        INTO v_dropped, v_nodes, v_operations FROM moved m;
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
        UPDATE nodes n SET task_id = NULL WHERE n.id = ANY(v_nodes) AND n.task_id = ANY(v_dropped);
        -- Others may have them by now.
        PERFORM loom_deliver(ARRAY(
            SELECT t.id FROM tasks t JOIN river_job r ON r.id = t.river_job_id
            WHERE t.id = ANY(v_tasks) AND r.state = 'running'
              AND r.attempted_by[array_upper(r.attempted_by, 1)] NOT IN (SELECT p.id FROM processes p)), true);
        PERFORM loom_enqueue_end(v_operations, '{}');
        PERFORM loom_signal(v_lost, v_nodes);
    END IF;

    WITH lost AS (
        SELECT r.id FROM river_job r
        WHERE r.id = ANY(v_jobs) AND r.state = 'running'
          AND r.attempted_by[array_upper(r.attempted_by, 1)] NOT IN (SELECT p.id FROM processes p)
        ORDER BY r.id FOR UPDATE
    ), back AS (
        UPDATE river_job r SET state = 'available', scheduled_at = now() FROM lost WHERE r.id = lost.id
        RETURNING r.queue
    )
    SELECT array_agg(DISTINCT back.queue) INTO v_queues FROM back;
    PERFORM loom_wake(v_queues);

    RETURN QUERY
    SELECT g.id, g.kind, (SELECT array_agg(l.task) FROM unnest(v_lost, v_owners) AS l (task, owner) WHERE l.owner = g.id)
    FROM (SELECT * FROM unnest(v_gone, v_kinds) AS d (id, kind)
          UNION
          SELECT l.owner, 'unknown' FROM unnest(v_owners) AS l (owner) WHERE NOT l.owner = ANY(coalesce(v_gone, '{}'))) AS g;
END
$$;
