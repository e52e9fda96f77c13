-- loom_signal_many is loom_signal for more than 100 tasks of one operation, and with p_nodes
-- for as many nodes: which ones need not be read, they are not told.
CREATE FUNCTION loom_signal_many(p_operation bigint, p_nodes boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events (tenant_id, topic, ids)
    SELECT o.tenant_id, e.topic, e.ids
    FROM operations o, LATERAL (VALUES
        ('op:' || loom_pad(o.cluster_id) || '/' || o.number, '{}'::text[], true),
        ('cluster:' || loom_pad(o.cluster_id), '{}', p_nodes),
        ('clusters', ARRAY[loom_pad(o.cluster_id)], p_nodes)) AS e (topic, ids, told)
    WHERE o.id = p_operation AND e.told;
    PERFORM pg_notify('loom_event', '');
END
$$;
