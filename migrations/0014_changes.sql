-- Changing the layout of a cluster that is there: what it was before, which of two
-- versions of a service a task is about, and which nodes are on their way out.

-- +goose Up

-- The layout before the operation (loom.Snapshot): what a refused one gives back,
-- what an undo and a rollback lead to. NULL for a create, which has none before, and
-- for operations of earlier releases.
ALTER TABLE operations ADD COLUMN before jsonb;
-- The number of the operation that this one retries or rolls back; 0 for others.
ALTER TABLE operations ADD COLUMN concerns int NOT NULL DEFAULT 0;

-- The task carries out its service as it was before the operation.
ALTER TABLE tasks ADD COLUMN old boolean NOT NULL DEFAULT false;
-- The task takes back what other tasks of the operation did.
ALTER TABLE tasks ADD COLUMN undo boolean NOT NULL DEFAULT false;

-- The node is on its way out: the others are not told of it any more.
ALTER TABLE nodes ADD COLUMN leaving boolean NOT NULL DEFAULT false;
UPDATE nodes SET leaving = true WHERE state = 'deleted';

-- As before, but for the state of a node whose machine gives way to another.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_complete(p_tasks bigint[], p_attempts int[], p_results jsonb[])
RETURNS TABLE (task_id bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_done bigint[];
    v_open bigint[];
    v_ready bigint[];
    v_nodes uuid[];
    v_held uuid[];
    v_ends bigint[];
BEGIN
    -- 1. The operations, shared.
    PERFORM 1 FROM operations o
    WHERE o.id IN (SELECT t.operation_id FROM tasks t WHERE t.id = ANY(p_tasks))
    ORDER BY o.id FOR SHARE;

    -- 2. The fence.
    SELECT array_agg(f.id) INTO v_done
    FROM (SELECT t.id
          FROM tasks t JOIN unnest(p_tasks, p_attempts) AS x (id, attempt) ON x.id = t.id
          WHERE t.status = 'running' AND t.attempt = x.attempt
          ORDER BY t.id FOR UPDATE OF t) AS f;
    IF v_done IS NULL THEN
        RETURN;
    END IF;

    -- 3. Tasks and attempts.
    UPDATE tasks t SET status = 'complete', code = 0, message = coalesce(x.result->>'message', ''), ended_at = clock_timestamp()
    FROM unnest(p_tasks, p_results) AS x (id, result)
    WHERE t.id = x.id AND t.id = ANY(v_done);
    UPDATE attempts a SET status = 'complete', message = coalesce(x.result->>'message', ''), ended_at = clock_timestamp()
    FROM unnest(p_tasks, p_attempts, p_results) AS x (id, attempt, result)
    WHERE a.task_id = x.id AND a.number = x.attempt AND x.id = ANY(v_done);

    -- 4. Gates behind them.
    PERFORM 1 FROM tasks g
    WHERE g.gate AND g.id IN (SELECT e.to_task FROM task_edges e WHERE e.from_task = ANY(v_done))
    ORDER BY g.id FOR UPDATE;
    WITH down AS (
        SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(v_done) GROUP BY e.to_task
    ), counted AS (
        UPDATE tasks g
        SET remaining = g.remaining - down.n,
            status = CASE WHEN g.remaining = down.n AND g.status = 'blocked' THEN 'complete' ELSE g.status END,
            ended_at = CASE WHEN g.remaining = down.n THEN clock_timestamp() END
        FROM down WHERE g.id = down.to_task AND g.gate
        RETURNING g.id, g.remaining
    )
    SELECT array_agg(id) INTO v_open FROM counted WHERE remaining = 0;

    -- 5. Tasks behind them and behind the gates that opened.
    PERFORM 1 FROM tasks t
    WHERE NOT t.gate AND t.id IN (SELECT e.to_task FROM task_edges e WHERE e.from_task = ANY(v_done || v_open))
    ORDER BY t.id FOR UPDATE;
    WITH down AS (
        SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(v_done || v_open) GROUP BY e.to_task
    ), counted AS (
        UPDATE tasks t
        SET remaining = t.remaining - down.n,
            status = CASE WHEN t.remaining = down.n AND t.status = 'blocked' THEN 'ready' ELSE t.status END
        FROM down WHERE t.id = down.to_task AND NOT t.gate
        RETURNING t.id, t.status
    )
    SELECT array_agg(id) INTO v_ready FROM counted WHERE status = 'ready';

    -- 6. Nodes: facts, freed, next task.
    SELECT array_agg(DISTINCT t.node_id) FILTER (WHERE t.id = ANY(v_done)), array_agg(DISTINCT t.node_id)
    INTO v_held, v_nodes
    FROM tasks t WHERE t.id = ANY(v_done || v_ready) AND t.node_id IS NOT NULL;
    PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
    UPDATE nodes n
    SET task_id = CASE WHEN n.task_id = t.id THEN NULL ELSE n.task_id END,
        results = loom_merge(n.results, x.result->'result'),
        hostname = coalesce(nullif(x.result->>'hostname', ''), n.hostname),
        ipaddresses = CASE WHEN t.action = 'delete' THEN '{}'
                           WHEN jsonb_typeof(x.result->'ipaddresses') = 'object' THEN x.result->'ipaddresses'
                           ELSE n.ipaddresses END,
        incarnation = n.incarnation + CASE WHEN t.action = 'delete' THEN 1 ELSE 0 END,
        state = CASE
            WHEN t.action = 'delete' THEN
                -- Another machine takes its place where a CREATE follows.
                CASE WHEN EXISTS (
                         SELECT 1 FROM task_edges e JOIN tasks b ON b.id = e.to_task
                         WHERE e.from_task = t.id AND b.node_id = n.id AND b.action = 'create')
                     THEN 'planned' ELSE 'deleted' END
            WHEN t.action IN ('create', 'confirm', 'bootstrap') THEN
                -- Ready once none of the node's own making steps follows.
                CASE WHEN t.action <> 'create' AND NOT EXISTS (
                         SELECT 1 FROM task_edges e JOIN tasks b ON b.id = e.to_task
                         WHERE e.from_task = t.id AND b.node_id = n.id AND b.action IN ('confirm', 'bootstrap'))
                     THEN 'ready' ELSE n.state END
            WHEN n.state = 'failed' THEN 'ready'
            ELSE n.state END,
        service_states = CASE
            WHEN t.action = 'delete' THEN '{}'
            WHEN t.service = '' THEN n.service_states
            ELSE loom_merge(n.service_states, loom_service_state(n.service_states->>t.service, t.service, t.action)) END
    FROM tasks t JOIN unnest(p_tasks, p_results) AS x (id, result) ON x.id = t.id
    WHERE t.id = ANY(v_done) AND n.id = t.node_id;
    PERFORM loom_promote(v_nodes);
    INSERT INTO node_changes (cluster_id, version)
    SELECT DISTINCT t.cluster_id, 1
    FROM tasks t JOIN unnest(p_tasks, p_results) AS x (id, result) ON x.id = t.id
    WHERE t.id = ANY(v_done) AND (t.action = 'delete' OR x.result ? 'hostname' OR x.result ? 'ipaddresses')
    ORDER BY 1
    ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 1;

    -- 7. River jobs, and operations that may have ended. In a failing operation
    -- every batch asks: two batches side by side cannot see each other's end.
    PERFORM 1 FROM river_job r
    WHERE r.id IN (SELECT t.river_job_id FROM tasks t WHERE t.id = ANY(v_done))
    ORDER BY r.id FOR UPDATE;
    UPDATE river_job r SET state = 'completed', finalized_at = now()
    FROM tasks t
    WHERE t.id = ANY(v_done) AND r.id = t.river_job_id AND r.state NOT IN ('completed', 'cancelled', 'discarded');
    SELECT array_agg(DISTINCT o.id) INTO v_ends
    FROM tasks t JOIN operations o ON o.id = t.operation_id
    WHERE t.id = ANY(v_done) AND (o.end_gate = ANY(v_open) OR o.status = 'failing');
    PERFORM loom_enqueue_end(v_ends);
    PERFORM loom_signal(v_done, v_held);

    RETURN QUERY SELECT unnest(v_done);
END
$$;
-- +goose StatementEnd
ALTER FUNCTION loom_complete SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_complete SET enable_seqscan = off;
