-- loom_complete records successes for provisioners of an earlier release; loom_finish replaced
-- it.
CREATE FUNCTION loom_complete(p_tasks bigint[], p_attempts int[], p_results jsonb[])
RETURNS TABLE (task_id bigint)
LANGUAGE sql AS $$
    SELECT f.task_id FROM loom_finish(p_tasks, p_attempts, p_results, '', '{}', '{}') AS f WHERE NOT f.begun
$$;
