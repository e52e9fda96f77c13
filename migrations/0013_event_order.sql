-- Events that nobody misses: what a reader has seen is told by numbers of
-- transactions, since identity numbers are handed out before commit.

-- +goose Up

-- A reader keeps the snapshot in which it read. What is new to it next time is what
-- that snapshot could not see: transactions that began later, and those that were
-- still open. Events stored before this migration count as seen.
-- A constant default first: it rewrites no row.
ALTER TABLE events ADD COLUMN xid xid8 NOT NULL DEFAULT '0';
ALTER TABLE events ALTER COLUMN xid SET DEFAULT pg_current_xact_id();
CREATE INDEX events_order ON events (xid);

-- How far events have been deleted. gone: the highest transaction of which one was;
-- whoever has not seen everything up to there has to load all again. settled: below
-- it every transaction was over when events were trimmed the last time; only those
-- are trimmed the next time, so a transaction that stays open for hours loses nothing.
CREATE TABLE event_floor (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    gone    xid8 NOT NULL DEFAULT '0',
    settled xid8 NOT NULL DEFAULT '0'
);
INSERT INTO event_floor DEFAULT VALUES;

-- A trigger, so that no way of deleting events goes past it. Numbers from the
-- future came with a database that was restored into another server; they say nothing.
-- +goose StatementBegin
CREATE FUNCTION loom_raise_event_floor() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE event_floor f SET gone = d.xid
    FROM (SELECT xid FROM deleted WHERE xid < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY xid DESC LIMIT 1) AS d
    WHERE f.gone < d.xid OR f.gone >= pg_snapshot_xmax(pg_current_snapshot());
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER events_floor AFTER DELETE ON events
    REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION loom_raise_event_floor();
