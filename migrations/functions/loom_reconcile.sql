-- loom_reconcile puts right what a crash between two halves may leave in one operation: nodes
-- that hold nothing or something that is over, held tasks without a live River job, deliveries
-- that began nothing within minutes, an end that nobody looked for. It is idempotent, leaves a
-- busy operation alone and returns how many things it touched.
--
-- A delivery that began nothing is with a process that lives and forgot it; River itself would
-- wait for the longest limit that a task may have. Delivering one too often is harmless,
-- loom_start fences it. It is asked every ten seconds of each operation under way, so it reads
-- no whole tables.
CREATE FUNCTION loom_reconcile(p_operation bigint) RETURNS int
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
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
        OR n.task_id IS NULL AND EXISTS (SELECT 1 FROM ready_tasks r WHERE r.node_id = n.id));
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
          AND NOT t.in_backlog
    ), again AS (
        SELECT r.id, held.attempt FROM river_job r JOIN held ON held.river_job_id = r.id
        WHERE r.state IN ('pending', 'completed', 'cancelled', 'discarded')
           OR r.state = 'running' AND r.attempted_at < now() - interval '5 minutes'
        ORDER BY r.id FOR UPDATE OF r
    ), flipped AS (
        UPDATE river_job r SET state = 'available', finalized_at = NULL, scheduled_at = now(), attempt = greatest(r.attempt, again.attempt)
        FROM again WHERE r.id = again.id
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
               THEN NOT EXISTS (SELECT 1 FROM running_tasks t WHERE t.operation_id = o.id)
               ELSE EXISTS (SELECT 1 FROM tasks g WHERE g.id = o.end_gate AND g.status = 'complete') END
      AND NOT EXISTS (SELECT 1 FROM river_job r
                      WHERE r.kind = 'end_operation' AND r.queue = 'control' AND (r.args->>'operation_id')::bigint = o.id
                        AND r.state IN ('available', 'running', 'scheduled', 'retryable'));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_touched := v_touched + v_n;
    RETURN v_touched;
END
$$;
