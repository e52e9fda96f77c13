-- loom_note_ready keeps ready_tasks right: a ready task is listed there or is in the backlog.
-- The table may be empty when the plan is made, and large when it is used.
CREATE FUNCTION loom_note_ready() RETURNS trigger
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.status = 'ready' AND NOT OLD.in_backlog THEN
        DELETE FROM ready_tasks r WHERE r.node_id = OLD.node_id AND r.task_id = OLD.id;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.status = 'ready' AND NOT NEW.in_backlog AND NEW.node_id IS NOT NULL THEN
        INSERT INTO ready_tasks (node_id, task_id, tenant_id) VALUES (NEW.node_id, NEW.id, NEW.tenant_id);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER tasks_ready_at_once AFTER INSERT ON tasks FOR EACH ROW WHEN (NEW.status = 'ready') EXECUTE FUNCTION loom_note_ready();

CREATE TRIGGER tasks_ready AFTER UPDATE OF status, in_backlog ON tasks FOR EACH ROW
WHEN ((OLD.status = 'ready' AND NOT OLD.in_backlog) <> (NEW.status = 'ready' AND NOT NEW.in_backlog)) EXECUTE FUNCTION loom_note_ready();

CREATE TRIGGER tasks_ready_no_more AFTER DELETE ON tasks FOR EACH ROW WHEN (OLD.status = 'ready') EXECUTE FUNCTION loom_note_ready();
