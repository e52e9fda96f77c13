-- loom_pass releases the tasks behind a task that failed for good.
CREATE FUNCTION loom_pass(p_task bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_nodes uuid[];
    v_gates bigint[];
BEGIN
    SELECT r.nodes, r.gates INTO v_nodes, v_gates FROM loom_release(ARRAY[p_task]) AS r;
    PERFORM loom_promote(v_nodes || (SELECT t.node_id FROM tasks t WHERE t.id = p_task));
    PERFORM loom_enqueue_end(ARRAY(SELECT t.operation_id FROM tasks t WHERE t.id = p_task), v_gates);
END
$$;
