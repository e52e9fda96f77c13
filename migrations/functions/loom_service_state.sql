-- loom_service_state is what a completed action makes of a service on a node. STABLE, because
-- jsonb_build_object is no more: as an immutable function it was called for each task and did
-- not become a part of the statement.
CREATE FUNCTION loom_service_state(p_before text, p_service text, p_action text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN p_action = 'start' THEN jsonb_build_object(p_service, 'started')
        WHEN p_action = 'stop' THEN jsonb_build_object(p_service, 'stopped')
        WHEN p_action = 'remove' THEN jsonb_build_object(p_service, 'absent')
        WHEN p_action = 'configure' AND p_before IN ('started', 'stopped') THEN '{}'
        WHEN p_action IN ('install', 'configure', 'initialize') THEN jsonb_build_object(p_service, 'installed')
        ELSE '{}'
    END::jsonb
$$;
