-- Searches for words of one or two letters among nodes.

-- +goose Up

-- What nodes are searched for by, beside the nodes: of words too short for trigrams each
-- node of a tenant is looked at, and its own row is ten times as wide, with its addresses
-- as JSON. Kept right by triggers; a node gets its name and addresses once or twice in its
-- life, what else happens to it only has the two compared (0.3 us).
CREATE TABLE searched_nodes (
    tenant_id  text NOT NULL,
    node_id    uuid NOT NULL,
    cluster_id bigint NOT NULL,
    hostname   text NOT NULL,
    addresses  text NOT NULL, -- without their names, one a line
    PRIMARY KEY (tenant_id, node_id)
);

-- +goose StatementBegin
CREATE FUNCTION loom_addresses(p_addresses jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(a.value, E'\n'), '')
    FROM jsonb_each_text(CASE jsonb_typeof(p_addresses) WHEN 'object' THEN p_addresses ELSE '{}' END) AS a
$$;
-- +goose StatementEnd

-- +goose StatementBegin
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
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION loom_note_node() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE searched_nodes s SET hostname = NEW.hostname, addresses = loom_addresses(NEW.ipaddresses)
    WHERE s.tenant_id = NEW.tenant_id AND s.node_id = NEW.id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
-- By its key, also in sessions that planned it when the table was small.
ALTER FUNCTION loom_note_node SET enable_seqscan = off;

CREATE TRIGGER nodes_made AFTER INSERT ON nodes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION loom_note_nodes();
CREATE TRIGGER nodes_gone AFTER DELETE ON nodes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION loom_note_nodes();
CREATE TRIGGER nodes_named AFTER UPDATE OF hostname, ipaddresses ON nodes FOR EACH ROW
WHEN (OLD.hostname <> NEW.hostname OR OLD.ipaddresses <> NEW.ipaddresses) EXECUTE FUNCTION loom_note_node();

-- After the triggers, which keep everybody else from changing nodes until this is done.
INSERT INTO searched_nodes (tenant_id, node_id, cluster_id, hostname, addresses)
SELECT n.tenant_id, n.id, n.cluster_id, n.hostname, loom_addresses(n.ipaddresses) FROM nodes n;
ANALYZE searched_nodes;
