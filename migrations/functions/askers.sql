-- askers are the users who asked for their keys on the machines of a cluster and who may still
-- see it, once for each time they asked. One who got the id of a deleted user asked for
-- nothing. A view, because it becomes part of the plan of what reads it.
CREATE VIEW askers AS
SELECT o.cluster_id, u.id, u.ssh_keys
FROM operations o
JOIN clusters c ON c.id = o.cluster_id
JOIN users u ON u.tenant_id = o.tenant_id AND u.id = o.requested_by
WHERE o.action = 'cluster_authorize' AND o.started_at IS NOT NULL
  AND o.created_at >= u.created_at AND u.id <> c.owner_id AND u.role = 'admin' AND NOT u.disabled;
