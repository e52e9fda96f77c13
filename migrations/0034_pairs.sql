-- Searches for words of one or two letters, of which no trigram is made.

-- +goose Up

-- loom_pairs gives each letter, and each letter with the next one, of what a cluster is
-- searched for by.
-- +goose StatementBegin
CREATE FUNCTION loom_pairs(p_name text, p_description text, p_id bigint) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_agg(v.part)
    FROM unnest(ARRAY[lower(p_name), lower(p_description), loom_pad(p_id)]) AS t,
         unnest(string_to_array(t, NULL), (string_to_array(t, NULL))[2:]) AS p (a, b),
         LATERAL (VALUES (a), (a || b)) AS v (part)
    WHERE v.part IS NOT NULL
$$;
-- +goose StatementEnd
CREATE INDEX clusters_pairs ON clusters USING gin (loom_pairs(name, description, id)) WITH (gin_pending_list_limit = 256);
-- The function costs ten times what a row of the index does. A plan that knew of letters
-- that most clusters have would call it for each cluster; without figures it never does.
ALTER INDEX clusters_pairs ALTER COLUMN 1 SET STATISTICS 0;
