-- loom_note_nodes keeps searched_nodes right when nodes come or go.
CREATE FUNCTION loom_note_nodes() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO searched_nodes (tenant_id, node_id, cluster_id, hostname, addresses)
        SELECT n.tenant_id, n.id, n.cluster_id, n.hostname, loom_addresses(n.ipaddresses) FROM changed n;
    ELSE
        DELETE FROM searched_nodes s USING changed n WHERE s.tenant_id = n.tenant_id AND s.node_id = n.id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER nodes_made AFTER INSERT ON nodes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION loom_note_nodes();

CREATE TRIGGER nodes_gone AFTER DELETE ON nodes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION loom_note_nodes();
