-- loom_line_up puts tasks of a running operation that are about to be ready, in the order of
-- their ids, into the backlog: those for which River's queue has no room. It gives them.
-- p_priority is theirs where the caller knows it. Without an operation it gives NULL,
-- loom_deliver sees to those.
CREATE FUNCTION loom_line_up(p_tasks bigint[], p_operation bigint, p_priority smallint) RETURNS bigint[]
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_tenant text;
    v_cluster bigint;
    v_room int := 0;
    v_line bigint[];
BEGIN
    IF p_operation IS NULL THEN
        RETURN NULL;
    ELSIF cardinality(p_tasks) = 0 THEN
        RETURN '{}';
    END IF;
    SELECT o.tenant_id, o.cluster_id INTO v_tenant, v_cluster FROM operations o WHERE o.id = p_operation;
    IF NOT EXISTS (SELECT 1 FROM backlog_lots b WHERE b.tenant_id = v_tenant) THEN
        v_room := greatest(loom_lack(v_tenant), 0);
    END IF;
    v_line := p_tasks[v_room + 1:];
    IF cardinality(v_line) > 0 THEN
        PERFORM loom_lots(v_line, v_tenant, p_operation, coalesce(p_priority, loom_priority(v_cluster)), now());
    END IF;
    RETURN v_line;
END
$$;
