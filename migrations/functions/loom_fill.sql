-- loom_fill begins for a process, of each tenant in p_tenants, up to p_rooms tasks of those
-- that wait, in the order in which they have their turn (loom_take). It answers as loom_finish
-- does for a batch in which nothing ended, and with no row where nothing waits.
CREATE FUNCTION loom_fill(p_process text, p_tenants text[], p_rooms int[])
RETURNS TABLE (done bigint[], at timestamptz, task_id bigint, attempt int, tenant_id text,
               operation_id bigint, task_number int, action text, service text, old boolean, undo boolean,
               node_id uuid, incarnation int, leaving boolean, results jsonb, sealed_node jsonb, stamp text, nodes_version bigint)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_operations bigint[];
    v_begun bigint[];
    v_machines uuid[];
BEGIN
    -- Of the tasks of other operations River is told when they have their turn.
    SELECT array_agg(DISTINCT first.operation_id) INTO v_operations
    FROM unnest(p_tenants) AS p (tenant), LATERAL (
        SELECT l.operation_id FROM backlog_lots l WHERE l.tenant_id = p.tenant ORDER BY l.priority, l.since, l.id LIMIT 100) AS first;
    IF v_operations IS NULL THEN
        RETURN;
    END IF;
    PERFORM 1 FROM processes p WHERE p.id = p_process AND p.expires_at > now() FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT array_agg(o.id) FILTER (WHERE o.status IN ('running', 'rolling_back')) INTO v_operations
    FROM (SELECT p.id, p.status FROM operations p WHERE p.id = ANY(v_operations) ORDER BY p.id FOR SHARE) AS o;
    IF v_operations IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(b.id), array_agg(b.node) FILTER (WHERE b.machine) INTO v_begun, v_machines
    FROM loom_take('{}', v_operations, p_process, p_tenants, p_rooms, NULL) AS b;
    IF v_begun IS NULL THEN
        RETURN;
    END IF;
    IF v_machines IS NOT NULL THEN
        UPDATE nodes n SET state = CASE WHEN t.action = 'delete' THEN 'deleting' ELSE 'creating' END
        FROM unnest(v_begun) AS b (id) JOIN tasks t ON t.id = b.id
        WHERE n.id = t.node_id AND (t.action IN ('create', 'delete') OR t.action = 'confirm' AND n.state IN ('planned', 'failed'));
    END IF;
    PERFORM loom_signal(v_begun, v_machines);
    RETURN QUERY
    SELECT '{}'::bigint[], clock_timestamp(), 0::bigint, 0, '', 0::bigint, 0, '', '', false, false,
           '00000000-0000-0000-0000-000000000000'::uuid, 0, false, NULL::jsonb, NULL::jsonb, '', 0::bigint;
    RETURN QUERY
    WITH stamps AS MATERIALIZED (
        SELECT s.operation_id AS operation, s.stamp, s.nodes_version AS version FROM loom_stamps(v_operations) AS s
    )
    SELECT NULL::bigint[], NULL::timestamptz, t.id, t.attempt, t.tenant_id, t.operation_id, t.number, t.action, t.service, t.old, t.undo,
           n.id, n.incarnation, n.leaving, n.results,
           (SELECT jsonb_agg(jsonb_build_object('entity', s.entity, 'field', s.field, 'sealed', translate(encode(s.sealed, 'base64'), E'\n', '')))
            FROM secrets s WHERE s.tenant_id = t.tenant_id AND s.entity = 'node:' || n.id::text),
           g.stamp, g.version
    FROM unnest(v_begun) AS b (id) JOIN tasks t ON t.id = b.id JOIN nodes n ON n.id = t.node_id JOIN stamps g ON g.operation = t.operation_id;
END
$$;
