-- running_tasks are the tasks that run. A node holds its task from promotion to the end, and an
-- operation with a running task has not ended.
CREATE VIEW running_tasks AS
SELECT t.id, t.operation_id, t.tenant_id, t.cluster_id, t.node_id, t.process_id, t.attempt, t.number, t.action, t.service, t.old, t.started_at
FROM operations o
JOIN nodes n ON n.cluster_id = o.cluster_id
CROSS JOIN LATERAL (SELECT * FROM tasks h WHERE h.id = n.task_id OFFSET 0) AS t -- by its id, however many nodes there are
WHERE t.operation_id = o.id AND o.status IN ('running', 'paused', 'failing', 'rolling_back') AND t.status = 'running';
