-- Hooks: HTTP notices about operations (entities.md 21.3), and the log of their
-- deliveries, which is also what is still to be sent.

-- +goose Up

-- The secret of a hook is sealed in the table secrets, as entity "hook:<id>".
CREATE TABLE hooks (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id   text NOT NULL REFERENCES tenants,
    name        text NOT NULL,
    url         text NOT NULL,
    events      text[] NOT NULL CHECK (events <@ '{start,success,failure}'),
    actions     text[] NOT NULL DEFAULT '{}', -- empty: all
    templates   text[] NOT NULL DEFAULT '{}', -- empty: all
    blocking    boolean NOT NULL DEFAULT false,
    on_timeout  text NOT NULL DEFAULT 'refuse' CHECK (on_timeout IN ('go', 'refuse')),
    global      boolean NOT NULL DEFAULT false,
    legacy_body boolean NOT NULL DEFAULT false,
    enabled     boolean NOT NULL DEFAULT true,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CHECK (NOT global OR tenant_id = 'superadmin'),
    CHECK (NOT blocking OR 'start' = ANY (events))
);
CREATE INDEX hooks_tenant ON hooks (tenant_id, id);
-- Asked by every operation of every tenant.
CREATE INDEX hooks_global ON hooks (id) WHERE global AND enabled;

CREATE TABLE hook_deliveries (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hook_id      bigint NOT NULL REFERENCES hooks ON DELETE CASCADE,
    tenant_id    text NOT NULL, -- of the hook, not of the operation
    operation_id bigint NOT NULL REFERENCES operations,
    event        text NOT NULL CHECK (event IN ('start', 'success', 'failure')),
    blocking     boolean NOT NULL DEFAULT false, -- the operation waits for the answer
    notice       jsonb NOT NULL, -- the facts of the moment of the event
    event_at     timestamptz NOT NULL DEFAULT now(),
    created_at   timestamptz NOT NULL DEFAULT now(), -- later than event_at when sent again by hand
    status       text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'delivered', 'refused', 'failed')),
    tries        int NOT NULL DEFAULT 0,
    code         int NOT NULL DEFAULT 0, -- HTTP status of the last try, 0: no answer
    duration_ms  int NOT NULL DEFAULT 0,
    error        text NOT NULL DEFAULT '',
    next_at      timestamptz NOT NULL DEFAULT now(),
    ended_at     timestamptz
);
CREATE INDEX hook_deliveries_hook ON hook_deliveries (hook_id, id DESC);
CREATE INDEX hook_deliveries_waiting ON hook_deliveries (next_at) WHERE status = 'waiting';
CREATE INDEX hook_deliveries_operation ON hook_deliveries (operation_id);
CREATE INDEX hook_deliveries_age ON hook_deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- What a cluster was before it became pending: an operation that never began
-- leaves it so. NULL: it has only ever been pending. A trigger, because several
-- statements make clusters pending, those of the release before among them.
ALTER TABLE clusters ADD COLUMN settled_status text;

-- +goose StatementBegin
CREATE FUNCTION loom_settled_status() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.settled_status := OLD.status;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER clusters_settled_status BEFORE UPDATE OF status ON clusters
    FOR EACH ROW WHEN (OLD.status <> 'pending' AND NEW.status = 'pending') EXECUTE FUNCTION loom_settled_status();
