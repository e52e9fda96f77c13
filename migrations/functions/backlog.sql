-- backlog lists the tasks of backlog_lots one by one.
CREATE VIEW backlog AS
    SELECT unnest(l.tasks) AS task_id, l.tenant_id, l.operation_id, l.priority, l.since FROM backlog_lots l;
