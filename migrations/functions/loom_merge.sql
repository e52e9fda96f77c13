-- loom_merge lays facts over what is known, key by key; a null removes the key.
CREATE FUNCTION loom_merge(p_known jsonb, p_facts jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_facts IS NULL OR jsonb_typeof(p_facts) <> 'object' OR p_facts = '{}' THEN p_known
        ELSE (p_known - ARRAY(SELECT key FROM jsonb_each(p_facts) WHERE value = 'null'))
             || coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(p_facts) WHERE value <> 'null'), '{}')
    END
$$;
