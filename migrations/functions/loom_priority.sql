-- loom_priority is River's priority for tasks of a cluster: those with little under way go
-- first on their tenant's queue. Counting stops early, big ones cost no more: no more than
-- 1,000 nodes are looked at. Where few of them are running, all were; of a larger cluster it is
-- an estimate.
CREATE FUNCTION loom_priority(p_cluster bigint) RETURNS smallint
LANGUAGE sql STABLE AS $$
    SELECT (CASE WHEN b.busy <= 4 THEN 1 WHEN b.busy <= 16 THEN 2 WHEN b.busy <= 64 THEN 3 ELSE 4 END)::smallint
    FROM (SELECT count(*) AS busy
          FROM (SELECT 1 FROM (SELECT n.task_id FROM nodes n WHERE n.cluster_id = p_cluster LIMIT 1000) AS looked
                WHERE looked.task_id IS NOT NULL LIMIT 65) AS few) AS b
$$;
