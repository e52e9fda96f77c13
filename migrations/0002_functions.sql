-- The functions that move tasks (architecture.md 4). Each is one round trip for
-- a batch, with its statements planned once per session.
--
-- Locks are taken in the order process, operation, gates, tasks, nodes, River
-- jobs, and within one kind in id order; every locking step is a statement of
-- its own, so that it sees what was committed while it waited. Starting and
-- completing take the operation FOR SHARE and so run side by side; pause, abort,
-- failure and end take it FOR UPDATE.

-- +goose Up

-- Nobody queries River jobs by args or metadata, and every state change of a
-- job would write to both of these indexes.
DROP INDEX IF EXISTS river_job_args_index;
DROP INDEX IF EXISTS river_job_metadata_index;

-- The tasks that failing operations and reconciling look for.
CREATE INDEX tasks_running_operation ON tasks (operation_id) WHERE status = 'running';
CREATE INDEX operations_open ON operations (id)
    WHERE status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back');

-- Counts how often the host names or addresses of a cluster's nodes changed, so
-- that a provisioner reads the nodes of a big cluster once and not for each task.
-- Not a column of clusters: that row is locked before operations, this one last.
CREATE TABLE node_changes (
    cluster_id bigint PRIMARY KEY REFERENCES clusters,
    version    bigint NOT NULL
);

-- loom_pad writes a cluster id as people see it: at least 8 digits.
-- +goose StatementBegin
CREATE FUNCTION loom_pad(p_id bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT lpad(p_id::text, greatest(8, length(p_id::text)), '0')
$$;
-- +goose StatementEnd

-- loom_merge lays facts over what is known, key by key; a null removes the key.
-- +goose StatementBegin
CREATE FUNCTION loom_merge(p_known jsonb, p_facts jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_facts IS NULL OR jsonb_typeof(p_facts) <> 'object' OR p_facts = '{}' THEN p_known
        ELSE (p_known - ARRAY(SELECT key FROM jsonb_each(p_facts) WHERE value = 'null'))
             || coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(p_facts) WHERE value <> 'null'), '{}')
    END
$$;
-- +goose StatementEnd

-- loom_wake tells River's clients that there is work on these queues.
-- +goose StatementBegin
CREATE FUNCTION loom_wake(p_queues text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(current_schema() || '.river_insert', json_build_object('queue', q)::text)
    FROM (SELECT DISTINCT unnest(p_queues) AS q) AS queues WHERE q IS NOT NULL;
END
$$;
-- +goose StatementEnd

-- loom_signal writes one event per operation, and where nodes are given one per
-- cluster, whatever the size of the batch. More than 100 ids count as "look at
-- everything" and are left out.
-- +goose StatementBegin
CREATE FUNCTION loom_signal(p_tasks bigint[], p_nodes uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (tenant_id, topic, ids)
    SELECT o.tenant_id, 'op:' || loom_pad(o.cluster_id) || '/' || o.number,
           CASE WHEN count(*) > 100 THEN '{}' ELSE array_agg(t.number::text ORDER BY t.number) END
    FROM tasks t JOIN operations o ON o.id = t.operation_id
    WHERE t.id = ANY(p_tasks) AND NOT t.gate
    GROUP BY o.id;
    IF cardinality(p_nodes) > 0 THEN
        INSERT INTO events (tenant_id, topic, ids)
        SELECT n.tenant_id, 'cluster:' || loom_pad(n.cluster_id),
               CASE WHEN count(*) > 100 THEN '{}' ELSE array_agg(n.id::text ORDER BY n.number) END
        FROM nodes n WHERE n.id = ANY(p_nodes)
        GROUP BY n.tenant_id, n.cluster_id;
        INSERT INTO events (tenant_id, topic, ids)
        SELECT n.tenant_id, 'clusters', array_agg(DISTINCT loom_pad(n.cluster_id))
        FROM nodes n WHERE n.id = ANY(p_nodes)
        GROUP BY n.tenant_id;
    END IF;
    PERFORM pg_notify('loom_event', '');
END
$$;
-- +goose StatementEnd

-- loom_enqueue_end asks the scheduler to look whether operations have ended.
-- Asking twice does no harm.
-- +goose StatementBegin
CREATE FUNCTION loom_enqueue_end(p_operations bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(p_operations), 0) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO river_job (state, queue, kind, args, max_attempts)
    SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', id), 25
    FROM unnest(p_operations) AS id;
    PERFORM loom_wake(ARRAY['control']);
END
$$;
-- +goose StatementEnd

-- loom_promote gives each idle node its ready task of the longest remaining path
-- and makes the River jobs of the tasks so held available where the operation
-- runs. The caller holds the operations. It returns how many became available.
-- +goose StatementBegin
CREATE FUNCTION loom_promote(p_nodes uuid[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
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

    -- Clusters with little under way go first on their tenant's queue: River's
    -- priority 1 to 4. Counting stops early, big clusters cost no more.
    WITH due AS (
        SELECT t.river_job_id, t.cluster_id
        FROM nodes n
        JOIN tasks t ON t.id = n.task_id
        JOIN operations o ON o.id = t.operation_id
        WHERE n.id = ANY(p_nodes) AND t.status = 'ready' AND o.status IN ('running', 'rolling_back')
    ), weight AS MATERIALIZED (
        SELECT c.cluster_id,
               (SELECT count(*) FROM (SELECT 1 FROM nodes b WHERE b.cluster_id = c.cluster_id AND b.task_id IS NOT NULL LIMIT 65) AS busy) AS busy
        FROM (SELECT DISTINCT cluster_id FROM due) AS c
    ), flipped AS (
        UPDATE river_job r
        SET state = 'available', scheduled_at = now(),
            priority = CASE WHEN w.busy <= 4 THEN 1 WHEN w.busy <= 16 THEN 2 WHEN w.busy <= 64 THEN 3 ELSE 4 END
        FROM due JOIN weight w USING (cluster_id)
        WHERE r.id = due.river_job_id AND r.state = 'pending'
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

-- loom_start begins attempts of delivered tasks and returns those that began.
-- A process whose lease is over starts nothing: nobody would find its attempts.
-- What is not due goes back to where it belongs.
-- +goose StatementBegin
CREATE FUNCTION loom_start(p_tasks bigint[], p_attempts int[], p_process text)
RETURNS TABLE (task_id bigint, attempt int)
LANGUAGE plpgsql AS $$
DECLARE
    v_alive boolean;
    v_started bigint[];
    v_changed uuid[];
    v_queues text[];
BEGIN
    PERFORM 1 FROM processes p WHERE p.id = p_process AND p.expires_at > now() FOR KEY SHARE;
    v_alive := FOUND;

    PERFORM 1 FROM operations o
    WHERE o.id IN (SELECT t.operation_id FROM tasks t WHERE t.id = ANY(p_tasks))
    ORDER BY o.id FOR SHARE;
    PERFORM 1 FROM tasks t WHERE t.id = ANY(p_tasks) ORDER BY t.id FOR UPDATE;

    WITH begun AS (
        UPDATE tasks t
        SET status = 'running', attempt = x.attempt, process_id = p_process, code = 0, message = '',
            started_at = coalesce(t.started_at, clock_timestamp()), ended_at = NULL
        FROM unnest(p_tasks, p_attempts) AS x (id, attempt), operations o
        WHERE t.id = x.id AND o.id = t.operation_id AND v_alive
          AND t.status = 'ready' AND x.attempt > t.attempt
          AND o.status IN ('running', 'rolling_back')
        RETURNING t.id, t.attempt
    ), tried AS (
        INSERT INTO attempts (task_id, number, process_id, status, started_at)
        SELECT begun.id, begun.attempt, p_process, 'running', clock_timestamp() FROM begun
    )
    SELECT array_agg(begun.id) INTO v_started FROM begun;

    -- Asked again because the first answer got lost: the same attempt has begun.
    v_started := nullif(coalesce(v_started, '{}') || ARRAY(
        SELECT t.id FROM tasks t JOIN unnest(p_tasks, p_attempts) AS x (id, attempt) ON x.id = t.id
        WHERE t.status = 'running' AND t.attempt = x.attempt AND t.process_id = p_process AND NOT t.id = ANY(coalesce(v_started, '{}'))), '{}');

    IF v_started IS NOT NULL THEN
        -- Machines come and go: the node says so at once.
        PERFORM 1 FROM nodes n
        WHERE n.id IN (SELECT t.node_id FROM tasks t WHERE t.id = ANY(v_started) AND t.action IN ('create', 'confirm', 'delete'))
        ORDER BY n.id FOR UPDATE;
        WITH changed AS (
            UPDATE nodes n SET state = CASE WHEN t.action = 'delete' THEN 'deleting' ELSE 'creating' END
            FROM tasks t
            WHERE t.id = ANY(v_started) AND n.id = t.node_id
              AND (t.action IN ('create', 'delete') OR t.action = 'confirm' AND n.state IN ('planned', 'failed'))
            RETURNING n.id
        )
        SELECT array_agg(id) INTO v_changed FROM changed;
        PERFORM loom_signal(v_started, v_changed);
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
              AND o.id = t.operation_id AND r.id = t.river_job_id AND r.state = 'running'
            RETURNING r.queue, r.state
        )
        SELECT array_agg(DISTINCT queue) INTO v_queues FROM back WHERE state = 'available';
        PERFORM loom_wake(v_queues);
    END IF;

    RETURN QUERY SELECT t.id, t.attempt FROM tasks t WHERE t.id = ANY(coalesce(v_started, '{}'));
END
$$;
-- +goose StatementEnd

-- loom_complete records successes and frees what waited for them. It returns the
-- tasks it accepted; the others are not running with that attempt any more.
-- p_results[i] is {"message", "hostname", "ipaddresses", "result"} of p_tasks[i].
-- +goose StatementBegin
CREATE FUNCTION loom_complete(p_tasks bigint[], p_attempts int[], p_results jsonb[])
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
            WHEN t.action = 'delete' THEN 'deleted'
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

-- loom_service_state is what a completed action makes of a service on a node.
-- +goose StatementBegin
CREATE FUNCTION loom_service_state(p_before text, p_service text, p_action text) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_action = 'start' THEN jsonb_build_object(p_service, 'started')
        WHEN p_action = 'stop' THEN jsonb_build_object(p_service, 'stopped')
        WHEN p_action = 'remove' THEN jsonb_build_object(p_service, 'absent')
        WHEN p_action = 'configure' AND p_before IN ('started', 'stopped') THEN '{}'
        WHEN p_action IN ('install', 'configure', 'initialize') THEN jsonb_build_object(p_service, 'installed')
        ELSE '{}'
    END::jsonb
$$;
-- +goose StatementEnd

-- One plan per statement and session, by index whatever the sizes were when it
-- was made: planning anew for each batch costs more than the batch.
ALTER FUNCTION loom_start SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_start SET enable_seqscan = off;
ALTER FUNCTION loom_complete SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_complete SET enable_seqscan = off;
ALTER FUNCTION loom_promote SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_promote SET enable_seqscan = off;
