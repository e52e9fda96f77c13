-- What is asked of providers outside of tasks: probes, and the machines that no
-- live node claims.

-- +goose Up

-- One row for each thing that a provisioner shall ask of a provider; its River
-- job (probe_provider) names the row and nothing else.
CREATE TABLE provider_requests (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     text NOT NULL REFERENCES tenants,
    provider_name text NOT NULL,
    purpose       text NOT NULL CHECK (purpose IN ('probe', 'sweep', 'remove')),
    orphan_id     bigint, -- the machine of a removal
    requested_by  text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    process_id    text NOT NULL DEFAULT '', -- who carries it out
    started_at    timestamptz,
    ended_at      timestamptz,
    failure       text NOT NULL DEFAULT '', -- why a removal failed, '' when it did not
    refused       boolean NOT NULL DEFAULT false, -- a removal failed because a live node has the machine
    probe         jsonb -- the answer to a probe
);
CREATE INDEX provider_requests_of ON provider_requests (tenant_id, provider_name, purpose, id DESC);

-- Machines of this installation that no live node claims.
CREATE TABLE orphans (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id     text NOT NULL REFERENCES tenants,
    provider_name text NOT NULL,
    machine_id    text NOT NULL, -- the provider's own
    name          text NOT NULL DEFAULT '',
    key           text NOT NULL DEFAULT '', -- idempotency key, as on the machine
    cluster_id    bigint NOT NULL,
    node_id       uuid NOT NULL,
    first_seen    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, provider_name, machine_id)
);
