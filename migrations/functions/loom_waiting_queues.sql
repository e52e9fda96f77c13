-- loom_waiting_queues gives the queues on which River jobs are available. It walks
-- river_job_prioritized_fetching_index (state, queue, priority, scheduled_at, id) from one
-- queue to the next.
CREATE FUNCTION loom_waiting_queues() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE queues AS (
        (SELECT r.queue FROM river_job r WHERE r.state = 'available' ORDER BY r.queue LIMIT 1)
        UNION ALL
        SELECT (SELECT r.queue FROM river_job r WHERE r.state = 'available' AND r.queue > queues.queue ORDER BY r.queue LIMIT 1)
        FROM queues WHERE queues.queue IS NOT NULL
    )
    SELECT queue FROM queues WHERE queue IS NOT NULL
$$;
