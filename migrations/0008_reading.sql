-- What reading needs: interleaved logs in an order that never changes, draining
-- asked for from outside, usage of nodes.

-- +goose Up

-- Identity numbers are handed out before commit, so a reader that goes on behind
-- the highest one it saw would miss a line that is committed late. Numbers of
-- transactions tell which lines are settled: below the xmin of a snapshot nothing
-- new appears. Lines of a whole operation or node are read in the order (xid, id)
-- up to there. Lines stored before this migration come first, with xid 0.
-- A constant default first: it rewrites no row.
ALTER TABLE task_logs ADD COLUMN xid xid8 NOT NULL DEFAULT '0';
ALTER TABLE task_logs ALTER COLUMN xid SET DEFAULT pg_current_xact_id();
CREATE INDEX task_logs_operation_order ON task_logs (operation_id, xid, id);
CREATE INDEX task_logs_node_order ON task_logs (node_id, xid, id) WHERE node_id IS NOT NULL;
DROP INDEX task_logs_operation; -- the first of these begins the same way

-- draining is what a process says of itself with every renewal of its lease;
-- drain_asked is what it was told, and lasts until it is told otherwise.
ALTER TABLE processes ADD COLUMN drain_asked boolean NOT NULL DEFAULT false;

-- Usage of nodes counts from the completion of CREATE to that of DELETE. A DELETE
-- that was skipped ends it as well: nobody expects a machine behind that node.
CREATE INDEX tasks_lives ON tasks (tenant_id, cluster_id, node_id, ended_at)
    WHERE action IN ('create', 'delete') AND status IN ('complete', 'skipped');
