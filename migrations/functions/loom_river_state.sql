-- loom_river_state returns where the River job of a task belongs: docs/engine.md has the table. Held says that
-- the task's node holds it.
CREATE FUNCTION loom_river_state(p_task text, p_operation text, p_held boolean) RETURNS river_job_state
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE p_task
        WHEN 'complete' THEN 'completed'::river_job_state
        WHEN 'failed' THEN 'discarded'::river_job_state
        WHEN 'dropped' THEN 'cancelled'::river_job_state
        WHEN 'skipped' THEN 'cancelled'::river_job_state
        WHEN 'running' THEN 'running'::river_job_state
        WHEN 'ready' THEN CASE WHEN p_held AND p_operation IN ('running', 'rolling_back') THEN 'available'::river_job_state ELSE 'pending'::river_job_state END
        ELSE 'pending'::river_job_state
    END
$$;
