-- loom_lack is how many tasks River's queue of a tenant has less than its reserve.
CREATE FUNCTION loom_lack(p_tenant text) RETURNS int
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_reserve int := coalesce(loom_reserve(p_tenant), 0);
BEGIN
    RETURN v_reserve - (SELECT count(*) FROM (
        SELECT 1 FROM river_job r WHERE r.state = 'available' AND r.queue = 'tenant_' || p_tenant LIMIT v_reserve) AS there);
END
$$;
