-- loom_wake tells River's clients that there is work on these queues.
CREATE FUNCTION loom_wake(p_queues text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(current_schema() || '.river_insert', json_build_object('queue', q)::text)
    FROM (SELECT DISTINCT unnest(p_queues) AS q) AS queues WHERE q IS NOT NULL;
END
$$;
