-- A process that records the end of tasks begins what it frees in the same
-- transaction, as far as it has workers for it (docs/decisions/0019). What nobody
-- takes that way is delivered by River as before.

-- +goose Up

-- loom_finish records successes and frees what waited for them. p_results[i] is
-- {"message", "hostname", "ipaddresses", "result"} of p_tasks[i]; ids rise. For the
-- process it begins, of each tenant in p_tenants, up to p_rooms tasks: what the
-- ends made ready, in the order in which River would deliver it and behind what
-- waits on the tenant's queue already.
--
-- It returns the tasks it accepted, the others are not running with that attempt
-- any more; and with begun the attempts that the process now has to run.
-- +goose StatementBegin
CREATE FUNCTION loom_finish(p_tasks bigint[], p_attempts int[], p_results jsonb[], p_process text, p_tenants text[], p_rooms int[])
RETURNS TABLE (task_id bigint, attempt int, begun boolean, tenant_id text, at timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    v_alive boolean := false;
    v_operations bigint[];
    v_running bigint[];
    v_failing boolean;
    v_moved boolean;
    v_done bigint[];
    v_results jsonb[];
    v_actions text[];
    v_services text[];
    v_jobs bigint[];
    v_held uuid[];
    v_gates bigint[];
    v_open bigint[];
    v_behind bigint[];
    v_counts int[];
    v_still bigint[];
    v_free bigint[];
    v_nodes uuid[];
    v_ended int[];
    v_fresh bigint[];
    v_next bigint[];
    v_more bigint[];
    v_rest bigint[];
    v_begun bigint[];
    v_numbers int[];
    v_owners text[];
    v_machines uuid[];
    v_ends bigint[];
BEGIN
    -- 1. The process, then the operations, shared.
    IF cardinality(p_tenants) > 0 THEN
        PERFORM 1 FROM processes p WHERE p.id = p_process AND p.expires_at > now() FOR KEY SHARE;
        v_alive := FOUND;
    END IF;
    SELECT array_agg(DISTINCT t.operation_id) INTO v_operations FROM tasks t WHERE t.id = ANY(p_tasks);
    SELECT array_agg(o.id) FILTER (WHERE o.status IN ('running', 'rolling_back')), bool_or(o.status = 'failing')
    INTO v_running, v_failing
    FROM (SELECT p.id, p.status FROM operations p WHERE p.id = ANY(v_operations) ORDER BY p.id FOR SHARE) AS o;

    -- 2. The fence: tasks and attempts end that it lets through. They are locked in
    -- the order of the ids.
    WITH ended AS (
        UPDATE tasks t SET status = 'complete', code = 0, message = coalesce(x.result->>'message', ''), ended_at = clock_timestamp()
        FROM unnest(p_tasks, p_attempts, p_results) AS x (id, attempt, result)
        WHERE t.id = x.id AND t.status || '' = 'running' AND t.attempt = x.attempt
        RETURNING t.id, t.attempt, x.result, t.river_job_id, t.node_id, t.action, t.service
    ), closed AS (
        UPDATE attempts a SET status = 'complete', message = coalesce(ended.result->>'message', ''), ended_at = clock_timestamp()
        FROM ended WHERE a.task_id = ended.id AND a.number = ended.attempt
    )
    SELECT array_agg(e.id), array_agg(e.result), array_agg(e.action), array_agg(e.service), array_agg(e.river_job_id),
           array_agg(e.node_id), bool_or(e.action = 'delete' OR e.result ?| ARRAY['hostname', 'ipaddresses'])
    INTO v_done, v_results, v_actions, v_services, v_jobs, v_held, v_moved
    FROM ended e;
    IF v_done IS NULL THEN
        RETURN;
    END IF;

    -- 3. What waits behind them, and how often; gates first. Whether a task is a gate
    -- never changes.
    SELECT array_agg(d.to_task), array_agg(d.n), array_agg(d.to_task) FILTER (WHERE g.gate)
    INTO v_behind, v_counts, v_gates
    FROM (SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(v_done) GROUP BY e.to_task ORDER BY e.to_task) AS d
    JOIN tasks g ON g.id = d.to_task;
    IF v_gates IS NOT NULL THEN
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
            FROM (SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(v_done || v_open)
                  GROUP BY e.to_task ORDER BY e.to_task) AS d;
        END IF;
    END IF;

    -- 4. Tasks behind them and behind the gates that opened. Those with nothing left to
    -- wait for are written once it is known what becomes of them: nobody else counts
    -- them down any more.
    IF v_behind IS NOT NULL THEN
        WITH counted AS (
            UPDATE tasks t SET remaining = t.remaining - down.n
            FROM unnest(v_behind, v_counts) AS down (id, n)
            WHERE t.id = down.id AND NOT t.gate AND t.remaining > down.n
            RETURNING t.id
        )
        SELECT array_agg(id) INTO v_still FROM counted;
        SELECT array_agg(f.id) INTO v_free
        FROM (SELECT unnest(v_behind) EXCEPT SELECT unnest(v_still) EXCEPT SELECT unnest(v_gates || v_open)) AS f (id);
    END IF;

    -- 5. Nodes: what was learned, freed, next task. Those of the tasks that ended do
    -- all that at once.
    SELECT array_agg(n.node), array_agg(n.ended), array_agg(n.fresh) INTO v_nodes, v_ended, v_fresh
    FROM (SELECT s.node, max(s.ended) AS ended,
                 (array_agg(s.task ORDER BY s.rank DESC, s.action_order, s.service, s.number) FILTER (WHERE s.task IS NOT NULL))[1] AS fresh
          FROM (SELECT h.node, h.i::int AS ended, NULL::bigint AS task, 0 AS rank, 0::smallint AS action_order, '' AS service, 0 AS number
                FROM unnest(v_held) WITH ORDINALITY AS h (node, i)
                UNION ALL
                SELECT t.node_id, NULL, t.id, t.rank, t.action_order, t.service, t.number
                FROM unnest(v_free) AS f (id) JOIN tasks t ON t.id = f.id WHERE t.status || '' = 'blocked') AS s
          WHERE s.node IS NOT NULL GROUP BY s.node ORDER BY s.node) AS n;
    PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
    WITH freed AS (
        UPDATE nodes n
        SET task_id = CASE WHEN n.task_id = v_done[x.i] OR n.task_id IS NULL THEN
                    CASE WHEN EXISTS (SELECT 1 FROM tasks b WHERE b.node_id = n.id AND b.status = 'ready')
                         THEN loom_next(n.id, x.fresh) ELSE x.fresh END
                ELSE n.task_id END,
            results = CASE WHEN v_results[x.i] ? 'result' THEN loom_merge(n.results, v_results[x.i]->'result') ELSE n.results END,
            hostname = coalesce(nullif(v_results[x.i]->>'hostname', ''), n.hostname),
            ipaddresses = CASE WHEN v_actions[x.i] = 'delete' THEN '{}'
                               WHEN jsonb_typeof(v_results[x.i]->'ipaddresses') = 'object' THEN v_results[x.i]->'ipaddresses'
                               ELSE n.ipaddresses END,
            incarnation = n.incarnation + CASE WHEN v_actions[x.i] = 'delete' THEN 1 ELSE 0 END,
            state = CASE
                WHEN v_actions[x.i] = 'delete' THEN
                    -- Another machine takes its place where a CREATE follows.
                    CASE WHEN EXISTS (
                             SELECT 1 FROM task_edges e JOIN tasks b ON b.id = e.to_task
                             WHERE e.from_task = v_done[x.i] AND b.node_id = n.id AND b.action = 'create')
                         THEN 'planned' ELSE 'deleted' END
                WHEN v_actions[x.i] IN ('create', 'confirm', 'bootstrap') THEN
                    -- Ready once none of the node's own making steps follows.
                    CASE WHEN v_actions[x.i] <> 'create' AND NOT EXISTS (
                             SELECT 1 FROM task_edges e JOIN tasks b ON b.id = e.to_task
                             WHERE e.from_task = v_done[x.i] AND b.node_id = n.id AND b.action IN ('confirm', 'bootstrap'))
                         THEN 'ready' ELSE n.state END
                WHEN n.state = 'failed' THEN 'ready'
                ELSE n.state END,
            service_states = CASE
                WHEN v_actions[x.i] = 'delete' THEN '{}'
                WHEN v_services[x.i] = '' THEN n.service_states
                ELSE n.service_states || loom_service_state(n.service_states->>v_services[x.i], v_services[x.i], v_actions[x.i]) END
        FROM unnest(v_nodes, v_ended, v_fresh) AS x (id, i, fresh)
        WHERE n.id = x.id AND x.i IS NOT NULL
        RETURNING n.task_id
    )
    SELECT array_agg(freed.task_id) INTO v_next FROM freed WHERE freed.task_id IS NOT NULL;
    IF cardinality(v_nodes) > cardinality(v_held) THEN
        WITH idle AS (
            UPDATE nodes n
            SET task_id = CASE WHEN EXISTS (SELECT 1 FROM tasks b WHERE b.node_id = n.id AND b.status = 'ready')
                               THEN loom_next(n.id, x.fresh) ELSE x.fresh END
            FROM unnest(v_nodes, v_ended, v_fresh) AS x (id, i, fresh)
            WHERE n.id = x.id AND x.i IS NULL AND n.task_id IS NULL
            RETURNING n.task_id
        )
        SELECT array_agg(idle.task_id) INTO v_more FROM idle WHERE idle.task_id IS NOT NULL;
        v_next := v_next || v_more;
    END IF;
    IF v_moved THEN
        INSERT INTO node_changes (cluster_id, version)
        SELECT DISTINCT t.cluster_id, 1
        FROM unnest(v_done, v_results) AS x (id, result) JOIN tasks t ON t.id = x.id
        WHERE t.action = 'delete' OR x.result ?| ARRAY['hostname', 'ipaddresses']
        ORDER BY 1
        ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 1;
    END IF;

    -- 6. The process begins what it has room for; the rest is delivered.
    IF v_alive AND v_running IS NOT NULL THEN
        SELECT array_agg(b.id), array_agg(b.number), array_agg(b.owner), array_agg(b.node) FILTER (WHERE b.machine)
        INTO v_begun, v_numbers, v_owners, v_machines
        FROM loom_take(v_next, v_running, p_process, p_tenants, p_rooms) AS b;
    END IF;
    v_rest := ARRAY(SELECT unnest(v_free || v_next) EXCEPT SELECT unnest(v_begun));
    IF cardinality(v_rest) > 0 THEN
        UPDATE tasks t SET remaining = 0, status = 'ready'
        FROM unnest(v_rest) AS r (id) WHERE t.id = r.id AND t.status || '' = 'blocked';
        PERFORM loom_deliver(ARRAY(SELECT unnest(v_next) INTERSECT SELECT unnest(v_rest)));
    END IF;
    IF v_machines IS NOT NULL THEN
        UPDATE nodes n SET state = CASE WHEN t.action = 'delete' THEN 'deleting' ELSE 'creating' END
        FROM unnest(v_begun) AS b (id) JOIN tasks t ON t.id = b.id
        WHERE n.id = t.node_id AND (t.action IN ('create', 'delete') OR t.action = 'confirm' AND n.state IN ('planned', 'failed'));
    END IF;

    -- 7. River jobs of what ended go: closing them would cost as much as delivering
    -- them, and River's completer leaves a row alone that is not there. Operations that
    -- may have ended: in a failing one every batch asks, two batches side by side cannot
    -- see each other's end.
    DELETE FROM river_job r WHERE r.id = ANY(v_jobs);
    IF v_open IS NOT NULL OR v_failing THEN
        SELECT array_agg(DISTINCT o.id) INTO v_ends
        FROM operations o
        WHERE o.id = ANY(v_operations) AND (o.end_gate = ANY(v_open) OR o.status || '' = 'failing')
          AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = ANY(v_done) AND t.operation_id + 0 = o.id);
        PERFORM loom_enqueue_end(v_ends);
    END IF;
    IF cardinality(v_operations) = 1 AND cardinality(v_done) > 100 THEN
        PERFORM loom_signal_many(v_operations[1], true); -- each task has a node of its own
    ELSE
        PERFORM loom_signal(v_done || v_begun, v_held || v_machines);
    END IF;

    RETURN QUERY
    SELECT d.id, 0, false, '', clock_timestamp() FROM unnest(v_done) AS d (id)
    UNION ALL
    SELECT b.id, b.number, true, b.owner, clock_timestamp() FROM unnest(v_begun, v_numbers, v_owners) AS b (id, number, owner);
END
$$;
-- +goose StatementEnd

-- loom_next is the task that an idle node takes next: of those that are ready and
-- p_fresh, which is about to be, the one of the longest remaining path. The caller
-- holds the node.
-- +goose StatementBegin
CREATE FUNCTION loom_next(p_node uuid, p_fresh bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_ready bigint;
BEGIN
    SELECT b.id INTO v_ready FROM tasks b WHERE b.node_id = p_node AND b.status = 'ready'
    ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1;
    IF v_ready IS NULL OR p_fresh IS NULL THEN
        RETURN coalesce(v_ready, p_fresh);
    END IF;
    RETURN (SELECT b.id FROM tasks b WHERE b.id IN (v_ready, p_fresh)
            ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1);
END
$$;
-- +goose StatementEnd

-- loom_take begins attempts of tasks for a process: of each tenant as many as there
-- is room for. p_next are tasks that their nodes just took; they count as last of
-- those that wait on the tenant's queue with the same priority. What waits there of
-- the operations in p_operations, which the caller holds, is taken as well; the
-- room for what comes before and is of others stays free: River brings that.
--
-- Nothing is waited for here: the caller holds nodes and River jobs already.
-- +goose StatementBegin
CREATE FUNCTION loom_take(p_next bigint[], p_operations bigint[], p_process text, p_tenants text[], p_rooms int[])
RETURNS TABLE (id bigint, number int, owner text, node uuid, machine boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_of record;
    v_tasks bigint[];
    v_queue text;
BEGIN
    FOR v_of IN
        SELECT p.tenant, p.room, m.tasks
        FROM unnest(p_tenants, p_rooms) AS p (tenant, room)
        LEFT JOIN (SELECT t.tenant_id AS tenant, array_agg(t.id) AS tasks
                   FROM unnest(p_next) AS x (id) JOIN tasks t ON t.id = x.id GROUP BY t.tenant_id) AS m USING (tenant)
        WHERE p.room > 0
    LOOP
        v_queue := 'tenant_' || v_of.tenant;
        IF EXISTS (SELECT 1 FROM river_job r WHERE r.state = 'available' AND r.queue = v_queue) THEN
            v_tasks := ARRAY(SELECT loom_first(v_of.tasks, p_operations, v_queue, v_of.room));
        ELSE
            v_tasks := v_of.tasks[1:v_of.room];
        END IF;
        CONTINUE WHEN coalesce(cardinality(v_tasks), 0) = 0;
        RETURN QUERY
        WITH flipped AS (
            UPDATE river_job r
            SET state = 'running', attempt = greatest(r.attempt, t.attempt) + 1, attempted_at = now(),
                attempted_by = array_append(r.attempted_by, p_process)
            FROM unnest(v_tasks) AS x (id) JOIN tasks t ON t.id = x.id
            WHERE r.id = t.river_job_id AND r.state::text IN ('pending', 'available')
              AND t.operation_id = ANY(p_operations) AND t.status || '' IN ('blocked', 'ready')
            RETURNING t.id, r.attempt
        ), begun AS (
            UPDATE tasks t
            SET status = 'running', remaining = 0, attempt = flipped.attempt, process_id = p_process, code = 0, message = '',
                started_at = coalesce(t.started_at, clock_timestamp()), ended_at = NULL
            FROM flipped WHERE t.id = flipped.id
            RETURNING t.id, t.attempt, t.node_id, t.action
        ), tried AS (
            INSERT INTO attempts (task_id, number, process_id, status, started_at)
            SELECT b.id, b.attempt, p_process, 'running', clock_timestamp() FROM begun b
        )
        SELECT b.id, b.attempt, v_of.tenant, b.node_id, b.action IN ('create', 'confirm', 'delete') FROM begun b;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- loom_first gives the tasks that loom_take may begin where others wait on the queue.
-- What it gives of those that waited is locked.
-- +goose StatementBegin
CREATE FUNCTION loom_first(p_next bigint[], p_operations bigint[], p_queue text, p_room int) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_mine bigint[];
    v_waited bigint[];
    v_held bigint[];
BEGIN
    WITH mine AS (
        SELECT t.id, t.cluster_id, t.river_job_id FROM unnest(p_next) AS x (id) JOIN tasks t ON t.id = x.id
    ), weight AS MATERIALIZED (
        SELECT c.cluster_id, loom_priority(c.cluster_id) AS priority FROM (SELECT DISTINCT cluster_id FROM mine) AS c
    ), first AS (
        (SELECT r.priority, r.scheduled_at, r.id AS job, (r.args->>'task_id')::bigint AS task, false AS fresh
         FROM river_job r WHERE r.state = 'available' AND r.queue = p_queue AND r.scheduled_at <= now()
         ORDER BY r.priority, r.scheduled_at, r.id LIMIT p_room)
        UNION ALL
        SELECT w.priority, now(), m.river_job_id, m.id, true FROM mine m JOIN weight w USING (cluster_id)
        ORDER BY 1, 2, 3 LIMIT p_room
    )
    SELECT array_agg(f.task) FILTER (WHERE f.fresh), array_agg(f.task) FILTER (WHERE NOT f.fresh) INTO v_mine, v_waited FROM first f;
    IF v_waited IS NOT NULL THEN
        SELECT array_agg(l.river_job_id) INTO v_held
        FROM (SELECT t.river_job_id FROM tasks t
              WHERE t.id = ANY(v_waited) AND t.status || '' = 'ready' AND t.operation_id = ANY(p_operations)
              ORDER BY t.id FOR UPDATE SKIP LOCKED) AS l;
        RETURN QUERY
        SELECT (r.args->>'task_id')::bigint FROM river_job r
        WHERE r.id = ANY(v_held) AND r.state::text = 'available' ORDER BY r.id FOR UPDATE SKIP LOCKED;
    END IF;
    RETURN QUERY SELECT unnest(v_mine);
END
$$;
-- +goose StatementEnd

-- loom_priority is River's priority for tasks of a cluster: those with little under
-- way go first on their tenant's queue. Counting stops early, big ones cost no more.
-- +goose StatementBegin
CREATE FUNCTION loom_priority(p_cluster bigint) RETURNS smallint
LANGUAGE sql STABLE AS $$
    SELECT (CASE WHEN b.busy <= 4 THEN 1 WHEN b.busy <= 16 THEN 2 WHEN b.busy <= 64 THEN 3 ELSE 4 END)::smallint
    FROM (SELECT count(*) AS busy FROM (SELECT 1 FROM nodes n WHERE n.cluster_id = p_cluster AND n.task_id IS NOT NULL LIMIT 65) AS few) AS b
$$;
-- +goose StatementEnd

-- As before, with the priority in a function of its own.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_deliver(p_tasks bigint[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
BEGIN
    IF coalesce(cardinality(p_tasks), 0) = 0 THEN
        RETURN 0;
    END IF;
    WITH due AS (
        SELECT t.river_job_id, t.cluster_id
        FROM tasks t JOIN operations o ON o.id = t.operation_id
        WHERE t.id = ANY(p_tasks) AND t.status || '' = 'ready' AND o.status || '' IN ('running', 'rolling_back')
    ), weight AS MATERIALIZED (
        SELECT c.cluster_id, loom_priority(c.cluster_id) AS priority FROM (SELECT DISTINCT cluster_id FROM due) AS c
    ), flipped AS (
        UPDATE river_job r SET state = 'available', scheduled_at = now(), priority = w.priority
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

-- loom_spec reads what the specs of tasks are built from, but for the description of
-- nodes. Tasks of one service form a group: what they have in common is large, so that
-- it comes with the first of them only.
-- +goose StatementBegin
CREATE FUNCTION loom_spec(p_tasks bigint[])
RETURNS TABLE (task_id bigint, operation_id bigint, task_number int, action text, service text, task_status text, attempt int, old boolean, undo boolean,
               started_at timestamptz, node_id uuid, incarnation int, leaving boolean, results jsonb, sealed_node jsonb, common jsonb)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT t.id AS task, t.operation_id AS operation, t.number, t.action, t.service, t.status, t.attempt, t.old, t.undo,
               a.started_at, t.node_id, n.incarnation, n.leaving, n.results,
               (SELECT jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', '')))
                FROM secrets s WHERE s.tenant_id = t.tenant_id AND s.entity = 'node:' || t.node_id::text) AS sealed
        FROM tasks t JOIN nodes n ON n.id = t.node_id
        LEFT JOIN attempts a ON a.task_id = t.id AND a.number = t.attempt
        WHERE t.id = ANY(p_tasks)
    ), first AS MATERIALIZED (
        SELECT min(f.task) AS task FROM found f GROUP BY f.operation, f.service, f.old, f.undo
    )
    SELECT f.*, CASE WHEN f.task IN (SELECT first.task FROM first) THEN (
        SELECT jsonb_build_object('tenant', c.tenant_id, 'cluster', c.id, 'operation', o.number, 'owner', c.owner_id,
                   'ssh_keys', to_jsonb(coalesce(u.ssh_keys, '{}')), 'resource_set', tn.resource_set, 'provider', c.provider, 'config', c.config,
                   'service', CASE WHEN f.old THEN o.before->'services'->f.service
                                   WHEN f.undo THEN coalesce(o.after, '{}')->'services'->f.service
                                   ELSE c.services->f.service END,
                   'hardware', c.type_settings->'hardware', 'image', c.type_settings->'image',
                   'nodes_version', coalesce((SELECT v.version FROM node_changes v WHERE v.cluster_id = c.id), 0),
                   'sealed', (SELECT jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', ''))) FROM secrets s
                              WHERE s.tenant_id = c.tenant_id AND s.entity IN ('provider:' || c.provider_name, 'cluster:' || loom_pad(c.id))),
                   'now', now())
        FROM operations o
        JOIN clusters c ON c.id = o.cluster_id
        JOIN tenants tn ON tn.id = c.tenant_id
        LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.owner_id
        WHERE o.id = f.operation) END
    FROM found f;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION loom_spec SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_spec SET enable_seqscan = off;
ALTER FUNCTION loom_spec SET jit = off;

-- The old form is what provisioners of the release before call.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_complete(p_tasks bigint[], p_attempts int[], p_results jsonb[])
RETURNS TABLE (task_id bigint)
LANGUAGE sql AS $$
    SELECT f.task_id FROM loom_finish(p_tasks, p_attempts, p_results, '', '{}', '{}') AS f WHERE NOT f.begun
$$;
-- +goose StatementEnd

-- As for all that moves tasks (0019): by index, planned once per session.
ALTER FUNCTION loom_finish SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_finish SET enable_seqscan = off;
ALTER FUNCTION loom_finish SET enable_hashjoin = off;
ALTER FUNCTION loom_finish SET enable_mergejoin = off;
ALTER FUNCTION loom_finish SET jit = off;

-- As before, but for locks: starting locks what it starts, in the order of the ids.
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
-- +goose StatementEnd
ALTER FUNCTION loom_start SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_start SET enable_seqscan = off;
ALTER FUNCTION loom_start SET enable_hashjoin = off;
ALTER FUNCTION loom_start SET enable_mergejoin = off;
ALTER FUNCTION loom_start SET jit = off;

-- Nobody looks for attempts by their process, and without it the end of an attempt
-- stays on its page and out of the indexes.
DROP INDEX attempts_running;
ALTER TABLE attempts SET (fillfactor = 70);
