-- loom_next returns the ready task of a node with the longest path behind it, NULL without one.
CREATE FUNCTION loom_next(p_operation bigint, p_node uuid) RETURNS bigint
LANGUAGE sql STABLE
SET enable_seqscan = off
AS $$
    SELECT t.id FROM tasks t
    WHERE t.operation_id = p_operation AND t.node_id = p_node AND t.status || '' = 'ready'
    ORDER BY t.rank DESC, t.action_order, t.service, t.number LIMIT 1
$$;
