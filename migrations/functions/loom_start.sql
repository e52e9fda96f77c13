-- loom_start begins attempts of tasks that River has delivered to a process and returns those that
-- began. What is not to begin goes back to where it belongs. The arguments are in the order of the
-- tasks' ids: the update is the fence and the lock.
CREATE FUNCTION loom_start(p_tasks bigint[], p_attempts int[], p_process text) RETURNS TABLE (task_id bigint, attempt int)
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
BEGIN
    PERFORM 1 FROM processes p WHERE p.id = p_process AND p.expires_at > now() FOR KEY SHARE;
    v_alive := FOUND;
    SELECT array_agg(DISTINCT t.operation_id) INTO v_operations FROM tasks t WHERE t.id = ANY(p_tasks);
    PERFORM 1 FROM operations o WHERE o.id = ANY(v_operations) ORDER BY o.id FOR SHARE;

    WITH begun AS (
        UPDATE tasks t
        SET status = 'running', attempt = x.attempt, process_id = p_process, code = 0, message = '',
            started_at = coalesce(t.started_at, clock_timestamp()), ended_at = NULL
        FROM unnest(p_tasks, p_attempts) AS x (id, attempt), operations o, river_job r
        WHERE t.id = x.id AND o.id = t.operation_id AND r.id = t.river_job_id AND v_alive
          AND r.state::text = 'running' AND r.attempt = x.attempt AND r.attempted_by[array_upper(r.attempted_by, 1)] = p_process
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

    IF v_machines IS NOT NULL THEN -- they come and go: the node says so at once
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_machines) ORDER BY n.id FOR UPDATE;
        UPDATE nodes n SET state = CASE WHEN t.action = 'delete' THEN 'deleting' ELSE 'creating' END
        FROM unnest(v_started) AS x (id) JOIN tasks t ON t.id = x.id
        WHERE n.id = t.node_id AND (t.action IN ('create', 'delete') OR t.action = 'confirm' AND n.state IN ('planned', 'failed'));
    END IF;

    IF coalesce(cardinality(v_started), 0) < cardinality(p_tasks) THEN
        PERFORM 1 FROM tasks t WHERE t.id = ANY(p_tasks) ORDER BY t.id FOR UPDATE;
        -- Asked again because the first answer got lost: the same attempt has begun.
        SELECT nullif(coalesce(v_started, '{}') || array_agg(t.id), '{}'), coalesce(v_numbers, '{}') || array_agg(t.attempt)
        INTO v_started, v_numbers
        FROM unnest(p_tasks, p_attempts) AS x (id, attempt) JOIN tasks t ON t.id = x.id
        WHERE t.status || '' = 'running' AND t.attempt = x.attempt AND t.process_id || '' = p_process
          AND NOT t.id = ANY(coalesce(v_started, '{}'));
        PERFORM loom_deliver(ARRAY(
            SELECT t.id FROM unnest(p_tasks, p_attempts) AS x (id, attempt)
            JOIN tasks t ON t.id = x.id JOIN river_job r ON r.id = t.river_job_id
            WHERE NOT t.id = ANY(coalesce(v_started, '{}')) AND r.attempt = x.attempt AND r.attempted_by[array_upper(r.attempted_by, 1)] = p_process), true);
    END IF;

    PERFORM loom_signal(v_started, v_machines);
    RETURN QUERY SELECT * FROM unnest(v_started, v_numbers);
END
$$;
