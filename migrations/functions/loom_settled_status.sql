-- loom_settled_status keeps the status that a cluster had before it became pending: an
-- operation that never began leaves it so. A trigger, because several statements make clusters
-- pending.
CREATE FUNCTION loom_settled_status() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.settled_status := OLD.status;
    RETURN NEW;
END
$$;

CREATE TRIGGER clusters_settled_status BEFORE UPDATE OF status ON clusters
    FOR EACH ROW WHEN (OLD.status <> 'pending' AND NEW.status = 'pending') EXECUTE FUNCTION loom_settled_status();
