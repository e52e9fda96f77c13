-- loom_first gives the tasks that loom_take may begin where others wait: those of River's
-- queue, of the backlog and what has just become ready, in one order. p_priority is that of
-- what has just become ready, where the caller knows it. What has its turn but belongs to an
-- operation that the caller does not hold is left to River.
CREATE FUNCTION loom_first(p_next bigint[], p_operations bigint[], p_tenant text, p_room int, p_priority smallint) RETURNS SETOF bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
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
