-- loom_note_node keeps searched_nodes right when a node gets a name or addresses. It finds the
-- row by its key, also in sessions that planned it when the table was small.
CREATE FUNCTION loom_note_node() RETURNS trigger
LANGUAGE plpgsql
SET enable_seqscan = off
AS $$
BEGIN
    UPDATE searched_nodes s SET hostname = NEW.hostname, addresses = loom_addresses(NEW.ipaddresses)
    WHERE s.tenant_id = NEW.tenant_id AND s.node_id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER nodes_named AFTER UPDATE OF hostname, ipaddresses ON nodes FOR EACH ROW
WHEN (OLD.hostname <> NEW.hostname OR OLD.ipaddresses <> NEW.ipaddresses) EXECUTE FUNCTION loom_note_node();
