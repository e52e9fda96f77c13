-- loom_complete records successes, lets go on what waited for them, and returns the tasks whose result
-- counts: those that still ran with that attempt. The arguments are in the order of the
-- tasks' ids: the update is the fence and the lock. Then nodes are locked, then River jobs,
-- each in the order of their ids, as everywhere.
CREATE FUNCTION loom_complete(p_tasks bigint[], p_attempts int[], p_results jsonb[]) RETURNS SETOF bigint
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
    v_operations bigint[];
    v_done bigint[];
    v_of bigint[];
    v_results jsonb[];
    v_actions text[];
    v_services text[];
    v_jobs bigint[];
    v_held uuid[];
    v_moved boolean;
    v_behind uuid[];
    v_gates bigint[];
BEGIN
    SELECT array_agg(DISTINCT t.operation_id) INTO v_operations FROM tasks t WHERE t.id = ANY(p_tasks);
    PERFORM 1 FROM operations o WHERE o.id = ANY(v_operations) ORDER BY o.id FOR SHARE;

    WITH ended AS (
        UPDATE tasks t SET status = 'complete', code = 0, message = coalesce(x.result->>'message', ''), ended_at = clock_timestamp()
        FROM unnest(p_tasks, p_attempts, p_results) AS x (id, attempt, result)
        WHERE t.id = x.id AND t.status || '' = 'running' AND t.attempt = x.attempt
        RETURNING t.id, t.operation_id, t.attempt, x.result, t.river_job_id, t.node_id, t.action, t.service
    ), closed AS (
        UPDATE attempts a SET status = 'complete', message = coalesce(ended.result->>'message', ''), facts = ended.result->'result', ended_at = clock_timestamp()
        FROM ended WHERE a.task_id = ended.id AND a.number = ended.attempt
    )
    SELECT array_agg(e.id), array_agg(e.operation_id), array_agg(e.result), array_agg(e.action), array_agg(e.service), array_agg(e.river_job_id),
           array_agg(e.node_id), bool_or(e.action = 'delete' OR e.result ?| ARRAY['hostname', 'ipaddresses'])
    INTO v_done, v_of, v_results, v_actions, v_services, v_jobs, v_held, v_moved
    FROM ended e;
    IF v_done IS NULL THEN
        RETURN;
    END IF;
    SELECT r.nodes, r.gates INTO v_behind, v_gates FROM loom_release(v_done) AS r;

    PERFORM 1 FROM nodes n WHERE n.id = ANY(v_held || v_behind) ORDER BY n.id FOR UPDATE;
    UPDATE nodes n
    SET task_id = CASE WHEN n.task_id = x.task OR n.task_id IS NULL THEN loom_next(x.operation, n.id) ELSE n.task_id END,
        results = CASE WHEN x.result ? 'result' THEN loom_merge(n.results, x.result->'result') ELSE n.results END,
        hostname = coalesce(nullif(x.result->>'hostname', ''), n.hostname),
        ipaddresses = CASE WHEN x.action = 'delete' THEN '{}'
                           WHEN jsonb_typeof(x.result->'ipaddresses') = 'object' THEN x.result->'ipaddresses'
                           ELSE n.ipaddresses END,
        incarnation = n.incarnation + CASE WHEN x.action = 'delete' THEN 1 ELSE 0 END,
        state = loom_node_state(n.state, x.action, behind.actions),
        service_states = CASE WHEN x.action = 'delete' THEN '{}'
                              WHEN x.service = '' THEN n.service_states
                              ELSE n.service_states || loom_service_state(n.service_states->>x.service, x.service, x.action) END
    FROM unnest(v_held, v_done, v_of, v_results, v_actions, v_services) AS x (node, task, operation, result, action, service),
    LATERAL (SELECT array_agg(t.action) AS actions FROM task_edges e JOIN tasks t ON t.id = e.to_task
             WHERE x.action IN ('confirm', 'bootstrap', 'delete') AND e.from_task = x.task AND t.node_id = x.node) AS behind
    WHERE n.id = x.node;
    IF v_moved THEN
        INSERT INTO node_changes (cluster_id, version)
        SELECT DISTINCT t.cluster_id, 1
        FROM unnest(v_done, v_results) AS x (id, result) JOIN tasks t ON t.id = x.id
        WHERE t.action = 'delete' OR x.result ?| ARRAY['hostname', 'ipaddresses']
        ORDER BY 1
        ON CONFLICT (cluster_id) DO UPDATE SET version = node_changes.version + 1;
    END IF;

    PERFORM loom_promote(v_held || v_behind);
    UPDATE river_job r SET state = 'completed', finalized_at = now() WHERE r.id = ANY(v_jobs);
    PERFORM loom_enqueue_end(v_operations, v_gates);
    PERFORM loom_signal(v_done, v_held);
    RETURN QUERY SELECT unnest(v_done);
END
$$;
