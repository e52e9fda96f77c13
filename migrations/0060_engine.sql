-- +goose Up
-- River delivers every task (docs/engine.md). What kept a second queue beside it goes, and River's
-- jobs of operations that are not over say what is so.
UPDATE river_job r
SET state = 'running', finalized_at = NULL, attempt = t.attempt, attempted_at = coalesce(t.started_at, now()), attempted_by = array_append(r.attempted_by, t.process_id)
FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id JOIN tasks t ON t.id = n.task_id AND t.operation_id = o.id
WHERE o.ended_at IS NULL AND t.status = 'running' AND r.id = t.river_job_id AND r.state <> 'running';

UPDATE river_job r
SET state = 'available', scheduled_at = now()
FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id JOIN tasks t ON t.id = n.task_id AND t.operation_id = o.id
WHERE o.status IN ('running', 'rolling_back') AND t.status = 'ready' AND r.id = t.river_job_id AND r.state = 'pending';

DROP TABLE ready_tasks CASCADE;
DROP TABLE backlog_lots CASCADE;
DROP TABLE departed_processes CASCADE;
DROP TRIGGER IF EXISTS processes_departed ON processes;
ALTER TABLE tasks DROP COLUMN in_backlog CASCADE;

-- loom_promote takes the first ready task of a node.
CREATE INDEX tasks_node ON tasks (operation_id, node_id);

-- A dump is restored without a search path, and with it this index.
ALTER FUNCTION loom_pairs(text, text, bigint) SET search_path FROM CURRENT;
