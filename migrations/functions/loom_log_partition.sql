-- loom_log_partition makes the partition of a day and moves there what the default one took for
-- it; false where it exists already. It attaches the table rather than creating it as a
-- partition, which would lock out every reader and writer.
CREATE FUNCTION loom_log_partition(p_day date) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_name text := 'task_logs_p' || to_char(p_day, 'YYYYMMDD');
BEGIN
    IF to_regclass(v_name) IS NOT NULL THEN
        RETURN false;
    END IF;
    LOCK TABLE ONLY task_logs IN SHARE UPDATE EXCLUSIVE MODE;
    -- Somebody else may have made it by now.
    IF to_regclass(v_name) IS NOT NULL THEN
        RETURN false;
    END IF;
    LOCK TABLE task_logs_default IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('CREATE TABLE %I (LIKE task_logs INCLUDING DEFAULTS INCLUDING INDEXES)', v_name);
    EXECUTE format('WITH moved AS (DELETE FROM task_logs_default WHERE day = %L RETURNING *) INSERT INTO %I SELECT * FROM moved', p_day, v_name);
    EXECUTE format('ALTER TABLE task_logs ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', v_name, p_day, p_day + 1);
    RETURN true;
END
$$;
