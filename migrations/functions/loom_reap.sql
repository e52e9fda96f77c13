-- loom_reap removes processes whose lease is over and returns what they held: their attempts
-- become interrupted and their tasks are delivered elsewhere. It also finds attempts of
-- processes whose row went (departed_processes). The caller makes sure that it runs once at a
-- time.
CREATE FUNCTION loom_reap() RETURNS TABLE (process_id text, kind text, tasks bigint[])
LANGUAGE plpgsql
SET jit = off
AS $$
DECLARE
    v_dead text[];
    v_kinds text[];
    v_lost bigint[];
    v_dropped bigint[];
    v_again bigint[];
    v_queues text[];
    v_more text[];
    v_nodes uuid[];
    v_ends bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM processes p
        WHERE p.id IN (SELECT d.id FROM processes d WHERE d.expires_at < now() ORDER BY d.id FOR UPDATE)
        RETURNING p.id, p.kind
    )
    SELECT array_agg(gone.id), array_agg(gone.kind) INTO v_dead, v_kinds FROM gone;

    -- River jobs that a dead process had fetched, started or not. Delivering one
    -- too often is harmless, loom_start puts it right.
    WITH lost AS (
        SELECT r.id FROM river_job r
        WHERE r.state = 'running' AND r.attempted_by[array_upper(r.attempted_by, 1)] NOT IN (SELECT p.id FROM processes p)
    )
    SELECT array_agg(lost.id) INTO v_again FROM lost;

    DELETE FROM departed_processes;
    IF FOUND THEN
        SELECT array_agg(t.id ORDER BY t.id) INTO v_lost
        FROM running_tasks t
        WHERE NOT EXISTS (SELECT 1 FROM processes p WHERE p.id = t.process_id);
    END IF;

    IF v_lost IS NOT NULL THEN
        PERFORM 1 FROM operations o
        WHERE o.id IN (SELECT t.operation_id FROM tasks t WHERE t.id = ANY(v_lost))
        ORDER BY o.id FOR SHARE;
        -- Some may have ended while we waited.
        SELECT array_agg(f.id) INTO v_lost
        FROM (SELECT t.id FROM tasks t WHERE t.id = ANY(v_lost) AND t.status = 'running' ORDER BY t.id FOR UPDATE) AS f;
    END IF;
    IF v_lost IS NOT NULL THEN
        UPDATE attempts a SET status = 'interrupted', code = -1, message = 'The process that ran it was lost.', ended_at = clock_timestamp()
        FROM tasks t
        WHERE t.id = ANY(v_lost) AND a.task_id = t.id AND a.number = t.attempt AND a.status = 'running';
        -- In a failing operation nothing starts again.
        WITH moved AS (
            UPDATE tasks t
            SET status = CASE WHEN o.status IN ('running', 'rolling_back', 'paused') THEN 'ready' ELSE 'dropped' END,
                message = 'The process that ran it was lost.',
                ended_at = CASE WHEN o.status IN ('running', 'rolling_back', 'paused') THEN NULL ELSE clock_timestamp() END
            FROM operations o
            WHERE t.id = ANY(v_lost) AND o.id = t.operation_id
            RETURNING t.id, t.status, t.node_id, t.operation_id
        )
        SELECT array_agg(m.id) FILTER (WHERE m.status = 'dropped'), array_agg(m.node_id),
               array_agg(DISTINCT m.operation_id) FILTER (WHERE m.status = 'dropped')
        INTO v_dropped, v_nodes, v_ends FROM moved m;
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
        UPDATE nodes n SET task_id = NULL WHERE n.id = ANY(v_nodes) AND n.task_id = ANY(v_dropped);
        PERFORM 1 FROM river_job r
        WHERE r.id IN (SELECT t.river_job_id FROM tasks t WHERE t.id = ANY(v_lost))
        ORDER BY r.id FOR UPDATE;
        WITH back AS (
            UPDATE river_job r
            SET state = CASE WHEN t.status = 'dropped' THEN 'cancelled' WHEN o.status = 'paused' THEN 'pending' ELSE 'available' END::river_job_state,
                finalized_at = CASE WHEN t.status = 'dropped' THEN now() END,
                attempt = greatest(r.attempt, t.attempt), scheduled_at = now()
            FROM tasks t JOIN operations o ON o.id = t.operation_id
            WHERE t.id = ANY(v_lost) AND r.id = t.river_job_id
            RETURNING r.queue, r.state
        )
        SELECT array_agg(DISTINCT queue) INTO v_queues FROM back WHERE state = 'available';
        PERFORM loom_enqueue_end(v_ends);
        PERFORM loom_signal(v_lost, v_nodes);
    END IF;

    IF v_again IS NOT NULL THEN
        PERFORM 1 FROM river_job r WHERE r.id = ANY(v_again) ORDER BY r.id FOR UPDATE;
        WITH back AS (
            UPDATE river_job r SET state = 'available', scheduled_at = now()
            WHERE r.id = ANY(v_again) AND r.state = 'running'
              AND r.attempted_by[array_upper(r.attempted_by, 1)] NOT IN (SELECT p.id FROM processes p)
            RETURNING r.queue
        )
        SELECT array_agg(DISTINCT queue) INTO v_more FROM back;
    END IF;
    PERFORM loom_wake(v_queues || v_more);

    RETURN QUERY
    SELECT d.id, d.kind, (SELECT array_agg(t.id) FROM tasks t WHERE t.id = ANY(v_lost) AND t.process_id = d.id)
    FROM (SELECT unnest(v_dead) AS id, unnest(v_kinds) AS kind
          UNION
          SELECT DISTINCT t.process_id, 'unknown' FROM tasks t WHERE t.id = ANY(v_lost) AND NOT t.process_id = ANY(coalesce(v_dead, '{}'))) AS d;
END
$$;
