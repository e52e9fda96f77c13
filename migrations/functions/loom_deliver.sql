-- loom_deliver makes the River jobs of tasks available that their nodes hold and that are
-- ready, wakes their queues and returns how many. What is more than the reserve of River's
-- queue waits in the backlog, and behind it if there is one. The caller holds the nodes.
CREATE FUNCTION loom_deliver(p_tasks bigint[]) RETURNS int
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
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
