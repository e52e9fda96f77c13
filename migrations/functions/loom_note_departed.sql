-- loom_note_departed notes a process whose row goes, for the reaper.
CREATE FUNCTION loom_note_departed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO departed_processes (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER processes_departed AFTER DELETE ON processes FOR EACH ROW EXECUTE FUNCTION loom_note_departed();
