-- loom_old_log_partitions lists the partitions of days before p_day, oldest first.
CREATE FUNCTION loom_old_log_partitions(p_day date) RETURNS TABLE (name text)
LANGUAGE sql STABLE AS $$
    SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'task_logs'::regclass AND c.relname ~ '^task_logs_p[0-9]{8}$'
      AND to_date(right(c.relname, 8), 'YYYYMMDD') < p_day
    ORDER BY 1
$$;
