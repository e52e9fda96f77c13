-- loom_start, loom_complete, loom_promote, loom_signal and loom_reconcile do what they
-- did, at a fraction of the cost. What was measured (docs/performance.md):
--
-- The planner takes an array for ten elements and a status for rare. Joining a batch
-- of 500 with the few rows of a partial index then compares each with each. So rows
-- are found by their ids, a status is compared only afterwards (written as
-- status || '' or state::text, which no index matches), and every join is a loop over
-- an index. What a batch does not have, such as gates or results, is not looked for.

-- +goose Up

-- As before.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_start(p_tasks bigint[], p_attempts int[], p_process text)
RETURNS TABLE (task_id bigint, attempt int)
LANGUAGE plpgsql AS $$
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
    PERFORM 1 FROM tasks t WHERE t.id = ANY(p_tasks) ORDER BY t.id FOR UPDATE;

    WITH begun AS (
        UPDATE tasks t
        SET status = 'running', attempt = x.attempt, process_id = p_process, code = 0, message = '',
            started_at = coalesce(t.started_at, clock_timestamp()), ended_at = NULL
        FROM unnest(p_tasks, p_attempts) AS x (id, attempt), operations o
        WHERE t.id = x.id AND o.id = t.operation_id AND v_alive
          AND t.status || '' = 'ready' AND x.attempt > t.attempt
          AND o.status || '' IN ('running', 'rolling_back')
        RETURNING t.id, t.attempt, t.node_id, t.action
    ), tried AS (
        INSERT INTO attempts (task_id, number, process_id, status, started_at)
        SELECT begun.id, begun.attempt, p_process, 'running', clock_timestamp() FROM begun
    )
    SELECT array_agg(begun.id), array_agg(begun.attempt),
           array_agg(begun.node_id) FILTER (WHERE begun.action IN ('create', 'confirm', 'delete'))
    INTO v_started, v_numbers, v_machines FROM begun;

    IF coalesce(cardinality(v_started), 0) < cardinality(p_tasks) THEN
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
-- +goose StatementEnd

-- As before.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_complete(p_tasks bigint[], p_attempts int[], p_results jsonb[])
RETURNS TABLE (task_id bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_operations bigint[];
    v_moved boolean;
    v_done bigint[];
    v_numbers int[];
    v_results jsonb[];
    v_jobs bigint[];
    v_held uuid[];
    v_gates bigint[];
    v_open bigint[];
    v_behind bigint[];
    v_counts int[];
    v_idle uuid[];
    v_nodes uuid[];
    v_next bigint[];
    v_more bigint[];
    v_ends bigint[];
BEGIN
    -- 1. The operations, shared.
    SELECT array_agg(DISTINCT t.operation_id) INTO v_operations FROM tasks t WHERE t.id = ANY(p_tasks);
    PERFORM 1 FROM operations o WHERE o.id = ANY(v_operations) ORDER BY o.id FOR SHARE;

    -- 2. The fence. From here on the arrays are of what it let through.
    SELECT array_agg(f.id), array_agg(f.attempt), array_agg(f.result), array_agg(f.river_job_id), array_agg(f.node_id), bool_or(f.moved)
    INTO v_done, v_numbers, v_results, v_jobs, v_held, v_moved
    FROM (SELECT t.id, t.attempt, x.result, t.river_job_id, t.node_id,
                 t.action = 'delete' OR x.result ?| ARRAY['hostname', 'ipaddresses'] AS moved
          FROM unnest(p_tasks, p_attempts, p_results) AS x (id, attempt, result) JOIN tasks t ON t.id = x.id
          WHERE t.status || '' = 'running' AND t.attempt = x.attempt
          ORDER BY t.id FOR UPDATE OF t) AS f;
    IF v_done IS NULL THEN
        RETURN;
    END IF;

    -- 3. Tasks and attempts.
    UPDATE tasks t SET status = 'complete', code = 0, message = coalesce(x.result->>'message', ''), ended_at = clock_timestamp()
    FROM unnest(v_done, v_results) AS x (id, result)
    WHERE t.id = x.id;
    UPDATE attempts a SET status = 'complete', message = coalesce(x.result->>'message', ''), ended_at = clock_timestamp()
    FROM unnest(v_done, v_numbers, v_results) AS x (id, attempt, result)
    WHERE a.task_id = x.id AND a.number = x.attempt;

    -- 4. What waits behind them, and how often; gates first. Whether a task is a gate
    -- never changes.
    SELECT array_agg(d.to_task), array_agg(d.n), array_agg(d.to_task) FILTER (WHERE g.gate)
    INTO v_behind, v_counts, v_gates
    FROM (SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(v_done) GROUP BY e.to_task) AS d
    JOIN tasks g ON g.id = d.to_task;
    IF v_gates IS NOT NULL THEN
        PERFORM 1 FROM tasks g WHERE g.id = ANY(v_gates) ORDER BY g.id FOR UPDATE;
        WITH counted AS (
            UPDATE tasks g
            SET remaining = g.remaining - down.n,
                status = CASE WHEN g.remaining = down.n AND g.status = 'blocked' THEN 'complete' ELSE g.status END,
                ended_at = CASE WHEN g.remaining = down.n THEN clock_timestamp() END
            FROM unnest(v_behind, v_counts) AS down (id, n) WHERE g.id = down.id AND g.gate
            RETURNING g.id, g.remaining
        )
        SELECT array_agg(id) INTO v_open FROM counted WHERE remaining = 0;
        IF v_open IS NOT NULL THEN
            SELECT array_agg(d.to_task), array_agg(d.n) INTO v_behind, v_counts
            FROM (SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(v_done || v_open) GROUP BY e.to_task) AS d;
        END IF;
    END IF;

    -- 5. Tasks behind them and behind the gates that opened.
    IF v_behind IS NOT NULL THEN
        PERFORM 1 FROM tasks t WHERE t.id = ANY(v_behind) AND NOT t.gate ORDER BY t.id FOR UPDATE;
        WITH counted AS (
            UPDATE tasks t
            SET remaining = t.remaining - down.n,
                status = CASE WHEN t.remaining = down.n AND t.status = 'blocked' THEN 'ready' ELSE t.status END
            FROM unnest(v_behind, v_counts) AS down (id, n) WHERE t.id = down.id AND NOT t.gate
            RETURNING t.node_id, t.status
        )
        SELECT array_agg(DISTINCT node_id) INTO v_idle FROM counted WHERE status = 'ready' AND node_id IS NOT NULL;
    END IF;

    -- 6. Nodes: what was learned, freed, next task. Those of the tasks that ended do
    -- all that at once.
    SELECT array_agg(DISTINCT n.id) INTO v_nodes FROM unnest(v_held || v_idle) AS n (id) WHERE n.id IS NOT NULL;
    PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
    WITH freed AS (UPDATE nodes n
    SET task_id = CASE WHEN n.task_id = t.id OR n.task_id IS NULL THEN (
            SELECT b.id FROM tasks b WHERE b.node_id = n.id AND b.status = 'ready'
            ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1) ELSE n.task_id END,
        results = CASE WHEN x.result ? 'result' THEN loom_merge(n.results, x.result->'result') ELSE n.results END,
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
            ELSE n.service_states || loom_service_state(n.service_states->>t.service, t.service, t.action) END
    FROM unnest(v_done, v_results) AS x (id, result) JOIN tasks t ON t.id = x.id
    WHERE n.id = t.node_id
    RETURNING n.task_id)
    SELECT array_agg(freed.task_id) INTO v_next FROM freed WHERE freed.task_id IS NOT NULL;
    IF v_idle IS NOT NULL THEN
        WITH idle AS (
            UPDATE nodes n
            SET task_id = (
                SELECT b.id FROM tasks b WHERE b.node_id = n.id AND b.status = 'ready'
                ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1)
            WHERE n.id = ANY(v_idle) AND n.task_id IS NULL
            RETURNING n.task_id
        )
        SELECT array_agg(idle.task_id) INTO v_more FROM idle WHERE idle.task_id IS NOT NULL;
    END IF;
    PERFORM loom_deliver(v_next || v_more);
    IF v_moved THEN
        INSERT INTO node_changes (cluster_id, version)
        SELECT DISTINCT t.cluster_id, 1
        FROM unnest(v_done, v_results) AS x (id, result) JOIN tasks t ON t.id = x.id
        WHERE t.action = 'delete' OR x.result ?| ARRAY['hostname', 'ipaddresses']
        ORDER BY 1
        ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 1;
    END IF;

    -- 7. River jobs go: closing them would cost as much as delivering them, and
    -- River's completer leaves a row alone that is not there. Operations that may have
    -- ended: in a failing one every batch asks, two batches side by side cannot see
    -- each other's end.
    PERFORM 1 FROM river_job r WHERE r.id = ANY(v_jobs) ORDER BY r.id FOR UPDATE;
    DELETE FROM river_job r WHERE r.id = ANY(v_jobs);
    SELECT array_agg(DISTINCT o.id) INTO v_ends
    FROM operations o
    WHERE o.id = ANY(v_operations) AND (o.end_gate = ANY(v_open) OR o.status || '' = 'failing')
      AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = ANY(v_done) AND t.operation_id + 0 = o.id);
    PERFORM loom_enqueue_end(v_ends);
    IF cardinality(v_operations) = 1 AND cardinality(v_done) > 100 THEN
        PERFORM loom_signal_many(v_operations[1], true); -- each task has a node of its own
    ELSE
        PERFORM loom_signal(v_done, v_held);
    END IF;

    RETURN QUERY SELECT unnest(v_done);
END
$$;
-- +goose StatementEnd

-- loom_deliver makes the River jobs of tasks available that their nodes hold and
-- that are ready, wakes their queues and returns how many. The caller holds the nodes.
-- +goose StatementBegin
CREATE FUNCTION loom_deliver(p_tasks bigint[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
BEGIN
    IF coalesce(cardinality(p_tasks), 0) = 0 THEN
        RETURN 0;
    END IF;
    -- Clusters with little under way go first on their tenant's queue: River's
    -- priority 1 to 4. Counting stops early, big clusters cost no more.
    WITH due AS (
        SELECT t.river_job_id, t.cluster_id
        FROM tasks t JOIN operations o ON o.id = t.operation_id
        WHERE t.id = ANY(p_tasks) AND t.status || '' = 'ready' AND o.status || '' IN ('running', 'rolling_back')
    ), weight AS MATERIALIZED (
        SELECT c.cluster_id,
               (SELECT count(*) FROM (SELECT 1 FROM nodes b WHERE b.cluster_id = c.cluster_id AND b.task_id IS NOT NULL LIMIT 65) AS busy) AS busy
        FROM (SELECT DISTINCT cluster_id FROM due) AS c
    ), flipped AS (
        UPDATE river_job r
        SET state = 'available', scheduled_at = now(),
            priority = CASE WHEN w.busy <= 4 THEN 1 WHEN w.busy <= 16 THEN 2 WHEN w.busy <= 64 THEN 3 ELSE 4 END
        FROM due JOIN weight w USING (cluster_id)
        WHERE r.id = due.river_job_id AND r.state::text = 'pending'
        RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT queue) INTO v_count, v_queues FROM flipped;
    IF v_count > 0 THEN
        PERFORM loom_wake(v_queues);
    END IF;
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- As before. The next task of a node is what the index of ready tasks is for.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_promote(p_nodes uuid[]) RETURNS int
LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(p_nodes), 0) = 0 THEN
        RETURN 0;
    END IF;
    PERFORM 1 FROM nodes WHERE id = ANY(p_nodes) ORDER BY id FOR UPDATE;

    UPDATE nodes n SET task_id = best.id
    FROM (SELECT DISTINCT ON (t.node_id) t.node_id, t.id
          FROM tasks t
          WHERE t.node_id = ANY(p_nodes) AND t.status = 'ready'
          ORDER BY t.node_id, t.rank DESC, t.action_order, t.service, t.number) AS best
    WHERE n.id = best.node_id AND n.task_id IS NULL;

    RETURN loom_deliver(ARRAY(SELECT n.task_id FROM nodes n WHERE n.id = ANY(p_nodes) AND n.task_id IS NOT NULL));
END
$$;
-- +goose StatementEnd

-- As before. Ids are put together only where they are few enough to be told.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_signal(p_tasks bigint[], p_nodes uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (tenant_id, topic, ids)
    SELECT o.tenant_id, 'op:' || loom_pad(o.cluster_id) || '/' || o.number,
           CASE WHEN c.n > 100 THEN '{}' ELSE ARRAY(
               SELECT t.number::text FROM tasks t
               WHERE t.id = ANY(p_tasks) AND NOT t.gate AND t.operation_id + 0 = o.id ORDER BY t.number) END
    FROM (SELECT t.operation_id, count(*) AS n FROM tasks t WHERE t.id = ANY(p_tasks) AND NOT t.gate GROUP BY t.operation_id) AS c
    JOIN operations o ON o.id = c.operation_id;
    IF cardinality(p_nodes) > 0 THEN
        WITH changed AS MATERIALIZED (
            SELECT n.tenant_id, n.cluster_id, count(*) AS n FROM nodes n WHERE n.id = ANY(p_nodes) GROUP BY n.tenant_id, n.cluster_id
        ), told AS (
            INSERT INTO events (tenant_id, topic, ids)
            SELECT c.tenant_id, 'cluster:' || loom_pad(c.cluster_id),
                   CASE WHEN c.n > 100 THEN '{}' ELSE ARRAY(
                       SELECT n.id::text FROM nodes n WHERE n.id = ANY(p_nodes) AND n.cluster_id + 0 = c.cluster_id ORDER BY n.number) END
            FROM changed c
        )
        INSERT INTO events (tenant_id, topic, ids)
        SELECT c.tenant_id, 'clusters', array_agg(loom_pad(c.cluster_id) ORDER BY c.cluster_id) FROM changed c GROUP BY c.tenant_id;
    END IF;
    PERFORM pg_notify('loom_event', '');
END
$$;
-- +goose StatementEnd

-- loom_signal_many is loom_signal for more than 100 tasks of one operation, and with
-- p_nodes for as many nodes: which ones need not be read, they are not told.
-- +goose StatementBegin
CREATE FUNCTION loom_signal_many(p_operation bigint, p_nodes boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (tenant_id, topic, ids)
    SELECT o.tenant_id, e.topic, e.ids
    FROM operations o, LATERAL (VALUES
        ('op:' || loom_pad(o.cluster_id) || '/' || o.number, '{}'::text[], true),
        ('cluster:' || loom_pad(o.cluster_id), '{}', p_nodes),
        ('clusters', ARRAY[loom_pad(o.cluster_id)], p_nodes)) AS e (topic, ids, told)
    WHERE o.id = p_operation AND e.told;
    PERFORM pg_notify('loom_event', '');
END
$$;
-- +goose StatementEnd

-- As before. It is asked every ten seconds of each operation under way: with thousands
-- of nodes it read whole tables.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_reconcile(p_operation bigint) RETURNS int
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

-- CREATE OR REPLACE takes away what was set for a function.
ALTER FUNCTION loom_reconcile SET enable_seqscan = off;
ALTER FUNCTION loom_reconcile SET enable_hashjoin = off;
ALTER FUNCTION loom_reconcile SET enable_mergejoin = off;
ALTER FUNCTION loom_reconcile SET jit = off;
ALTER FUNCTION loom_start SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_start SET enable_seqscan = off;
ALTER FUNCTION loom_start SET enable_hashjoin = off;
ALTER FUNCTION loom_start SET enable_mergejoin = off;
ALTER FUNCTION loom_complete SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_complete SET enable_seqscan = off;
ALTER FUNCTION loom_complete SET enable_hashjoin = off;
ALTER FUNCTION loom_complete SET enable_mergejoin = off;
ALTER FUNCTION loom_promote SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_promote SET enable_seqscan = off;
ALTER FUNCTION loom_promote SET enable_hashjoin = off;
ALTER FUNCTION loom_promote SET enable_mergejoin = off;
ALTER FUNCTION loom_deliver SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_deliver SET enable_seqscan = off;
ALTER FUNCTION loom_deliver SET enable_hashjoin = off;
ALTER FUNCTION loom_deliver SET enable_mergejoin = off;

-- Guesses about big arrays would have these compiled, which takes longer than they do.
ALTER FUNCTION loom_start SET jit = off;
ALTER FUNCTION loom_complete SET jit = off;
ALTER FUNCTION loom_promote SET jit = off;
ALTER FUNCTION loom_deliver SET jit = off;

-- jsonb_build_object is no more than stable: as an immutable function this one was
-- called for each task instead of becoming a part of the statement.
ALTER FUNCTION loom_service_state(text, text, text) STABLE;

-- Nobody looks for the River jobs of tasks by their kind, but every version of their
-- rows was noted there.
DROP INDEX IF EXISTS river_job_kind;
CREATE INDEX river_job_kind ON river_job (kind) WHERE kind <> 'run_task';
-- An attempt is inserted by loom_start only, with the task locked, and tasks are never
-- deleted alone: the check cost as much as the insert.
ALTER TABLE attempts DROP CONSTRAINT attempts_task_id_fkey;
