-- loom_enqueue_end asks the scheduler to look whether operations have ended. Asking twice does
-- no harm.
CREATE FUNCTION loom_enqueue_end(p_operations bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(p_operations), 0) = 0 THEN
        RETURN;
    END IF;
    INSERT INTO river_job (state, queue, kind, args, max_attempts)
    SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', id), 25
    FROM unnest(p_operations) AS id;
    PERFORM loom_wake(ARRAY['control']);
END
$$;
