-- loom_top_up brings River's queue of a tenant back to its reserve, once half of it is gone:
-- with what would come last, which then stays there for the longest time. Of the last lot, its
-- last tasks; then of the one before.
CREATE FUNCTION loom_top_up(p_tenant text) RETURNS int
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_lack int := loom_lack(p_tenant);
    v_lot record;
    v_keep int;
    v_count int := 0;
BEGIN
    IF v_lack <= 0 OR v_lack * 2 < loom_reserve(p_tenant) THEN
        RETURN 0;
    END IF;
    WHILE v_lack > 0 LOOP
        SELECT l.id, l.tasks, l.priority, l.since INTO v_lot FROM backlog_lots l WHERE l.tenant_id = p_tenant
        ORDER BY l.tenant_id DESC, l.priority DESC, l.since DESC, l.id DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        v_keep := greatest(cardinality(v_lot.tasks) - v_lack, 0);
        PERFORM loom_keep_of_lot(v_lot.id, v_lot.tasks[1:v_keep]);
        v_count := v_count + loom_hand(v_lot.tasks[v_keep + 1:], v_lot.priority, v_lot.since);
        v_lack := v_lack - (cardinality(v_lot.tasks) - v_keep);
    END LOOP;
    RETURN v_count;
END
$$;
