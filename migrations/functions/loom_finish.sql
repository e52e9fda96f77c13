-- loom_finish records successes and frees what waited for them. p_results[i] is {"message",
-- "hostname", "ipaddresses", "result"} of p_tasks[i]; ids rise. For the process it begins, of
-- each tenant in p_tenants, up to p_rooms tasks: what the ends made ready, in the order in
-- which River would deliver it and behind what waits on the tenant's queue already.
--
-- The first row has the tasks it accepted, the others are not running with that attempt any
-- more, and when that was; no row is none. The further rows are the attempts that the process
-- now has to run, with what their specs are built from: the task's own part of loom_spec, and
-- the stamp of what it has in common with others. The caller remembers what belongs to a stamp.
CREATE FUNCTION loom_finish(p_process text, p_tasks bigint[], p_attempts int[], p_results jsonb[], p_tenants text[], p_rooms int[])
RETURNS TABLE (done bigint[], at timestamptz, task_id bigint, attempt int, tenant_id text,
               operation_id bigint, task_number int, action text, service text, old boolean, undo boolean,
               node_id uuid, incarnation int, leaving boolean, results jsonb, sealed_node jsonb, stamp text, nodes_version bigint)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
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
    v_idle uuid[];
    v_count int;
    v_locked boolean := false;
    v_rest bigint[];
    v_due bigint[];
    v_line bigint[];
    v_begun bigint[];
    v_machines uuid[];
    v_of bigint[];
    v_stamps text[];
    v_versions bigint[];
    v_ends bigint[];
    v_priority smallint; -- of the only operation, where it is plain
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
        UPDATE attempts a SET status = 'complete', message = coalesce(ended.result->>'message', ''), facts = ended.result->'result', ended_at = clock_timestamp()
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
    SELECT array_agg(d.to_task), array_agg(d.n) INTO v_behind, v_counts
    FROM (SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(v_done) GROUP BY e.to_task ORDER BY e.to_task) AS d;
    SELECT array_agg(g.id) INTO v_gates FROM tasks g WHERE g.operation_id = ANY(v_operations) AND g.gate AND g.id = ANY(v_behind);
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
    -- Where a task became ready on a node that works on another one, all are locked
    -- first, in the order of their ids: whoever ends that one has to see this one, or
    -- this has to see that the node is idle. Otherwise the update is the lock.
    IF cardinality(v_nodes) > coalesce(cardinality(v_held), 0) AND EXISTS (
        SELECT 1 FROM unnest(v_nodes, v_ended) AS x (id, i) JOIN nodes n ON n.id = x.id WHERE x.i IS NULL AND n.task_id IS NOT NULL)
    THEN
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
        v_locked := true;
    END IF;
    WITH freed AS (
        UPDATE nodes n
        SET task_id = CASE WHEN n.task_id = v_done[x.i] OR n.task_id IS NULL THEN
                    CASE WHEN EXISTS (SELECT 1 FROM ready_tasks b WHERE b.node_id = n.id OFFSET 0)
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
                WHEN x.i IS NOT NULL AND n.state = 'failed' THEN 'ready'
                ELSE n.state END,
            service_states = CASE
                WHEN v_actions[x.i] = 'delete' THEN '{}'
                WHEN x.i IS NULL OR v_services[x.i] = '' THEN n.service_states
                ELSE n.service_states || loom_service_state(n.service_states->>v_services[x.i], v_services[x.i], v_actions[x.i]) END
        FROM unnest(v_nodes, v_ended, v_fresh) AS x (id, i, fresh)
        WHERE n.id = x.id AND (x.i IS NOT NULL OR n.task_id IS NULL)
        RETURNING n.id, n.task_id
    )
    SELECT array_agg(freed.task_id) FILTER (WHERE freed.task_id IS NOT NULL), array_agg(freed.id) FILTER (WHERE freed.task_id IS NULL), count(*)
    INTO v_next, v_idle, v_count FROM freed;
    -- What others made ready or took while the update waited for them. OFFSET 0 keeps the
    -- planner from joining: many tasks may be ready, each node looks for its own by index.
    IF NOT v_locked AND v_count < cardinality(v_nodes) THEN
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
    END IF;
    IF NOT v_locked AND (v_count < cardinality(v_nodes) OR EXISTS (
        SELECT 1 FROM unnest(v_idle) AS x (id) WHERE EXISTS (SELECT 1 FROM ready_tasks b WHERE b.node_id = x.id OFFSET 0))) THEN
        WITH idle AS (
            UPDATE nodes n
            SET task_id = loom_next(n.id, x.fresh)
            FROM unnest(v_nodes, v_fresh) AS x (id, fresh)
            WHERE n.id = x.id AND n.task_id IS NULL AND (x.fresh IS NOT NULL OR EXISTS (SELECT 1 FROM ready_tasks b WHERE b.node_id = n.id OFFSET 0))
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
    IF cardinality(v_operations) = 1 AND cardinality(v_next) > 64 THEN
        v_priority := 4; -- as many nodes of the cluster are at work (loom_priority)
    END IF;
    IF v_alive AND v_running IS NOT NULL THEN
        SELECT array_agg(b.id), array_agg(b.node) FILTER (WHERE b.machine) INTO v_begun, v_machines
        FROM loom_take(v_next, v_running, p_process, p_tenants, p_rooms, v_priority) AS b;
    END IF;
    v_rest := ARRAY(SELECT unnest(v_free || v_next) EXCEPT SELECT unnest(v_begun));
    IF cardinality(v_rest) > 0 THEN
        v_due := ARRAY(SELECT unnest(v_next) INTERSECT SELECT unnest(v_rest) ORDER BY 1);
        v_line := loom_line_up(v_due, CASE WHEN cardinality(v_operations) = 1 THEN v_running[1] END, v_priority);
        IF cardinality(v_line) > 0 THEN
            UPDATE tasks t SET remaining = 0, status = 'ready', in_backlog = true
            FROM unnest(v_line) AS r (id) WHERE t.id = r.id AND t.status || '' IN ('blocked', 'ready');
            v_rest := ARRAY(SELECT unnest(v_rest) EXCEPT SELECT unnest(v_line));
            v_due := ARRAY(SELECT unnest(v_due) EXCEPT SELECT unnest(v_line));
        END IF;
        UPDATE tasks t SET remaining = 0, status = 'ready'
        FROM unnest(v_rest) AS r (id) WHERE t.id = r.id AND t.status || '' = 'blocked';
        IF v_line IS NULL THEN
            PERFORM loom_deliver(v_due);
        ELSE
            PERFORM loom_deliver_now(v_due);
        END IF;
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
    SELECT v_done, clock_timestamp(), 0::bigint, 0, '', 0::bigint, 0, '', '', false, false,
           '00000000-0000-0000-0000-000000000000'::uuid, 0, false, NULL::jsonb, NULL::jsonb, '', 0::bigint;
    IF v_begun IS NOT NULL THEN
        SELECT array_agg(s.operation_id), array_agg(s.stamp), array_agg(s.nodes_version) INTO v_of, v_stamps, v_versions
        FROM loom_stamps(v_operations) AS s;
        RETURN QUERY
        SELECT NULL::bigint[], NULL::timestamptz, t.id, t.attempt, t.tenant_id, t.operation_id, t.number, t.action, t.service, t.old, t.undo,
               n.id, n.incarnation, n.leaving, n.results,
               (SELECT jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', '')))
                FROM secrets s WHERE s.tenant_id = t.tenant_id AND s.entity = 'node:' || n.id::text),
               g.stamp, g.version
        FROM unnest(v_begun) AS b (id) JOIN tasks t ON t.id = b.id JOIN nodes n ON n.id = t.node_id
        JOIN unnest(v_of, v_stamps, v_versions) AS g (operation, stamp, version) ON g.operation = t.operation_id;
    END IF;
END
$$;

-- The old form is what provisioners of an earlier release call.
CREATE FUNCTION loom_finish(p_tasks bigint[], p_attempts int[], p_results jsonb[], p_process text, p_tenants text[], p_rooms int[])
RETURNS TABLE (task_id bigint, attempt int, begun boolean, tenant_id text, at timestamptz)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    WITH ended AS MATERIALIZED (SELECT f.* FROM loom_finish(p_process, p_tasks, p_attempts, p_results, p_tenants, p_rooms) AS f)
    SELECT d.id, 0, false, '', e.at FROM ended e CROSS JOIN LATERAL unnest(e.done) AS d (id)
    UNION ALL
    SELECT e.task_id, e.attempt, true, e.tenant_id, (SELECT max(f.at) FROM ended f) FROM ended e WHERE e.done IS NULL;
END
$$;
