-- The functions behind failures and the scheduler's duties (planner.md 13): what
-- drops, returns, wakes and puts right. They keep to the order of locks that
-- 0002 describes.

-- +goose Up

-- loom_drop gives up all that waits in an operation, which the caller holds FOR
-- UPDATE. River jobs that were fetched but not started are put right by
-- loom_start.
-- +goose StatementBegin
CREATE FUNCTION loom_drop(p_operation bigint) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
BEGIN
    PERFORM 1 FROM tasks t WHERE t.operation_id = p_operation AND t.status IN ('blocked', 'ready') ORDER BY t.gate DESC, t.id FOR UPDATE;
    UPDATE tasks t SET status = 'dropped', ended_at = clock_timestamp()
    WHERE t.operation_id = p_operation AND t.status IN ('blocked', 'ready');
    GET DIAGNOSTICS v_count = ROW_COUNT;
    PERFORM 1 FROM nodes n JOIN tasks t ON t.id = n.task_id
    WHERE t.operation_id = p_operation AND t.status = 'dropped'
    ORDER BY n.id FOR UPDATE OF n;
    UPDATE nodes n SET task_id = NULL
    FROM tasks t WHERE t.id = n.task_id AND t.operation_id = p_operation AND t.status = 'dropped';
    PERFORM 1 FROM river_job r JOIN tasks t ON t.river_job_id = r.id
    WHERE t.operation_id = p_operation AND t.status = 'dropped' AND r.state IN ('pending', 'available', 'scheduled', 'retryable')
    ORDER BY r.id FOR UPDATE OF r;
    UPDATE river_job r SET state = 'cancelled', finalized_at = now()
    FROM tasks t
    WHERE t.operation_id = p_operation AND t.status = 'dropped' AND r.id = t.river_job_id
      AND r.state IN ('pending', 'available', 'scheduled', 'retryable');
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- loom_reap removes processes whose lease is over and returns what they held:
-- their attempts become interrupted and their tasks are delivered elsewhere. It
-- also finds attempts of processes that have no row at all. The caller makes
-- sure that it runs once at a time.
-- +goose StatementBegin
CREATE FUNCTION loom_reap() RETURNS TABLE (process_id text, kind text, tasks bigint[])
LANGUAGE plpgsql AS $$
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

    SELECT array_agg(t.id ORDER BY t.id) INTO v_lost
    FROM tasks t
    WHERE t.status = 'running' AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.id = t.process_id);

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
-- +goose StatementEnd

-- loom_due makes retries available whose time has come, and wakes the queues of
-- those and of jobs whose snooze just ended: River itself looks every 5 seconds.
-- +goose StatementBegin
CREATE FUNCTION loom_due() RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
    v_snoozed text[];
BEGIN
    WITH due AS (
        SELECT r.id FROM river_job r
        WHERE r.state = 'scheduled' AND r.kind = 'run_task' AND r.scheduled_at <= now()
        ORDER BY r.id FOR UPDATE SKIP LOCKED
    ), flipped AS (
        UPDATE river_job r SET state = 'available' FROM due WHERE r.id = due.id RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT queue) INTO v_count, v_queues FROM flipped;
    SELECT array_agg(DISTINCT r.queue) INTO v_snoozed
    FROM river_job r
    WHERE r.state = 'available' AND r.kind = 'run_task' AND r.scheduled_at BETWEEN now() - interval '3 seconds' AND now()
      AND r.attempted_at IS NOT NULL;
    PERFORM loom_wake(v_queues || v_snoozed);
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- loom_reconcile puts right what a crash between two halves may leave in one
-- operation: nodes that hold nothing or something that is over, held tasks
-- without a live River job, an end that nobody looked for. It is idempotent,
-- leaves a busy operation alone and returns how many things it touched.
-- +goose StatementBegin
CREATE FUNCTION loom_reconcile(p_operation bigint) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_nodes uuid[];
    v_queues text[];
    v_touched int := 0;
    v_n int;
BEGIN
    PERFORM 1 FROM operations o WHERE o.id = p_operation FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;

    -- Nodes that hold what is over, or nothing though something is ready.
    SELECT array_agg(n.id) INTO v_nodes
    FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id
    WHERE o.id = p_operation AND (
        EXISTS (SELECT 1 FROM tasks t WHERE t.id = n.task_id AND t.status NOT IN ('ready', 'running', 'blocked'))
        OR n.task_id IS NULL AND EXISTS (SELECT 1 FROM tasks t WHERE t.node_id = n.id AND t.status = 'ready'));
    IF v_nodes IS NOT NULL THEN
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
        UPDATE nodes n SET task_id = NULL FROM tasks t
        WHERE n.id = ANY(v_nodes) AND t.id = n.task_id AND t.status NOT IN ('ready', 'running', 'blocked');
        v_touched := v_touched + loom_promote(v_nodes);
    END IF;

    -- Held, ready, and its River job is gone or finished: River's completer may
    -- have closed a later delivery.
    WITH missing AS (
        SELECT t.id FROM operations o
        JOIN nodes n ON n.cluster_id = o.cluster_id
        JOIN tasks t ON t.id = n.task_id AND t.status = 'ready' AND t.operation_id = o.id
        WHERE o.id = p_operation AND NOT EXISTS (SELECT 1 FROM river_job r WHERE r.id = t.river_job_id)
    ), made AS (
        INSERT INTO river_job (state, queue, kind, args, max_attempts, attempt)
        SELECT 'pending', 'tenant_' || t.tenant_id, 'run_task', jsonb_build_object('task_id', t.id), 1000, t.attempt
        FROM tasks t JOIN missing m ON m.id = t.id
        RETURNING id, (args->>'task_id')::bigint AS task_id
    )
    UPDATE tasks t SET river_job_id = made.id FROM made WHERE t.id = made.task_id;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_touched := v_touched + v_n;
    WITH held AS (
        SELECT t.river_job_id, t.attempt FROM operations o
        JOIN nodes n ON n.cluster_id = o.cluster_id
        JOIN tasks t ON t.id = n.task_id AND t.status = 'ready' AND t.operation_id = o.id
        WHERE o.id = p_operation AND o.status IN ('running', 'rolling_back')
    ), again AS (
        SELECT r.id FROM river_job r JOIN held ON held.river_job_id = r.id
        WHERE r.state IN ('pending', 'completed', 'cancelled', 'discarded')
        ORDER BY r.id FOR UPDATE OF r
    ), flipped AS (
        UPDATE river_job r SET state = 'available', finalized_at = NULL, scheduled_at = now(), attempt = greatest(r.attempt, held.attempt)
        FROM again, held WHERE r.id = again.id AND held.river_job_id = r.id
        RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT queue) INTO v_n, v_queues FROM flipped;
    v_touched := v_touched + v_n;
    PERFORM loom_wake(v_queues);

    -- It should have ended, and nobody is about to look.
    INSERT INTO river_job (state, queue, kind, args, max_attempts)
    SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', o.id), 25
    FROM operations o
    WHERE o.id = p_operation AND o.status <> 'paused' -- resuming asks again
      AND CASE WHEN o.status = 'failing'
               THEN NOT EXISTS (SELECT 1 FROM tasks t WHERE t.operation_id = o.id AND t.status = 'running')
               ELSE EXISTS (SELECT 1 FROM tasks g WHERE g.id = o.end_gate AND g.status = 'complete') END
      AND NOT EXISTS (SELECT 1 FROM river_job r
                      WHERE r.kind = 'end_operation' AND r.queue = 'control' AND (r.args->>'operation_id')::bigint = o.id
                        AND r.state IN ('available', 'running', 'scheduled', 'retryable'));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_touched := v_touched + v_n;
    RETURN v_touched;
END
$$;
-- +goose StatementEnd

-- loom_wake_waiting wakes the queues on which something has waited for more than
-- a moment: perhaps nobody heard of it.
-- +goose StatementBegin
CREATE FUNCTION loom_wake_waiting() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_queues text[];
BEGIN
    SELECT array_agg(DISTINCT r.queue) INTO v_queues
    FROM river_job r WHERE r.state = 'available' AND r.scheduled_at < now() - interval '2 seconds';
    PERFORM loom_wake(v_queues);
END
$$;
-- +goose StatementEnd
