-- loom_node_state returns the state of a node once a task of it is over, from the actions of the node's tasks
-- right behind that one: planned where another machine takes the place of a deleted one, ready
-- once none of the steps that make the machine follows.
CREATE FUNCTION loom_node_state(p_state text, p_action text, p_behind text[]) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_action = 'delete' THEN CASE WHEN 'create' = ANY(p_behind) THEN 'planned' ELSE 'deleted' END
        WHEN p_action = 'create' THEN p_state
        WHEN p_action IN ('confirm', 'bootstrap') THEN CASE WHEN p_behind && ARRAY['confirm', 'bootstrap'] THEN p_state ELSE 'ready' END
        WHEN p_state = 'failed' THEN 'ready'
        ELSE p_state
    END
$$;
