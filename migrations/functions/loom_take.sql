-- loom_take begins attempts of tasks for a process: of each tenant as many as there is room
-- for, nothing of paused tenants. p_next are tasks that their nodes just took; they count as
-- last of those that wait with the same priority (p_priority, where the caller knows it). What
-- waits on River's queue or in the backlog of the operations in p_operations, which the caller
-- holds, is taken as well; the room for what comes before and is of others stays free: River
-- brings that.
--
-- River's jobs of what begins here stay pending, or become so again: nobody delivers them, and
-- where a task has to be delivered after all, who sees to that makes them available. The number
-- of the attempt is that of the task's last one and 1: River's own number, which may be lower,
-- is raised when the job is moved. River's queue is topped up by the scheduler alone
-- (loom_due): River takes whatever it finds there, also for processes that have no room, and
-- each task that goes this way costs twice.
--
-- Nothing is waited for here: the caller holds nodes and River jobs already.
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
