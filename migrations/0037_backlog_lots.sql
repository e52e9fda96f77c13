-- The backlog holds tasks in lots, not one by one: a lot is a row for up to a hundred
-- tasks that became ready together, so that what waits costs a batch something, not a
-- task (docs/decisions/0019, docs/performance.md).

-- +goose Up

-- Tasks, in the order of their ids, that are ready, hold their nodes, have inert River
-- jobs and belong to an operation that runs. tasks.in_backlog says the same of each.
CREATE TABLE backlog_lots (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id    text NOT NULL,
    operation_id bigint NOT NULL,
    priority     smallint NOT NULL, -- as River's
    since        timestamptz NOT NULL,
    tasks        bigint[] NOT NULL CHECK (cardinality(tasks) > 0)
) WITH (autovacuum_vacuum_scale_factor = 0.5);
CREATE INDEX backlog_lots_order ON backlog_lots (tenant_id, priority, since, id);
CREATE INDEX backlog_lots_operation ON backlog_lots (operation_id);

-- loom_lots puts tasks into the backlog, in their order. The caller marks them.
-- +goose StatementBegin
CREATE FUNCTION loom_lots(p_tasks bigint[], p_tenant text, p_operation bigint, p_priority smallint, p_since timestamptz) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO backlog_lots (tenant_id, operation_id, priority, since, tasks)
    SELECT p_tenant, p_operation, p_priority, p_since, p_tasks[s + 1:s + 100]
    FROM generate_series(0, cardinality(p_tasks) - 1, 100) AS s
    ORDER BY s
$$;
-- +goose StatementEnd

SELECT loom_lots(array_agg(b.task_id ORDER BY b.task_id), b.tenant_id, b.operation_id, b.priority, b.since)
FROM backlog b GROUP BY b.tenant_id, b.priority, b.since, b.operation_id ORDER BY b.tenant_id, b.priority, b.since, b.operation_id;
DROP TABLE backlog;
CREATE VIEW backlog AS
    SELECT unnest(l.tasks) AS task_id, l.tenant_id, l.operation_id, l.priority, l.since FROM backlog_lots l;

-- As before (0033), but a hundred whatever the number of workers: who has tasks that
-- end takes from the backlog, River's queue is for those who have none yet.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_reserve(p_tenant text) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT 100
$$;
-- +goose StatementEnd

-- As before (0033), of lots.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_backlog_tenants() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE named AS (
        (SELECT b.tenant_id FROM backlog_lots b ORDER BY b.tenant_id LIMIT 1)
        UNION ALL
        SELECT (SELECT b.tenant_id FROM backlog_lots b WHERE b.tenant_id > named.tenant_id ORDER BY b.tenant_id LIMIT 1)
        FROM named WHERE named.tenant_id IS NOT NULL
    )
    SELECT tenant_id FROM named WHERE tenant_id IS NOT NULL
$$;
-- +goose StatementEnd

-- As before (0033): of the last lot, its last tasks; then of the one before.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_top_up(p_tenant text) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_lack int := loom_lack(p_tenant);
    v_lot record;
    v_keep int;
    v_count int := 0;
BEGIN
    IF v_lack <= 0 OR v_lack * 2 < loom_reserve(p_tenant) THEN
        RETURN 0;
    END IF;
    WHILE v_lack > 0 LOOP
        SELECT l.id, l.tasks, l.priority, l.since INTO v_lot FROM backlog_lots l WHERE l.tenant_id = p_tenant
        ORDER BY l.tenant_id DESC, l.priority DESC, l.since DESC, l.id DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        v_keep := greatest(cardinality(v_lot.tasks) - v_lack, 0);
        PERFORM loom_keep_of_lot(v_lot.id, v_lot.tasks[1:v_keep]);
        v_count := v_count + loom_hand(v_lot.tasks[v_keep + 1:], v_lot.priority, v_lot.since);
        v_lack := v_lack - (cardinality(v_lot.tasks) - v_keep);
    END LOOP;
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- loom_keep_of_lot leaves some tasks, or none, in a lot that the caller has locked.
-- +goose StatementBegin
CREATE FUNCTION loom_keep_of_lot(p_lot bigint, p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(p_tasks) = 0 THEN
        DELETE FROM backlog_lots l WHERE l.id = p_lot;
    ELSE
        UPDATE backlog_lots l SET tasks = p_tasks WHERE l.id = p_lot;
    END IF;
END
$$;
-- +goose StatementEnd

-- As before (0033), of tasks that have one place in the order.
DROP FUNCTION loom_hand;
-- +goose StatementBegin
CREATE FUNCTION loom_hand(p_tasks bigint[], p_priority smallint, p_since timestamptz) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
BEGIN
    UPDATE tasks t SET in_backlog = false WHERE t.id = ANY(p_tasks) AND t.in_backlog;
    WITH due AS MATERIALIZED (
        SELECT r.id FROM unnest(p_tasks) AS x (task)
        JOIN tasks t ON t.id = x.task JOIN operations o ON o.id = t.operation_id
        JOIN river_job r ON r.id = t.river_job_id
        WHERE t.status || '' = 'ready' AND o.status || '' IN ('running', 'rolling_back') AND r.state::text = 'pending'
        ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
    ), flipped AS (
        UPDATE river_job r SET state = 'available', scheduled_at = p_since, priority = p_priority
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

-- As before (0033), of lots.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_deliver(p_tasks bigint[]) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_of record;
    v_room int;
    v_line bigint[];
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
        )
        SELECT d.tenant_id, d.operation_id, loom_priority(d.cluster_id) AS priority, array_agg(d.id ORDER BY d.id) AS tasks
        FROM due d GROUP BY d.tenant_id, d.operation_id, d.cluster_id ORDER BY d.tenant_id, priority, d.operation_id
    LOOP
        v_room := CASE WHEN EXISTS (SELECT 1 FROM backlog_lots b WHERE b.tenant_id = v_of.tenant_id) THEN 0
                       ELSE greatest(loom_lack(v_of.tenant_id), 0) END;
        IF v_room > 0 THEN
            v_count := v_count + loom_hand(v_of.tasks[1:v_room], v_of.priority, now());
        END IF;
        IF cardinality(v_of.tasks) > v_room THEN
            -- What somebody else lines up just now is his.
            WITH marked AS (
                UPDATE tasks t SET in_backlog = true
                WHERE t.id = ANY(v_of.tasks[v_room + 1:]) AND t.status || '' = 'ready' AND NOT t.in_backlog
                RETURNING t.id
            )
            SELECT array_agg(m.id ORDER BY m.id) INTO v_line FROM marked m;
            PERFORM loom_lots(v_line, v_of.tenant_id, v_of.operation_id, v_of.priority, now());
        END IF;
    END LOOP;
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- As before (0033), with the priority where the caller knows it.
DROP FUNCTION loom_line_up;
-- +goose StatementBegin
CREATE FUNCTION loom_line_up(p_tasks bigint[], p_operation bigint, p_priority smallint) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    v_tenant text;
    v_cluster bigint;
    v_room int := 0;
    v_line bigint[];
BEGIN
    IF p_operation IS NULL THEN
        RETURN NULL;
    ELSIF cardinality(p_tasks) = 0 THEN
        RETURN '{}';
    END IF;
    SELECT o.tenant_id, o.cluster_id INTO v_tenant, v_cluster FROM operations o WHERE o.id = p_operation;
    IF NOT EXISTS (SELECT 1 FROM backlog_lots b WHERE b.tenant_id = v_tenant) THEN
        v_room := greatest(loom_lack(v_tenant), 0);
    END IF;
    v_line := p_tasks[v_room + 1:];
    IF cardinality(v_line) > 0 THEN
        PERFORM loom_lots(v_line, v_tenant, p_operation, coalesce(p_priority, loom_priority(v_cluster)), now());
    END IF;
    RETURN v_line;
END
$$;
-- +goose StatementEnd

-- As before (0033), of lots, and with the priority of what has just become ready where
-- the caller knows it.
DROP FUNCTION loom_first;
-- +goose StatementBegin
CREATE FUNCTION loom_first(p_next bigint[], p_operations bigint[], p_tenant text, p_room int, p_priority smallint) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_queue text := 'tenant_' || p_tenant;
    v_lot backlog_lots;
    v_lots backlog_lots[] := '{}';
    v_line bigint[] := '{}';
    v_last smallint := 32767;
    v_until timestamptz := 'infinity';
    v_mine bigint[];
    v_waited bigint[];
    v_turn int; -- of the backlog, so many have their turn
    v_n int;
    v_gone bigint[] := '{}';
    v_held bigint[];
BEGIN
    FOR v_lot IN
        SELECT * FROM backlog_lots l WHERE l.tenant_id = p_tenant
        ORDER BY l.tenant_id, l.priority, l.since, l.id FOR UPDATE SKIP LOCKED
    LOOP
        v_lots := v_lots || v_lot;
        v_line := v_line || v_lot.tasks;
        EXIT WHEN cardinality(v_line) >= p_room;
    END LOOP;
    IF cardinality(v_line) >= p_room THEN -- nothing behind these has its turn
        v_last := v_lot.priority;
        v_until := v_lot.since;
        -- Most of the time these are it.
        IF cardinality(p_operations) = 1 AND v_last <= coalesce(p_priority, (SELECT loom_priority(o.cluster_id) FROM operations o WHERE o.id = p_operations[1]))
            AND NOT EXISTS (
                SELECT 1 FROM river_job r
                WHERE r.state = 'available' AND r.queue = v_queue AND r.scheduled_at <= now() AND (r.priority, r.scheduled_at) <= (v_last, v_until))
        THEN
            v_turn := p_room;
        END IF;
    END IF;
    IF v_turn IS NULL THEN
        WITH mine AS (
            SELECT t.id, t.cluster_id FROM unnest(p_next) AS x (id) JOIN tasks t ON t.id = x.id
        ), weight AS MATERIALIZED (
            SELECT c.cluster_id, loom_priority(c.cluster_id) AS priority FROM (SELECT DISTINCT cluster_id FROM mine) AS c
        ), first AS (
            (SELECT r.priority, r.scheduled_at AS since, (r.args->>'task_id')::bigint AS task, 'river' AS source
             FROM river_job r
             WHERE r.state = 'available' AND r.queue = v_queue AND r.scheduled_at <= now() AND (r.priority, r.scheduled_at) <= (v_last, v_until)
             ORDER BY r.priority, r.scheduled_at, r.id LIMIT p_room)
            UNION ALL
            SELECT l.priority, l.since, x.task, 'backlog' FROM unnest(v_lots) AS l CROSS JOIN LATERAL unnest(l.tasks) AS x (task)
            UNION ALL
            SELECT w.priority, now(), m.id, 'fresh' FROM mine m JOIN weight w USING (cluster_id)
            ORDER BY 1, 2, 3 LIMIT p_room
        )
        SELECT array_agg(f.task) FILTER (WHERE f.source = 'fresh'), array_agg(f.task) FILTER (WHERE f.source = 'river'),
               count(*) FILTER (WHERE f.source = 'backlog')
        INTO v_mine, v_waited, v_turn FROM first f;
    END IF;
    FOREACH v_lot IN ARRAY v_lots LOOP
        EXIT WHEN v_turn = 0;
        v_n := least(v_turn, cardinality(v_lot.tasks));
        v_turn := v_turn - v_n;
        IF v_n = cardinality(v_lot.tasks) THEN
            v_gone := v_gone || v_lot.id;
        ELSE
            UPDATE backlog_lots l SET tasks = v_lot.tasks[v_n + 1:] WHERE l.id = v_lot.id;
        END IF;
        IF v_lot.operation_id = ANY(p_operations) THEN
            RETURN QUERY SELECT unnest(v_lot.tasks[1:v_n]);
        ELSE
            PERFORM loom_hand(v_lot.tasks[1:v_n], v_lot.priority, v_lot.since);
        END IF;
    END LOOP;
    DELETE FROM backlog_lots l WHERE l.id = ANY(v_gone);
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

-- As before (0033), but River's queue is topped up by the scheduler alone (loom_due):
-- River takes whatever it finds there, also for processes that have no room, and each
-- task that goes this way costs twice.
DROP FUNCTION loom_take;
-- +goose StatementBegin
CREATE FUNCTION loom_take(p_next bigint[], p_operations bigint[], p_process text, p_tenants text[], p_rooms int[], p_priority smallint)
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
        v_behind := EXISTS (SELECT 1 FROM backlog_lots b WHERE b.tenant_id = v_of.tenant);
        IF v_behind OR EXISTS (SELECT 1 FROM river_job r WHERE r.state = 'available' AND r.queue = v_queue) THEN
            v_tasks := ARRAY(SELECT loom_first(v_of.tasks, p_operations, v_of.tenant, v_of.room, p_priority));
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
    END LOOP;
END
$$;
-- +goose StatementEnd

-- As before (0033); attempts keep what they told, and what is a gate is read from an
-- index, not from each task.
CREATE INDEX tasks_gates ON tasks (operation_id, id) WHERE gate;
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
-- +goose StatementEnd

-- As before (0033), of lots.
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
    DELETE FROM backlog_lots l WHERE l.operation_id = p_operation;
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

-- As before (0033).
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
-- +goose StatementEnd

-- Settings go when a function is replaced.
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
