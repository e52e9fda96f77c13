-- loom_skip skips a ready task, so that the tasks behind it continue, and reports whether it was
-- ready. Whoever skips a DELETE says that the machine is gone. Whoever skips the last step of
-- creating one says that it exists.
CREATE FUNCTION loom_skip(p_task bigint, p_by text, p_reason text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_nodes uuid[];
    v_behind uuid[];
    v_gates bigint[];
BEGIN
    UPDATE tasks t SET status = 'skipped', skipped_by = p_by, skip_reason = p_reason, ended_at = clock_timestamp()
    WHERE t.id = p_task AND NOT t.gate AND t.status = 'ready';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    SELECT r.nodes, r.gates INTO v_behind, v_gates FROM loom_release(ARRAY[p_task]) AS r;
    v_nodes := v_behind || (SELECT t.node_id FROM tasks t WHERE t.id = p_task);
    PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
    UPDATE nodes n
    SET task_id = nullif(n.task_id, t.id),
        incarnation = n.incarnation + CASE WHEN t.action = 'delete' THEN 1 ELSE 0 END,
        results = CASE WHEN t.action = 'delete' THEN n.results - 'providerid' ELSE n.results END,
        ipaddresses = CASE WHEN t.action = 'delete' THEN '{}' ELSE n.ipaddresses END,
        service_states = CASE WHEN t.action = 'delete' THEN '{}' ELSE n.service_states END,
        state = CASE WHEN t.action IN ('confirm', 'bootstrap', 'delete') THEN loom_node_state(n.state, t.action, behind.actions) ELSE n.state END
    FROM tasks t,
    LATERAL (SELECT array_agg(b.action) AS actions FROM task_edges e JOIN tasks b ON b.id = e.to_task
             WHERE e.from_task = t.id AND b.node_id = t.node_id) AS behind
    WHERE t.id = p_task AND n.id = t.node_id;
    INSERT INTO node_changes (cluster_id, version)
    SELECT t.cluster_id, 1 FROM tasks t WHERE t.id = p_task AND t.action = 'delete'
    ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 1;
    PERFORM loom_promote(v_nodes);
    PERFORM loom_deliver(ARRAY[p_task], false);
    PERFORM loom_enqueue_end(ARRAY(SELECT t.operation_id FROM tasks t WHERE t.id = p_task), v_gates);
    PERFORM loom_signal(ARRAY[p_task], v_nodes);
    RETURN true;
END
$$;
