-- Machines that a delete could not delete, and what happened at the end of leases.

-- +goose Up

-- One row for each machine that the delete of a cluster left behind. It stays when
-- the machine is gone: usage of the node ends then.
CREATE TABLE leftovers (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     text NOT NULL REFERENCES tenants,
    cluster_id    bigint NOT NULL REFERENCES clusters,
    node_id       uuid NOT NULL REFERENCES nodes ON DELETE CASCADE,
    incarnation   int NOT NULL, -- of the node: its next machine is another one
    provider_name text NOT NULL,
    machine_id    text NOT NULL DEFAULT '', -- the provider's own, '' where none is known
    last_error    text NOT NULL DEFAULT '',
    tries         int NOT NULL DEFAULT 0,
    first_at      timestamptz NOT NULL DEFAULT now(),
    last_at       timestamptz NOT NULL DEFAULT now(),
    ended_at      timestamptz, -- NULL while the machine may be there
    ending        text NOT NULL DEFAULT '' CHECK (ending IN ('', 'removed', 'abandoned', 'settled')),
    CHECK ((ended_at IS NULL) = (ending = '')),
    UNIQUE (node_id, incarnation)
);
CREATE INDEX leftovers_cluster ON leftovers (cluster_id);
CREATE INDEX leftovers_open ON leftovers (id) WHERE ended_at IS NULL;

-- Provisioners are asked to remove them as they are asked to remove orphans.
ALTER TABLE provider_requests DROP CONSTRAINT provider_requests_purpose_check;
ALTER TABLE provider_requests ADD CONSTRAINT provider_requests_purpose_check CHECK (purpose IN ('probe', 'sweep', 'remove', 'leftover'));
ALTER TABLE provider_requests ADD COLUMN leftover_id bigint; -- the machine of a leftover
CREATE INDEX provider_requests_leftover ON provider_requests (leftover_id) WHERE leftover_id IS NOT NULL AND ended_at IS NULL;

-- What the duty of leases did about the end of a cluster's lease. Another end of the
-- lease makes it void: expires_at says of which one it is.
CREATE TABLE lease_ends (
    cluster_id bigint PRIMARY KEY REFERENCES clusters,
    tenant_id  text NOT NULL REFERENCES tenants,
    expires_at timestamptz NOT NULL,
    reminded   int, -- hours before the end of the last reminder, 0: of the end itself
    stopped_for timestamptz, -- the end at which stopping the services was begun
    tried_at   timestamptz, -- when an operation was begun, or refused, last
    next_at    timestamptz, -- not before this time again
    problem    text NOT NULL DEFAULT '' -- why nothing could begin then
);

-- loom_pass lets what waits behind a task go on although the task failed: in the
-- delete of a cluster one machine must not keep the others. The caller holds the
-- operation FOR UPDATE and has given the task up.
-- +goose StatementBegin
CREATE FUNCTION loom_pass(p_task bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_open bigint[];
    v_ready uuid[];
    v_ends bigint[];
BEGIN
    PERFORM 1 FROM tasks g
    WHERE g.gate AND g.id IN (SELECT e.to_task FROM task_edges e WHERE e.from_task = p_task)
    ORDER BY g.id FOR UPDATE;
    WITH counted AS (
        UPDATE tasks g
        SET remaining = g.remaining - 1,
            status = CASE WHEN g.remaining = 1 AND g.status = 'blocked' THEN 'complete' ELSE g.status END,
            ended_at = CASE WHEN g.remaining = 1 THEN clock_timestamp() END
        FROM task_edges e WHERE e.from_task = p_task AND g.id = e.to_task AND g.gate
        RETURNING g.id, g.remaining
    )
    SELECT array_agg(id) INTO v_open FROM counted WHERE remaining = 0;
    PERFORM 1 FROM tasks t
    WHERE NOT t.gate AND t.id IN (SELECT e.to_task FROM task_edges e WHERE e.from_task = ANY(p_task || v_open))
    ORDER BY t.id FOR UPDATE;
    WITH down AS (
        SELECT e.to_task, count(*)::int AS n FROM task_edges e WHERE e.from_task = ANY(p_task || v_open) GROUP BY e.to_task
    ), counted AS (
        UPDATE tasks t
        SET remaining = t.remaining - down.n,
            status = CASE WHEN t.remaining = down.n AND t.status = 'blocked' THEN 'ready' ELSE t.status END
        FROM down WHERE t.id = down.to_task AND NOT t.gate
        RETURNING t.node_id, t.status
    )
    SELECT array_agg(node_id) INTO v_ready FROM counted WHERE status = 'ready';
    PERFORM loom_promote(array_cat(v_ready, ARRAY(SELECT t.node_id FROM tasks t WHERE t.id = p_task)));
    SELECT array_agg(o.id) INTO v_ends FROM operations o JOIN tasks t ON t.operation_id = o.id
    WHERE t.id = p_task AND o.end_gate = ANY(v_open);
    PERFORM loom_enqueue_end(v_ends);
END
$$;
-- +goose StatementEnd

-- As before, but for deliveries that began nothing within minutes: the process that
-- has them lives and forgot them. River itself would wait for the longest limit that
-- a task may have. Delivering one too often is harmless, loom_start fences it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION loom_reconcile(p_operation bigint) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
    v_nodes uuid[];
    v_queues text[];
    v_touched int := 0;
    v_n int;
BEGIN
    PERFORM 1 FROM operations o WHERE o.id = p_operation FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;

    -- Nodes that hold what is over, or nothing though something is ready.
    SELECT array_agg(n.id) INTO v_nodes
    FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id
    WHERE o.id = p_operation AND (
        EXISTS (SELECT 1 FROM tasks t WHERE t.id = n.task_id AND t.status NOT IN ('ready', 'running', 'blocked'))
        OR n.task_id IS NULL AND EXISTS (SELECT 1 FROM tasks t WHERE t.node_id = n.id AND t.status = 'ready'));
    IF v_nodes IS NOT NULL THEN
        PERFORM 1 FROM nodes n WHERE n.id = ANY(v_nodes) ORDER BY n.id FOR UPDATE;
        UPDATE nodes n SET task_id = NULL FROM tasks t
        WHERE n.id = ANY(v_nodes) AND t.id = n.task_id AND t.status NOT IN ('ready', 'running', 'blocked');
        v_touched := v_touched + loom_promote(v_nodes);
    END IF;

    -- Held, ready, and its River job is gone or finished: River's completer may
    -- have closed a later delivery.
    WITH missing AS (
        SELECT t.id FROM operations o
        JOIN nodes n ON n.cluster_id = o.cluster_id
        JOIN tasks t ON t.id = n.task_id AND t.status = 'ready' AND t.operation_id = o.id
        WHERE o.id = p_operation AND NOT EXISTS (SELECT 1 FROM river_job r WHERE r.id = t.river_job_id)
    ), made AS (
        INSERT INTO river_job (state, queue, kind, args, max_attempts, attempt)
        SELECT 'pending', 'tenant_' || t.tenant_id, 'run_task', jsonb_build_object('task_id', t.id), 1000, t.attempt
        FROM tasks t JOIN missing m ON m.id = t.id
        RETURNING id, (args->>'task_id')::bigint AS task_id
    )
    UPDATE tasks t SET river_job_id = made.id FROM made WHERE t.id = made.task_id;
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_touched := v_touched + v_n;
    WITH held AS (
        SELECT t.river_job_id, t.attempt FROM operations o
        JOIN nodes n ON n.cluster_id = o.cluster_id
        JOIN tasks t ON t.id = n.task_id AND t.status = 'ready' AND t.operation_id = o.id
        WHERE o.id = p_operation AND o.status IN ('running', 'rolling_back')
    ), again AS (
        SELECT r.id FROM river_job r JOIN held ON held.river_job_id = r.id
        WHERE r.state IN ('pending', 'completed', 'cancelled', 'discarded')
           OR r.state = 'running' AND r.attempted_at < now() - interval '5 minutes'
        ORDER BY r.id FOR UPDATE OF r
    ), flipped AS (
        UPDATE river_job r SET state = 'available', finalized_at = NULL, scheduled_at = now(), attempt = greatest(r.attempt, held.attempt)
        FROM again, held WHERE r.id = again.id AND held.river_job_id = r.id
        RETURNING r.queue
    )
    SELECT count(*), array_agg(DISTINCT queue) INTO v_n, v_queues FROM flipped;
    v_touched := v_touched + v_n;
    PERFORM loom_wake(v_queues);

    -- It should have ended, and nobody is about to look.
    INSERT INTO river_job (state, queue, kind, args, max_attempts)
    SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', o.id), 25
    FROM operations o
    WHERE o.id = p_operation AND o.status <> 'paused' -- resuming asks again
      AND CASE WHEN o.status = 'failing'
               THEN NOT EXISTS (SELECT 1 FROM tasks t WHERE t.operation_id = o.id AND t.status = 'running')
               ELSE EXISTS (SELECT 1 FROM tasks g WHERE g.id = o.end_gate AND g.status = 'complete') END
      AND NOT EXISTS (SELECT 1 FROM river_job r
                      WHERE r.kind = 'end_operation' AND r.queue = 'control' AND (r.args->>'operation_id')::bigint = o.id
                        AND r.state IN ('available', 'running', 'scheduled', 'retryable'));
    GET DIAGNOSTICS v_n = ROW_COUNT;
    v_touched := v_touched + v_n;
    RETURN v_touched;
END
$$;
-- +goose StatementEnd
