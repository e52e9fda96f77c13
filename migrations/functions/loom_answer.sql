-- loom_answer keeps River's clients from having the last word about tasks. Who ran one has given its
-- result with loom_complete or by failing it, in one transaction with all that follows; what
-- River's client then says comes later, and may meet the next delivery of the same task. It counts
-- only where a delivery is given back before it began, and then the job goes where it belongs.
CREATE FUNCTION loom_answer() RETURNS trigger
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
DECLARE
    v_state river_job_state;
BEGIN
    SELECT loom_river_state(t.status, o.status, n.task_id = t.id) INTO v_state
    FROM tasks t JOIN operations o ON o.id = t.operation_id JOIN nodes n ON n.id = t.node_id
    WHERE t.id = (OLD.args->>'task_id')::bigint;
    IF NEW.state = 'completed' OR v_state = 'running' THEN
        RETURN NULL;
    ELSIF v_state = 'pending' THEN
        NEW.state := v_state;
        NEW.finalized_at := NULL;
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER river_job_answer BEFORE UPDATE OF state ON river_job FOR EACH ROW
WHEN (OLD.state = 'running' AND OLD.kind = 'run_task' AND current_setting('loom.river', true) = 'on')
EXECUTE FUNCTION loom_answer();
