-- loom_addresses gives the addresses of a node without their names, one a line: what
-- searched_nodes holds of them.
CREATE FUNCTION loom_addresses(p_addresses jsonb) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(a.value, E'\n'), '')
    FROM jsonb_each_text(CASE jsonb_typeof(p_addresses) WHEN 'object' THEN p_addresses ELSE '{}' END) AS a
$$;
