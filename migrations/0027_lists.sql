-- Lists of many clusters answer at once, whatever they are narrowed by.

-- +goose Up

-- Names of services, so that lists need not read whole copies of them.
-- +goose StatementBegin
CREATE FUNCTION loom_keys(p_object jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ARRAY(SELECT jsonb_object_keys(p_object) ORDER BY 1)
$$;
-- +goose StatementEnd
ALTER TABLE clusters ADD COLUMN service_names text[] NOT NULL GENERATED ALWAYS AS (loom_keys(services)) STORED;
CREATE INDEX clusters_services ON clusters USING gin (service_names) WITH (gin_pending_list_limit = 256);
CREATE INDEX clusters_labels ON clusters USING gin (labels) WITH (gin_pending_list_limit = 256);

-- Words anywhere in names, ids and addresses are found by their trigrams. pg_trgm is
-- part of PostgreSQL and whoever owns a database may add it; where it is not installed
-- a search reads all nodes of a tenant. Nodes get an address once and else stay what
-- the index says of them.
-- +goose StatementBegin
DO $$
BEGIN
    BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm;
    EXCEPTION WHEN OTHERS THEN
        RAISE NOTICE 'Searches for words are slow with many nodes: the extension pg_trgm cannot be added (%).', SQLERRM;
        RETURN;
    END;
    CREATE INDEX clusters_words ON clusters USING gin (lower(name) gin_trgm_ops, lower(description) gin_trgm_ops, loom_pad(id) gin_trgm_ops)
        WITH (gin_pending_list_limit = 256);
    CREATE INDEX nodes_words ON nodes USING gin (hostname gin_trgm_ops, (ipaddresses::text) gin_trgm_ops)
        WITH (gin_pending_list_limit = 256);
END
$$;
-- +goose StatementEnd
