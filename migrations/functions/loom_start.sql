-- loom_start begins attempts of delivered tasks and returns those that began. A process whose
-- lease is over starts nothing: nobody would find its attempts. What is not due goes back to
-- where it belongs; nothing of paused tenants begins, it goes back to its queue. What is
-- started is locked in the order of the ids.
CREATE FUNCTION loom_start(p_tasks bigint[], p_attempts int[], p_process text)
RETURNS TABLE (task_id bigint, attempt int)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_alive boolean;
    v_operations bigint[];
    v_started bigint[];
    v_numbers int[];
    v_machines uuid[];
    v_changed uuid[];
    v_queues text[];
BEGIN
    PERFORM 1 FROM processes p WHERE p.id = p_process AND p.expires_at > now() FOR KEY SHARE;
    v_alive := FOUND;

    SELECT array_agg(DISTINCT t.operation_id) INTO v_operations FROM tasks t WHERE t.id = ANY(p_tasks);
    PERFORM 1 FROM operations o WHERE o.id = ANY(v_operations) ORDER BY o.id FOR SHARE;

    WITH begun AS (
        UPDATE tasks t
        SET status = 'running', attempt = x.attempt, process_id = p_process, code = 0, message = '',
            started_at = coalesce(t.started_at, clock_timestamp()), ended_at = NULL
        FROM unnest(p_tasks, p_attempts) AS x (id, attempt), operations o
        WHERE t.id = x.id AND o.id = t.operation_id AND v_alive
          AND t.status || '' = 'ready' AND x.attempt > t.attempt
          AND o.status || '' IN ('running', 'rolling_back')
          AND NOT EXISTS (SELECT 1 FROM paused_tenants z WHERE z.tenant_id = t.tenant_id)
        RETURNING t.id, t.attempt, t.node_id, t.action
    ), tried AS (
        INSERT INTO attempts (task_id, number, process_id, status, started_at)
        SELECT begun.id, begun.attempt, p_process, 'running', clock_timestamp() FROM begun
    )
    SELECT array_agg(begun.id), array_agg(begun.attempt),
           array_agg(begun.node_id) FILTER (WHERE begun.action IN ('create', 'confirm', 'delete'))
    INTO v_started, v_numbers, v_machines FROM begun;

    IF coalesce(cardinality(v_started), 0) < cardinality(p_tasks) THEN
        PERFORM 1 FROM tasks t WHERE t.id = ANY(p_tasks) ORDER BY t.id FOR UPDATE;
        -- Asked again because the first answer got lost: the same attempt has begun.
        SELECT nullif(coalesce(v_started, '{}') || array_agg(t.id), '{}'), coalesce(v_numbers, '{}') || array_agg(t.attempt),
               coalesce(v_machines, '{}') || array_agg(t.node_id) FILTER (WHERE t.action IN ('create', 'confirm', 'delete'))
        INTO v_started, v_numbers, v_machines
        FROM unnest(p_tasks, p_attempts) AS x (id, attempt) JOIN tasks t ON t.id = x.id
        WHERE t.status || '' = 'running' AND t.attempt = x.attempt AND t.process_id || '' = p_process
          AND NOT t.id = ANY(coalesce(v_started, '{}'));
    END IF;

    IF v_started IS NOT NULL THEN
        IF cardinality(v_machines) > 0 THEN
            -- Machines come and go: the node says so at once.
            PERFORM 1 FROM nodes n WHERE n.id = ANY(v_machines) ORDER BY n.id FOR UPDATE;
            WITH changed AS (
                UPDATE nodes n SET state = CASE WHEN t.action = 'delete' THEN 'deleting' ELSE 'creating' END
                FROM tasks t
                WHERE t.id = ANY(v_started) AND n.id = t.node_id
                  AND (t.action IN ('create', 'delete') OR t.action = 'confirm' AND n.state IN ('planned', 'failed'))
                RETURNING n.id
            )
            SELECT array_agg(id) INTO v_changed FROM changed;
        END IF;
        IF cardinality(v_operations) = 1 AND cardinality(v_started) > 100 AND v_changed IS NULL THEN
            PERFORM loom_signal_many(v_operations[1], false);
        ELSE
            PERFORM loom_signal(v_started, v_changed);
        END IF;
    END IF;

    IF coalesce(cardinality(v_started), 0) < cardinality(p_tasks) THEN
        -- Not due. A second delivery of a running task is left alone: its own
        -- attempt moves the River job when it ends.
        PERFORM 1 FROM river_job r
        WHERE r.id IN (SELECT t.river_job_id FROM tasks t WHERE t.id = ANY(p_tasks) AND NOT t.id = ANY(coalesce(v_started, '{}')))
        ORDER BY r.id FOR UPDATE;
        WITH back AS (
            UPDATE river_job r
            SET state = CASE
                    WHEN t.status IN ('complete', 'skipped') THEN 'completed'
                    WHEN t.status IN ('failed', 'dropped') OR o.status IN ('failing', 'complete', 'failed', 'aborted', 'rolled_back') THEN 'cancelled'
                    WHEN t.status = 'ready' AND o.status IN ('running', 'rolling_back') THEN 'available'
                    ELSE 'pending' END::river_job_state,
                finalized_at = CASE WHEN t.status IN ('complete', 'skipped', 'failed', 'dropped')
                                      OR o.status IN ('failing', 'complete', 'failed', 'aborted', 'rolled_back') THEN now() END,
                -- River may have taken back a number (a snooze by a process that was
                -- long thought dead): attempts never repeat one.
                attempt = greatest(r.attempt, t.attempt)
            FROM tasks t, operations o
            WHERE t.id = ANY(p_tasks) AND NOT t.id = ANY(coalesce(v_started, '{}')) AND t.status <> 'running'
              AND o.id = t.operation_id AND r.id = t.river_job_id AND r.state::text = 'running'
            RETURNING r.queue, r.state
        )
        SELECT array_agg(DISTINCT queue) INTO v_queues FROM back WHERE state = 'available';
        PERFORM loom_wake(v_queues);
    END IF;

    RETURN QUERY SELECT * FROM unnest(v_started, v_numbers);
END
$$;
