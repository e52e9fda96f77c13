-- loom_enqueue_end asks for a look at the end of those of the operations that may be over: their end gate is
-- one of those that opened, or they are failing. In a failing one every batch asks, since
-- two batches side by side cannot see each other's end.
CREATE FUNCTION loom_enqueue_end(p_operations bigint[], p_gates bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO river_job (state, queue, kind, args, max_attempts)
    SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', o.id), 25
    FROM operations o
    WHERE o.id = ANY(p_operations) AND (o.end_gate = ANY(p_gates) OR o.status || '' = 'failing');
    IF FOUND THEN
        PERFORM loom_wake(ARRAY['control']);
    END IF;
END
$$;
