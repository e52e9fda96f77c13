-- What the scheduler does every second and every ten seconds must not depend on
-- how much waits: one tenant with a long queue would slow down all others.

-- +goose Up

-- loom_waiting_queues gives the queues on which River jobs are available.
-- It walks river_job_prioritized_fetching_index (state, queue, priority,
-- scheduled_at, id) from one queue to the next.
-- +goose StatementBegin
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
-- +goose StatementEnd

-- loom_due makes retries available whose time has come, and wakes the queues of
-- those and of jobs whose snooze just ended: River itself looks every 5 seconds. A
-- queue on which something became available just now is woken once too often.
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
    RETURN v_count;
END
$$;
-- +goose StatementEnd

-- loom_wake_waiting wakes the queues on which something has waited for more than
-- a moment: perhaps nobody heard of it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_wake_waiting() RETURNS void
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
-- +goose StatementEnd

-- With many nodes the estimated cost of these is such that PostgreSQL would compile
-- their plans, which takes ten times as long as running them.
ALTER FUNCTION loom_drop(bigint) SET jit = off;
ALTER FUNCTION loom_reap() SET jit = off;
ALTER FUNCTION loom_reconcile(bigint) SET jit = off;
