-- The versions of a task stay on their page and out of the indexes, River's job of a
-- task that is handed over waits as it is, and what a process needs to run such a task
-- comes with it (docs/performance.md, docs/decisions/0019).

-- +goose Up

-- No index names what changes while a task runs, not even in its predicate: PostgreSQL
-- would write every version of the task into every index. So running tasks are found
-- through the nodes that hold them, ready ones in a table of their own, and others by
-- what they are from the beginning.
DROP INDEX tasks_node_ready;
DROP INDEX tasks_running;
DROP INDEX tasks_running_operation;
DROP INDEX tasks_lives;
DROP INDEX tasks_skipped;
CREATE INDEX tasks_lives ON tasks (tenant_id, cluster_id, node_id) WHERE action IN ('create', 'delete');
CREATE INDEX tasks_skipped ON tasks (cluster_id) WHERE skipped_by <> '' AND NOT gate;
-- Room on its page for each row once more; what is seen by nobody goes when the next
-- one comes.
ALTER TABLE tasks SET (fillfactor = 50);
ALTER TABLE attempts SET (fillfactor = 50);

-- Tasks that run. A node holds its task from promotion to the end, and an operation
-- with a running task has not ended.
CREATE VIEW running_tasks AS
SELECT t.id, t.operation_id, t.tenant_id, t.cluster_id, t.node_id, t.process_id, t.attempt, t.number, t.action, t.service, t.old, t.started_at
FROM operations o
JOIN nodes n ON n.cluster_id = o.cluster_id
CROSS JOIN LATERAL (SELECT * FROM tasks h WHERE h.id = n.task_id OFFSET 0) AS t -- by its id, however many nodes there are
WHERE t.operation_id = o.id AND o.status IN ('running', 'paused', 'failing', 'rolling_back') AND t.status = 'running';

-- Tasks that are ready, by node; kept right by triggers. What is begun at once by who
-- ends the last task before it is never ready.
CREATE TABLE ready_tasks (
    node_id   uuid NOT NULL,
    task_id   bigint NOT NULL,
    tenant_id text NOT NULL,
    PRIMARY KEY (node_id, task_id)
);
INSERT INTO ready_tasks (node_id, task_id, tenant_id) SELECT t.node_id, t.id, t.tenant_id FROM tasks t WHERE t.status = 'ready' AND t.node_id IS NOT NULL;

-- +goose StatementBegin
CREATE FUNCTION loom_note_ready() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.status = 'ready' THEN
        DELETE FROM ready_tasks r WHERE r.node_id = OLD.node_id AND r.task_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.status = 'ready' AND NEW.node_id IS NOT NULL THEN
        INSERT INTO ready_tasks (node_id, task_id, tenant_id) VALUES (NEW.node_id, NEW.id, NEW.tenant_id);
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
-- The table may be empty when the plan is made, and large when it is used.
ALTER FUNCTION loom_note_ready SET enable_seqscan = off;
CREATE TRIGGER tasks_ready_at_once AFTER INSERT ON tasks FOR EACH ROW WHEN (NEW.status = 'ready') EXECUTE FUNCTION loom_note_ready();
CREATE TRIGGER tasks_ready AFTER UPDATE OF status ON tasks FOR EACH ROW WHEN ((OLD.status = 'ready') <> (NEW.status = 'ready')) EXECUTE FUNCTION loom_note_ready();
CREATE TRIGGER tasks_ready_no_more AFTER DELETE ON tasks FOR EACH ROW WHEN (OLD.status = 'ready') EXECUTE FUNCTION loom_note_ready();

-- Processes whose rows went: the reaper looks once whether something of theirs still
-- runs. It would have to read all nodes at work to look each time.
CREATE TABLE departed_processes (
    id text PRIMARY KEY
);
INSERT INTO departed_processes (id)
SELECT DISTINCT t.process_id FROM tasks t WHERE t.status = 'running' AND NOT EXISTS (SELECT 1 FROM processes p WHERE p.id = t.process_id);

-- +goose StatementBegin
CREATE FUNCTION loom_note_departed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO departed_processes (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER processes_departed AFTER DELETE ON processes FOR EACH ROW EXECUTE FUNCTION loom_note_departed();

-- loom_stamps gives, for each of some operations, a text that is another one once
-- something changed of what the specs of its tasks have in common (loom_spec, common),
-- and the version of its cluster's nodes.
-- +goose StatementBegin
CREATE FUNCTION loom_stamps(p_operations bigint[]) RETURNS TABLE (operation_id bigint, stamp text, nodes_version bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT o.id,
           concat_ws(' ', o.xmin, o.ctid, c.xmin, c.ctid, tn.xmin, tn.ctid, u.xmin, u.ctid,
               (SELECT string_agg(concat(s.xmin, s.ctid), ' ' ORDER BY s.entity, s.field) FROM secrets s
                WHERE s.tenant_id = c.tenant_id AND s.entity IN ('provider:' || c.provider_name, 'cluster:' || loom_pad(c.id)))),
           coalesce((SELECT v.version FROM node_changes v WHERE v.cluster_id = c.id), 0)
    FROM operations o
    JOIN clusters c ON c.id = o.cluster_id
    JOIN tenants tn ON tn.id = c.tenant_id
    LEFT JOIN users u ON u.tenant_id = c.tenant_id AND u.id = c.owner_id
    WHERE o.id = ANY(p_operations);
END
$$;
-- +goose StatementEnd
ALTER FUNCTION loom_stamps SET enable_seqscan = off;

-- loom_finish records successes and frees what waited for them. p_results[i] is
-- {"message", "hostname", "ipaddresses", "result"} of p_tasks[i]; ids rise. For the
-- process it begins, of each tenant in p_tenants, up to p_rooms tasks: what the
-- ends made ready, in the order in which River would deliver it and behind what
-- waits on the tenant's queue already.
--
-- The first row has the tasks it accepted, the others are not running with that attempt
-- any more, and when that was; no row is none. The further rows are the attempts that the process now has
-- to run, with what their specs are built from: the task's own part of loom_spec, and
-- the stamp of what it has in common with others. The caller remembers what belongs to
-- a stamp.
-- +goose StatementBegin
CREATE FUNCTION loom_finish(p_process text, p_tasks bigint[], p_attempts int[], p_results jsonb[], p_tenants text[], p_rooms int[])
RETURNS TABLE (done bigint[], at timestamptz, task_id bigint, attempt int, tenant_id text,
               operation_id bigint, task_number int, action text, service text, old boolean, undo boolean,
               node_id uuid, incarnation int, leaving boolean, results jsonb, sealed_node jsonb, stamp text, nodes_version bigint)
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
    v_idle uuid[];
    v_count int;
    v_locked boolean := false;
    v_rest bigint[];
    v_begun bigint[];
    v_machines uuid[];
    v_of bigint[];
    v_stamps text[];
    v_versions bigint[];
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
    IF v_alive AND v_running IS NOT NULL THEN
        SELECT array_agg(b.id), array_agg(b.node) FILTER (WHERE b.machine) INTO v_begun, v_machines
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
-- +goose StatementEnd
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET enable_seqscan = off;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET enable_hashjoin = off;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET enable_mergejoin = off;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET jit = off;

-- The old form is what provisioners of the release before call.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_finish(p_tasks bigint[], p_attempts int[], p_results jsonb[], p_process text, p_tenants text[], p_rooms int[])
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
-- +goose StatementEnd

-- As before.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_next(p_node uuid, p_fresh bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_ready bigint;
BEGIN
    SELECT b.id INTO v_ready FROM ready_tasks r JOIN tasks b ON b.id = r.task_id WHERE r.node_id = p_node
    ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1;
    IF v_ready IS NULL OR p_fresh IS NULL THEN
        RETURN coalesce(v_ready, p_fresh);
    END IF;
    RETURN (SELECT b.id FROM tasks b WHERE b.id IN (v_ready, p_fresh)
            ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1);
END
$$;
-- +goose StatementEnd

-- As before, but that River's jobs of what begins here stay pending, or become so again:
-- nobody delivers them, and where a task has to be delivered after all, who sees to
-- that makes them available. The number of the attempt is that of the task's last one
-- and 1: River's own number, which may be lower, is raised when the job is moved.
DROP FUNCTION loom_take;
-- +goose StatementBegin
CREATE FUNCTION loom_take(p_next bigint[], p_operations bigint[], p_process text, p_tenants text[], p_rooms int[])
RETURNS TABLE (id bigint, node uuid, machine boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_of record;
    v_tasks bigint[];
    v_queue text;
    v_tenant text; -- the only one there is
BEGIN
    IF cardinality(p_operations) = 1 THEN
        SELECT o.tenant_id INTO v_tenant FROM operations o WHERE o.id = p_operations[1];
    END IF;
    FOR v_of IN
        SELECT p.tenant, p.room, m.tasks
        FROM unnest(p_tenants, p_rooms) AS p (tenant, room)
        LEFT JOIN (SELECT v_tenant AS tenant, p_next AS tasks WHERE v_tenant IS NOT NULL
                   UNION ALL
                   SELECT t.tenant_id, array_agg(t.id)
                   FROM unnest(p_next) AS x (id) JOIN tasks t ON t.id = x.id WHERE v_tenant IS NULL GROUP BY t.tenant_id) AS m USING (tenant)
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
        WITH begun AS (
            UPDATE tasks t
            SET status = 'running', remaining = 0, attempt = t.attempt + 1, process_id = p_process, code = 0, message = '',
                started_at = coalesce(t.started_at, clock_timestamp()), ended_at = NULL
            FROM unnest(v_tasks) AS x (id)
            WHERE t.id = x.id AND t.operation_id = ANY(p_operations) AND t.status || '' IN ('blocked', 'ready')
            RETURNING t.id, t.attempt, t.node_id, t.action
        ), tried AS (
            INSERT INTO attempts (task_id, number, process_id, status, started_at)
            SELECT b.id, b.attempt, p_process, 'running', clock_timestamp() FROM begun b
        )
        SELECT b.id, b.node_id, b.action IN ('create', 'confirm', 'delete') FROM begun b;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- As before, but that what it gives of those that waited is River's no longer.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_first(p_next bigint[], p_operations bigint[], p_queue text, p_room int) RETURNS SETOF bigint
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
        WITH free AS MATERIALIZED (
            SELECT r.id FROM river_job r
            WHERE r.id = ANY(v_held) AND r.state::text = 'available' ORDER BY r.id FOR UPDATE SKIP LOCKED
        )
        UPDATE river_job r SET state = 'pending' FROM free WHERE r.id = free.id
        RETURNING (r.args->>'task_id')::bigint;
    END IF;
    RETURN QUERY SELECT unnest(v_mine);
END
$$;
-- +goose StatementEnd

-- As before.
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
          FROM ready_tasks r JOIN tasks t ON t.id = r.task_id
          WHERE r.node_id = ANY(p_nodes)
          ORDER BY t.node_id, t.rank DESC, t.action_order, t.service, t.number) AS best
    WHERE n.id = best.node_id AND n.task_id IS NULL;

    RETURN loom_deliver(ARRAY(SELECT n.task_id FROM nodes n WHERE n.id = ANY(p_nodes) AND n.task_id IS NOT NULL));
END
$$;
-- +goose StatementEnd
ALTER FUNCTION loom_promote SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_promote SET enable_seqscan = off;
ALTER FUNCTION loom_promote SET enable_hashjoin = off;
ALTER FUNCTION loom_promote SET enable_mergejoin = off;
ALTER FUNCTION loom_promote SET jit = off;

-- As before, with the stamp of what tasks have in common.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_spec(p_tasks bigint[])
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
                   'now', now(), 'stamp', (SELECT st.stamp FROM loom_stamps(ARRAY[o.id]) AS st))
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

-- As before. Running tasks are looked at when a process has gone.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_reap() RETURNS TABLE (process_id text, kind text, tasks bigint[])
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
-- +goose StatementEnd
ALTER FUNCTION loom_reap() SET jit = off;

-- As before.
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
-- +goose StatementEnd
ALTER FUNCTION loom_reconcile SET enable_seqscan = off;
ALTER FUNCTION loom_reconcile SET enable_hashjoin = off;
ALTER FUNCTION loom_reconcile SET enable_mergejoin = off;
ALTER FUNCTION loom_reconcile SET jit = off;
