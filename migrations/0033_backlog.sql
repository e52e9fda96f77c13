-- What is ready beyond what a tenant's workers can take soon waits in a table of
-- Loom's own, not on River's queue: to be made available and taken back costs more
-- than all else that happens to a task (docs/decisions/0019, docs/performance.md).

-- +goose Up

-- Tasks that are ready, hold their node, have an inert River job and belong to an
-- operation that runs.
CREATE TABLE backlog (
    task_id      bigint PRIMARY KEY,
    tenant_id    text NOT NULL,
    operation_id bigint NOT NULL,
    priority     smallint NOT NULL, -- as River's
    since        timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.5);
-- A node's row is written twice for each of its tasks. A version that finds no room on
-- its page goes into each index, one of which is of the words in it.
ALTER TABLE nodes SET (fillfactor = 50);
CREATE INDEX backlog_order ON backlog (tenant_id, priority, since, task_id);

-- A ready task is listed in ready_tasks or in the backlog.
ALTER TABLE tasks ADD COLUMN in_backlog boolean NOT NULL DEFAULT false;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_note_ready() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.status = 'ready' AND NOT OLD.in_backlog THEN
        DELETE FROM ready_tasks r WHERE r.node_id = OLD.node_id AND r.task_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.status = 'ready' AND NOT NEW.in_backlog AND NEW.node_id IS NOT NULL THEN
        INSERT INTO ready_tasks (node_id, task_id, tenant_id) VALUES (NEW.node_id, NEW.id, NEW.tenant_id);
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
ALTER FUNCTION loom_note_ready SET enable_seqscan = off;
DROP TRIGGER tasks_ready ON tasks;
CREATE TRIGGER tasks_ready AFTER UPDATE OF status, in_backlog ON tasks FOR EACH ROW
WHEN ((OLD.status = 'ready' AND NOT OLD.in_backlog) <> (NEW.status = 'ready' AND NOT NEW.in_backlog)) EXECUTE FUNCTION loom_note_ready();

-- loom_reserve is how many tasks of a tenant River's queue holds where there are more:
-- one for each worker, wherever it is. Tests replace it.
-- +goose StatementBegin
CREATE FUNCTION loom_reserve(p_tenant text) RETURNS int
LANGUAGE sql STABLE AS $$
    SELECT greatest(t.workers, 100) FROM tenants t WHERE t.id = p_tenant
$$;
-- +goose StatementEnd

-- loom_lack is how many tasks River's queue of a tenant has less than its reserve.
-- +goose StatementBegin
CREATE FUNCTION loom_lack(p_tenant text) RETURNS int
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_reserve int := coalesce(loom_reserve(p_tenant), 0);
BEGIN
    RETURN v_reserve - (SELECT count(*) FROM (
        SELECT 1 FROM river_job r WHERE r.state = 'available' AND r.queue = 'tenant_' || p_tenant LIMIT v_reserve) AS there);
END
$$;
-- +goose StatementEnd

-- loom_backlog_tenants gives the tenants with a backlog, however long that is.
-- +goose StatementBegin
CREATE FUNCTION loom_backlog_tenants() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE named AS (
        (SELECT b.tenant_id FROM backlog b ORDER BY b.tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT b.tenant_id FROM backlog b WHERE b.tenant_id > named.tenant_id ORDER BY b.tenant_id LIMIT 1)
        FROM named WHERE named.tenant_id IS NOT NULL
    )
    SELECT tenant_id FROM named WHERE tenant_id IS NOT NULL
$$;
-- +goose StatementEnd

-- As before (0023), but of a cluster no more than 1,000 nodes are looked at: where few
-- of them are at work, all were. Of a larger one it is an estimate.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_priority(p_cluster bigint) RETURNS smallint
LANGUAGE sql STABLE AS $$
    SELECT (CASE WHEN b.busy <= 4 THEN 1 WHEN b.busy <= 16 THEN 2 WHEN b.busy <= 64 THEN 3 ELSE 4 END)::smallint
    FROM (SELECT count(*) AS busy
          FROM (SELECT 1 FROM (SELECT n.task_id FROM nodes n WHERE n.cluster_id = p_cluster LIMIT 1000) AS looked
                WHERE looked.task_id IS NOT NULL LIMIT 65) AS few) AS b
$$;
-- +goose StatementEnd

-- loom_hand makes River jobs of ready tasks available, in the place in the order that
-- the tasks have. Who cannot have a job's lock at once leaves it: it is being given up.
-- +goose StatementBegin
CREATE FUNCTION loom_hand(p_tasks bigint[], p_priorities smallint[], p_since timestamptz[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
BEGIN
    UPDATE tasks t SET in_backlog = false WHERE t.id = ANY(p_tasks) AND t.in_backlog;
    WITH due AS MATERIALIZED (
        SELECT r.id, x.priority, x.since
        FROM unnest(p_tasks, p_priorities, p_since) AS x (task, priority, since)
        JOIN tasks t ON t.id = x.task JOIN operations o ON o.id = t.operation_id
        JOIN river_job r ON r.id = t.river_job_id
        WHERE t.status || '' = 'ready' AND o.status || '' IN ('running', 'rolling_back') AND r.state::text = 'pending'
        ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
    ), flipped AS (
        UPDATE river_job r SET state = 'available', scheduled_at = due.since, priority = due.priority
        FROM due WHERE r.id = due.id
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

-- loom_top_up brings River's queue of a tenant back to its reserve, once half of it is
-- gone: with what would come last, which then stays there for the longest time.
-- +goose StatementBegin
CREATE FUNCTION loom_top_up(p_tenant text) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_lack int := loom_lack(p_tenant);
    v_tasks bigint[];
    v_priorities smallint[];
    v_since timestamptz[];
BEGIN
    IF v_lack <= 0 OR v_lack * 2 < loom_reserve(p_tenant) THEN
        RETURN 0;
    END IF;
    WITH last AS MATERIALIZED (
        SELECT b.task_id FROM backlog b WHERE b.tenant_id = p_tenant
        ORDER BY b.tenant_id DESC, b.priority DESC, b.since DESC, b.task_id DESC LIMIT v_lack FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM backlog b USING last WHERE b.task_id = last.task_id
        RETURNING b.task_id, b.priority, b.since
    )
    SELECT array_agg(g.task_id), array_agg(g.priority), array_agg(g.since) INTO v_tasks, v_priorities, v_since FROM gone g;
    IF v_tasks IS NULL THEN
        RETURN 0;
    END IF;
    RETURN loom_hand(v_tasks, v_priorities, v_since);
END
$$;
-- +goose StatementEnd

-- loom_deliver_now makes River jobs of ready tasks available, as loom_deliver did (0023).
-- +goose StatementBegin
CREATE FUNCTION loom_deliver_now(p_tasks bigint[]) RETURNS int
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

-- As before (0023), but what is more than the reserve waits in the backlog, and behind
-- it if there is one.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_deliver(p_tasks bigint[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_of record;
    v_room int;
    v_count int := 0;
BEGIN
    IF coalesce(cardinality(p_tasks), 0) = 0 THEN
        RETURN 0;
    END IF;
    FOR v_of IN
        WITH due AS (
            SELECT t.id, t.tenant_id, t.cluster_id, t.operation_id
            FROM tasks t JOIN operations o ON o.id = t.operation_id JOIN river_job r ON r.id = t.river_job_id
            WHERE t.id = ANY(p_tasks) AND t.status || '' = 'ready' AND o.status || '' IN ('running', 'rolling_back') AND r.state::text = 'pending'
        ), weight AS MATERIALIZED (
            SELECT c.cluster_id, loom_priority(c.cluster_id) AS priority FROM (SELECT DISTINCT cluster_id FROM due) AS c
        ), line AS (
            SELECT due.*, w.priority FROM due JOIN weight w USING (cluster_id) ORDER BY due.tenant_id, w.priority, due.id
        )
        SELECT l.tenant_id, array_agg(l.id) AS tasks, array_agg(l.priority) AS priorities, array_agg(l.operation_id) AS operations
        FROM line l GROUP BY l.tenant_id ORDER BY l.tenant_id
    LOOP
        v_room := CASE WHEN EXISTS (SELECT 1 FROM backlog b WHERE b.tenant_id = v_of.tenant_id) THEN 0
                       ELSE greatest(loom_lack(v_of.tenant_id), 0) END;
        IF v_room > 0 THEN
            v_count := v_count + loom_hand(v_of.tasks[1:v_room], v_of.priorities[1:v_room], array_fill(now(), ARRAY[least(v_room, cardinality(v_of.tasks))]));
        END IF;
        IF cardinality(v_of.tasks) > v_room THEN
            INSERT INTO backlog (task_id, tenant_id, operation_id, priority, since)
            SELECT x.task, v_of.tenant_id, x.operation, x.priority, now()
            FROM unnest(v_of.tasks[v_room + 1:], v_of.operations[v_room + 1:], v_of.priorities[v_room + 1:]) AS x (task, operation, priority)
            ON CONFLICT DO NOTHING;
            UPDATE tasks t SET in_backlog = true WHERE t.id = ANY(v_of.tasks[v_room + 1:]);
        END IF;
    END LOOP;
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- loom_line_up puts tasks of a running operation that are about to be ready, in the
-- order of their ids, into the backlog: those for which River's queue has no room. It
-- gives them. Without an operation it gives NULL, loom_deliver sees to those.
-- +goose StatementBegin
CREATE FUNCTION loom_line_up(p_tasks bigint[], p_operation bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text;
    v_cluster bigint;
    v_priority smallint;
    v_room int := 0;
    v_line bigint[];
BEGIN
    IF p_operation IS NULL THEN
        RETURN NULL;
    ELSIF cardinality(p_tasks) = 0 THEN
        RETURN '{}';
    END IF;
    SELECT o.tenant_id, o.cluster_id INTO v_tenant, v_cluster FROM operations o WHERE o.id = p_operation;
    IF NOT EXISTS (SELECT 1 FROM backlog b WHERE b.tenant_id = v_tenant) THEN
        v_room := greatest(loom_lack(v_tenant), 0);
    END IF;
    v_line := p_tasks[v_room + 1:];
    IF cardinality(v_line) > 0 THEN
        v_priority := loom_priority(v_cluster);
        INSERT INTO backlog (task_id, tenant_id, operation_id, priority, since)
        SELECT x.id, v_tenant, p_operation, v_priority, now() FROM unnest(v_line) AS x (id);
    END IF;
    RETURN v_line;
END
$$;
-- +goose StatementEnd

-- As before (0024), but for what waits in the backlog.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_finish(p_process text, p_tasks bigint[], p_attempts int[], p_results jsonb[], p_tenants text[], p_rooms int[])
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
    v_due bigint[];
    v_line bigint[];
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
        v_due := ARRAY(SELECT unnest(v_next) INTERSECT SELECT unnest(v_rest) ORDER BY 1);
        v_line := loom_line_up(v_due, CASE WHEN cardinality(v_operations) = 1 THEN v_running[1] END);
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
-- +goose StatementEnd

-- As before (0031), and what waits in the backlog has its turn too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_take(p_next bigint[], p_operations bigint[], p_process text, p_tenants text[], p_rooms int[])
RETURNS TABLE (id bigint, node uuid, machine boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_of record;
    v_tasks bigint[];
    v_queue text;
    v_behind boolean;
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
        WHERE p.room > 0 AND NOT EXISTS (SELECT 1 FROM paused_tenants z WHERE z.tenant_id = p.tenant)
    LOOP
        v_queue := 'tenant_' || v_of.tenant;
        v_behind := EXISTS (SELECT 1 FROM backlog b WHERE b.tenant_id = v_of.tenant);
        IF v_behind OR EXISTS (SELECT 1 FROM river_job r WHERE r.state = 'available' AND r.queue = v_queue) THEN
            v_tasks := ARRAY(SELECT loom_first(v_of.tasks, p_operations, v_of.tenant, v_of.room));
        ELSE
            v_tasks := v_of.tasks[1:v_of.room];
        END IF;
        RETURN QUERY
        WITH begun AS (
            UPDATE tasks t
            SET status = 'running', remaining = 0, in_backlog = false, attempt = t.attempt + 1, process_id = p_process, code = 0, message = '',
                started_at = coalesce(t.started_at, clock_timestamp()), ended_at = NULL
            FROM unnest(v_tasks) AS x (id)
            WHERE t.id = x.id AND t.operation_id = ANY(p_operations) AND t.status || '' IN ('blocked', 'ready')
            RETURNING t.id, t.attempt, t.node_id, t.action
        ), tried AS (
            INSERT INTO attempts (task_id, number, process_id, status, started_at)
            SELECT b.id, b.attempt, p_process, 'running', clock_timestamp() FROM begun b
        )
        SELECT b.id, b.node_id, b.action IN ('create', 'confirm', 'delete') FROM begun b;
        IF v_behind THEN
            PERFORM loom_top_up(v_of.tenant);
        END IF;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- loom_first gives the tasks that loom_take may begin where others wait: those of
-- River's queue, of the backlog and what has just become ready, in one order. What has
-- its turn but belongs to an operation that the caller does not hold is left to River.
DROP FUNCTION loom_first;
-- +goose StatementBegin
CREATE FUNCTION loom_first(p_next bigint[], p_operations bigint[], p_tenant text, p_room int) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_queue text := 'tenant_' || p_tenant;
    v_line bigint[];
    v_of bigint[];
    v_priorities smallint[];
    v_since timestamptz[];
    v_last smallint := 32767;
    v_until timestamptz := 'infinity';
    v_fresh smallint;
    v_plain boolean := false;
    v_mine bigint[];
    v_waited bigint[];
    v_due bigint[];
    v_places int[];
    v_strange int[];
    v_held bigint[];
BEGIN
    SELECT array_agg(l.task_id), array_agg(l.operation_id), array_agg(l.priority), array_agg(l.since)
    INTO v_line, v_of, v_priorities, v_since
    FROM (SELECT * FROM backlog b WHERE b.tenant_id = p_tenant
          ORDER BY b.tenant_id, b.priority, b.since, b.task_id LIMIT p_room FOR UPDATE SKIP LOCKED) AS l;
    IF cardinality(v_line) = p_room THEN -- nothing behind these has its turn
        v_last := v_priorities[p_room];
        v_until := v_since[p_room];
    END IF;
    IF cardinality(v_line) = p_room AND cardinality(p_operations) = 1 THEN -- most of the time these are it
        SELECT loom_priority(o.cluster_id) INTO v_fresh FROM operations o WHERE o.id = p_operations[1];
        v_plain := v_fresh >= v_last AND NOT EXISTS (
            SELECT 1 FROM river_job r
            WHERE r.state = 'available' AND r.queue = v_queue AND r.scheduled_at <= now() AND (r.priority, r.scheduled_at) <= (v_last, v_until));
    END IF;
    IF v_plain THEN
        v_places := ARRAY(SELECT generate_series(1, p_room));
    ELSE
        WITH mine AS (
            SELECT t.id, t.cluster_id FROM unnest(p_next) AS x (id) JOIN tasks t ON t.id = x.id
        ), weight AS MATERIALIZED (
            SELECT c.cluster_id, loom_priority(c.cluster_id) AS priority FROM (SELECT DISTINCT cluster_id FROM mine) AS c
        ), first AS (
            (SELECT r.priority, r.scheduled_at AS since, (r.args->>'task_id')::bigint AS task, 0 AS place, 'river' AS source
             FROM river_job r
             WHERE r.state = 'available' AND r.queue = v_queue AND r.scheduled_at <= now() AND (r.priority, r.scheduled_at) <= (v_last, v_until)
             ORDER BY r.priority, r.scheduled_at, r.id LIMIT p_room)
            UNION ALL
            SELECT l.priority, l.since, l.task, l.place::int, 'backlog'
            FROM unnest(v_priorities, v_since, v_line) WITH ORDINALITY AS l (priority, since, task, place)
            UNION ALL
            SELECT w.priority, now(), m.id, 0, 'fresh' FROM mine m JOIN weight w USING (cluster_id)
            ORDER BY 1, 2, 3 LIMIT p_room
        )
        SELECT array_agg(f.task) FILTER (WHERE f.source = 'fresh'), array_agg(f.task) FILTER (WHERE f.source = 'river'),
               array_agg(f.place) FILTER (WHERE f.source = 'backlog')
        INTO v_mine, v_waited, v_places FROM first f;
    END IF;
    IF v_places IS NOT NULL THEN
        v_due := ARRAY(SELECT v_line[p] FROM unnest(v_places) AS p WHERE v_of[p] = ANY(p_operations));
        DELETE FROM backlog b WHERE b.task_id IN (SELECT v_line[p] FROM unnest(v_places) AS p);
        v_strange := ARRAY(SELECT p FROM unnest(v_places) AS p WHERE v_of[p] <> ALL(p_operations));
        IF cardinality(v_strange) > 0 THEN
            PERFORM loom_hand(ARRAY(SELECT v_line[p] FROM unnest(v_strange) AS p), ARRAY(SELECT v_priorities[p] FROM unnest(v_strange) AS p),
                              ARRAY(SELECT v_since[p] FROM unnest(v_strange) AS p));
        END IF;
        RETURN QUERY SELECT unnest(v_due);
    END IF;
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

-- As before (0004), and nothing of the operation stays in the backlog.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_drop(p_operation bigint) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
BEGIN
    PERFORM 1 FROM tasks t WHERE t.operation_id = p_operation AND t.status IN ('blocked', 'ready') ORDER BY t.gate DESC, t.id FOR UPDATE;
    UPDATE tasks t SET status = 'dropped', in_backlog = false, ended_at = clock_timestamp()
    WHERE t.operation_id = p_operation AND t.status IN ('blocked', 'ready');
    GET DIAGNOSTICS v_count = ROW_COUNT;
    DELETE FROM backlog b WHERE b.operation_id = p_operation;
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

-- As before (0018), and the reserves of River's queues are seen to.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_due() RETURNS int
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
    SELECT array_agg(w.queue) INTO v_snoozed
    FROM loom_waiting_queues() AS w (queue)
    WHERE w.queue LIKE 'tenant\_%' AND EXISTS (
        SELECT 1 FROM generate_series(1, 4) AS p (priority) CROSS JOIN LATERAL (
            SELECT 1 FROM river_job r
            WHERE r.state = 'available' AND r.queue = w.queue AND r.priority = p.priority::smallint
              AND r.scheduled_at BETWEEN now() - interval '3 seconds' AND now()
            ORDER BY r.scheduled_at, r.id LIMIT 1) AS found);
    PERFORM loom_wake(v_queues || v_snoozed);
    -- Nobody may be ending tasks of theirs just now.
    PERFORM loom_top_up(w.tenant_id) FROM loom_backlog_tenants() AS w (tenant_id);
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- As before (0024), but what waits in the backlog is not missing on River's queue.
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
          AND NOT EXISTS (SELECT 1 FROM backlog b WHERE b.task_id = t.id)
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


ALTER FUNCTION loom_lack SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_lack SET enable_seqscan = off;
ALTER FUNCTION loom_lack SET enable_hashjoin = off;
ALTER FUNCTION loom_lack SET enable_mergejoin = off;
ALTER FUNCTION loom_lack SET jit = off;

ALTER FUNCTION loom_hand SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_hand SET enable_seqscan = off;
ALTER FUNCTION loom_hand SET enable_hashjoin = off;
ALTER FUNCTION loom_hand SET enable_mergejoin = off;
ALTER FUNCTION loom_hand SET jit = off;

ALTER FUNCTION loom_top_up SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_top_up SET enable_seqscan = off;
ALTER FUNCTION loom_top_up SET enable_hashjoin = off;
ALTER FUNCTION loom_top_up SET enable_mergejoin = off;
ALTER FUNCTION loom_top_up SET jit = off;

ALTER FUNCTION loom_deliver SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_deliver SET enable_seqscan = off;
ALTER FUNCTION loom_deliver SET enable_hashjoin = off;
ALTER FUNCTION loom_deliver SET enable_mergejoin = off;
ALTER FUNCTION loom_deliver SET jit = off;

ALTER FUNCTION loom_first SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_first SET enable_seqscan = off;
ALTER FUNCTION loom_first SET enable_hashjoin = off;
ALTER FUNCTION loom_first SET enable_mergejoin = off;
ALTER FUNCTION loom_first SET jit = off;

ALTER FUNCTION loom_line_up SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_line_up SET enable_seqscan = off;
ALTER FUNCTION loom_line_up SET enable_hashjoin = off;
ALTER FUNCTION loom_line_up SET enable_mergejoin = off;
ALTER FUNCTION loom_line_up SET jit = off;

-- Settings go when a function is replaced.
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET enable_seqscan = off;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET enable_hashjoin = off;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET enable_mergejoin = off;
ALTER FUNCTION loom_finish(text, bigint[], int[], jsonb[], text[], int[]) SET jit = off;
ALTER FUNCTION loom_reconcile SET enable_seqscan = off;
ALTER FUNCTION loom_reconcile SET enable_hashjoin = off;
ALTER FUNCTION loom_reconcile SET enable_mergejoin = off;
ALTER FUNCTION loom_reconcile SET jit = off;
ALTER FUNCTION loom_drop(bigint) SET jit = off;
