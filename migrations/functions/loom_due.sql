-- loom_due makes retries available whose time has come, and wakes the queues on which something became due
-- just now. Returns how many retries there were.
CREATE FUNCTION loom_due() RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_count int;
    v_queues text[];
    v_back text[];
BEGIN
    WITH due AS (
        SELECT r.id FROM river_job r
        WHERE r.state = 'scheduled' AND r.kind = 'run_task' AND r.scheduled_at <= now()
        ORDER BY r.id FOR UPDATE SKIP LOCKED
    ), moved AS (
        UPDATE river_job r SET state = 'available' FROM due WHERE r.id = due.id RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT moved.queue) INTO v_count, v_queues FROM moved;
    -- Small clusters go first. So that the others get their turn, the oldest job of each queue is raised after minutes.
    WITH old AS (
        SELECT head.id FROM loom_waiting_queues() AS w (queue) CROSS JOIN LATERAL (
            SELECT r.id FROM generate_series(2, 4) AS p (priority) CROSS JOIN LATERAL (
                SELECT j.id, j.scheduled_at FROM river_job j
                WHERE j.state = 'available' AND j.queue = w.queue AND j.priority = p.priority::smallint AND j.scheduled_at < now() - interval '5 minutes'
                ORDER BY j.scheduled_at, j.id LIMIT 1) AS r
            ORDER BY r.scheduled_at, r.id LIMIT 1) AS head
        WHERE w.queue LIKE 'tenant\_%'
    )
    UPDATE river_job r SET priority = 1 FROM old WHERE r.id = old.id AND r.state = 'available';
    -- What is given back for a second River makes available at once, due later, and then wakes nobody.
    SELECT array_agg(w.queue) INTO v_back
    FROM loom_waiting_queues() AS w (queue)
    WHERE w.queue LIKE 'tenant\_%' AND EXISTS (
        SELECT 1 FROM generate_series(1, 4) AS p (priority) CROSS JOIN LATERAL (
            SELECT 1 FROM river_job r
            WHERE r.state = 'available' AND r.queue = w.queue AND r.priority = p.priority::smallint
              AND r.scheduled_at BETWEEN now() - interval '3 seconds' AND now()
            ORDER BY r.scheduled_at, r.id LIMIT 1) AS found);
    PERFORM loom_wake(v_queues || v_back);
    RETURN v_count;
END
$$;
