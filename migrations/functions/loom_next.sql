-- loom_next is the task that an idle node takes next: of those that are ready and p_fresh,
-- which is about to be, the one of the longest remaining path. The caller holds the node.
CREATE FUNCTION loom_next(p_node uuid, p_fresh bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_ready bigint;
BEGIN
    SELECT b.id INTO v_ready FROM ready_tasks r JOIN tasks b ON b.id = r.task_id WHERE r.node_id = p_node
    ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1;
    IF v_ready IS NULL OR p_fresh IS NULL THEN
        RETURN coalesce(v_ready, p_fresh);
    END IF;
    RETURN (SELECT b.id FROM tasks b WHERE b.id IN (v_ready, p_fresh)
            ORDER BY b.rank DESC, b.action_order, b.service, b.number LIMIT 1);
END
$$;
