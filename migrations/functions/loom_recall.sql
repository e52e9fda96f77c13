-- loom_recall delivers River jobs again, after two minutes, that end operations or tell hooks,
-- when a living process fetched them and never heard of it, or when the end could not be
-- written down (docs/decisions/0053). Both kinds are short, and doing them twice harms nobody.
-- River would wait for longer than any task may take, and an operation whose end somebody seems
-- to look for ends no sooner. Those of lost processes are loom_reap's, tasks loom_reconcile's.
CREATE FUNCTION loom_recall() RETURNS int
LANGUAGE plpgsql
SET jit = off
AS $$
DECLARE
    v_count int;
    v_queues text[];
BEGIN
    WITH stuck AS (
        SELECT r.id FROM river_job r
        WHERE r.state = 'running' AND r.kind IN ('end_operation', 'deliver_hook') AND r.attempted_at < now() - interval '2 minutes'
        ORDER BY r.id FOR UPDATE SKIP LOCKED
    ), back AS (
        UPDATE river_job r SET state = 'available', scheduled_at = now() FROM stuck WHERE r.id = stuck.id
        RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT queue) INTO v_count, v_queues FROM back;
    PERFORM loom_wake(v_queues);
    RETURN v_count;
END
$$;
