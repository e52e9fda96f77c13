-- loom_reconcile puts right what crashes and River's late answers may leave in an operation that is not over, and
-- returns how many things that were.
CREATE FUNCTION loom_reconcile(p_operation bigint) RETURNS int
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_nodes uuid[];
    v_tasks bigint[];
    v_count int;
    v_touched int := 0;
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
        OR n.task_id IS NULL AND EXISTS (
            SELECT 1 FROM tasks t WHERE t.operation_id = o.id AND t.node_id = n.id AND t.status = 'ready' OFFSET 0));
    IF v_nodes IS NOT NULL THEN
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
        UPDATE nodes n SET task_id = NULL FROM tasks t
        WHERE n.id = ANY(v_nodes) AND t.id = n.task_id AND t.status NOT IN ('ready', 'running', 'blocked');
        PERFORM loom_promote(v_nodes);
        v_touched := cardinality(v_nodes);
    END IF;

    -- What nodes hold, and River's job of it is gone.
    WITH missing AS (
        SELECT t.id, t.tenant_id, t.attempt FROM operations o
        JOIN nodes n ON n.cluster_id = o.cluster_id
        JOIN tasks t ON t.id = n.task_id AND t.status IN ('ready', 'running') AND t.operation_id = o.id
        WHERE o.id = p_operation AND NOT EXISTS (SELECT 1 FROM river_job r WHERE r.id = t.river_job_id)
    ), made AS (
        INSERT INTO river_job (state, queue, kind, args, max_attempts, attempt)
        SELECT 'pending', 'tenant_' || m.tenant_id, 'run_task', jsonb_build_object('task_id', m.id), 1000, m.attempt
        FROM missing m
        RETURNING id, (args->>'task_id')::bigint AS task
    )
    UPDATE tasks t SET river_job_id = made.id FROM made WHERE t.id = made.task;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_touched := v_touched + v_count;

    -- Jobs that wait where nobody fetches them, and deliveries that nobody has begun in 5 minutes.
    SELECT array_agg(t.id) INTO v_tasks
    FROM operations o
    JOIN nodes n ON n.cluster_id = o.cluster_id
    JOIN tasks t ON t.id = n.task_id AND t.operation_id = o.id AND t.status = 'ready'
    JOIN river_job r ON r.id = t.river_job_id
    WHERE o.id = p_operation
      AND CASE WHEN r.state = 'running' THEN r.attempted_at < now() - interval '5 minutes'
               ELSE r.state <> loom_river_state(t.status, o.status, true)
                    AND NOT (r.state = 'scheduled' AND o.status IN ('running', 'rolling_back')) END;
    PERFORM loom_deliver(v_tasks, true);
    v_touched := v_touched + coalesce(cardinality(v_tasks), 0);

    -- It runs, and River's row says something else: a start and one who took its delivery back may meet.
    UPDATE river_job r
    SET state = 'running', finalized_at = NULL, attempt = t.attempt, attempted_by = array_append(r.attempted_by, t.process_id)
    FROM operations o
    JOIN nodes n ON n.cluster_id = o.cluster_id
    JOIN tasks t ON t.id = n.task_id AND t.operation_id = o.id AND t.status = 'running'
    WHERE o.id = p_operation AND r.id = t.river_job_id
      AND (r.state <> 'running' OR r.attempt <> t.attempt OR r.attempted_by[array_upper(r.attempted_by, 1)] <> t.process_id);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_touched := v_touched + v_count;

    -- It should be over, and nobody is about to look.
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
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_touched + v_count;
END
$$;
