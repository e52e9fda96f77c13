-- +goose Up
-- What somebody saw of a node, beside the states that tasks set. A row goes with its machine.
CREATE TABLE node_health (
    node_id     uuid PRIMARY KEY REFERENCES nodes ON DELETE CASCADE,
    tenant_id   text NOT NULL,
    cluster_id  bigint NOT NULL,
    incarnation int NOT NULL, -- of the machine that was seen
    operation   int NOT NULL, -- number of the newest one of the cluster when it was seen
    status      text NOT NULL CHECK (status IN ('healthy', 'failing', 'unreachable', 'stopped', 'gone', 'changing', 'unknown', 'off')),
    since       timestamptz NOT NULL DEFAULT now(), -- when the status became what it is
    seen_at     timestamptz, -- reached, or found unreachable; NULL: not yet
    checked_at  timestamptz, -- the last check; signs of life are between two of them
    wanted_at   timestamptz, -- when somebody last asked for a check
    changed_at  timestamptz NOT NULL DEFAULT now(), -- when an operation last ended its work on the node
    interval_s  int NOT NULL DEFAULT 60, -- between two checks
    message     text NOT NULL DEFAULT '', -- why it is bad
    down_since  timestamptz, -- since when the machine does not answer; NULL while it does
    listed      text NOT NULL DEFAULT '' CHECK (listed IN ('', 'running', 'stopped', 'other', 'missing')), -- by its provider; '': not yet
    listed_at   timestamptz, -- when that list began
    missing_since timestamptz, -- when the first list in a row began that lacked the machine while it did not answer
    cpu         smallint NOT NULL DEFAULT -1, -- shares in use, in percent; -1: not known
    memory      smallint NOT NULL DEFAULT -1,
    disk        smallint NOT NULL DEFAULT -1,
    services    jsonb NOT NULL DEFAULT '{}' -- service -> loom.ServiceHealth
) WITH (fillfactor = 50); -- a row is written several times a minute
CREATE INDEX node_health_cluster ON node_health (cluster_id);

-- What follows from that for a cluster, until it is terminated.
CREATE TABLE cluster_health (
    cluster_id bigint PRIMARY KEY REFERENCES clusters ON DELETE CASCADE,
    tenant_id  text NOT NULL,
    status     text NOT NULL CHECK (status IN ('healthy', 'degraded', 'failing', 'unknown', 'off')),
    since      timestamptz NOT NULL DEFAULT now()
);
-- The clusters of a tenant that need attention.
CREATE INDEX cluster_health_tenant ON cluster_health (tenant_id, status);

-- What went wrong: from turning bad until well again.
CREATE TABLE incidents (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id  text NOT NULL,
    cluster_id bigint NOT NULL REFERENCES clusters ON DELETE CASCADE,
    node_id    uuid NOT NULL REFERENCES nodes ON DELETE CASCADE,
    service    text NOT NULL DEFAULT '', -- '' for the machine itself
    kind       text NOT NULL CHECK (kind IN ('service', 'disk', 'signin', 'unreachable', 'stopped', 'gone')),
    since      timestamptz NOT NULL DEFAULT now(),
    ended_at   timestamptz,
    message    text NOT NULL DEFAULT ''
);
CREATE INDEX incidents_open ON incidents (node_id) WHERE ended_at IS NULL;
CREATE INDEX incidents_lasting ON incidents (tenant_id, since, id) WHERE ended_at IS NULL; -- on the home page
CREATE INDEX incidents_list ON incidents (tenant_id, since, id);
CREATE INDEX incidents_cluster ON incidents (cluster_id, since, id);
CREATE INDEX incidents_ended ON incidents (ended_at);

-- Announced work. Until it ends, failures there are no incidents.
CREATE TABLE maintenance (
    tenant_id  text NOT NULL,
    cluster_id bigint NOT NULL REFERENCES clusters ON DELETE CASCADE,
    node_id    uuid REFERENCES nodes ON DELETE CASCADE, -- NULL: all nodes of the cluster
    until      timestamptz NOT NULL,
    reason     text NOT NULL,
    by_user    text NOT NULL,
    UNIQUE NULLS NOT DISTINCT (cluster_id, node_id)
);
