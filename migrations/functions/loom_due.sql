-- loom_due makes retries available whose time has come, wakes the queues of those and of jobs
-- whose snooze just ended (River itself looks every 5 seconds), and brings River's queues back
-- to their reserve. A queue on which something became available just now is woken once too
-- often.
CREATE FUNCTION loom_due() RETURNS int
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
