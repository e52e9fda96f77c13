-- loom_wake_waiting wakes the queues on which something has waited for more than a moment:
-- perhaps nobody heard of it.
CREATE FUNCTION loom_wake_waiting() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_queues text[];
BEGIN
    SELECT array_agg(w.queue) INTO v_queues
    FROM loom_waiting_queues() AS w (queue)
    WHERE EXISTS (
        SELECT 1 FROM generate_series(1, 4) AS p (priority) CROSS JOIN LATERAL (
            SELECT 1 FROM river_job r
            WHERE r.state = 'available' AND r.queue = w.queue AND r.priority = p.priority::smallint
              AND r.scheduled_at < now() - interval '2 seconds'
            ORDER BY r.scheduled_at, r.id LIMIT 1) AS found);
    PERFORM loom_wake(v_queues);
END
$$;
