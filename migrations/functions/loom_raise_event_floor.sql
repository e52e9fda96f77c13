-- loom_raise_event_floor notes how far events have been deleted. A trigger, so that no way of
-- deleting events goes past it. Numbers from the future came with a database that was restored
-- into another server; they say nothing.
CREATE FUNCTION loom_raise_event_floor() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE event_floor f SET gone = d.xid
    FROM (SELECT xid FROM deleted WHERE xid < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY xid DESC LIMIT 1) AS d
    WHERE f.gone < d.xid OR f.gone >= pg_snapshot_xmax(pg_current_snapshot());
    RETURN NULL;
END
$$;

CREATE TRIGGER events_floor AFTER DELETE ON events
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION loom_raise_event_floor();
