-- loom_keep_of_lot leaves some tasks, or none, in a lot that the caller has locked.
CREATE FUNCTION loom_keep_of_lot(p_lot bigint, p_tasks bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(p_tasks) = 0 THEN
        DELETE FROM backlog_lots l WHERE l.id = p_lot;
    ELSE
        UPDATE backlog_lots l SET tasks = p_tasks WHERE l.id = p_lot;
    END IF;
END
$$;
