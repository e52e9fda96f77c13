-- loom_reserve is how many tasks of a tenant River's queue holds where there are more: a
-- hundred whatever the number of workers. A process in which tasks end takes from the backlog;
-- River's queue is for those that have none yet. Tests replace it.
CREATE FUNCTION loom_reserve(p_tenant text) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
    SELECT 100
$$;
