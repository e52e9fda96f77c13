-- What happened of late, the newest first, over audit and operations.

-- +goose Up

CREATE INDEX operations_ended ON operations (tenant_id, ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX operations_ended_all ON operations (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX audit_time_all ON audit (created_at, id);

-- A superadmin may act as the administrator of a tenant, for a while, within his
-- own session.
ALTER TABLE sessions ADD COLUMN acting_tenant text;
ALTER TABLE sessions ADD COLUMN acting_until timestamptz;

-- The newest set of plugin resources that each host of provisioners has fetched.
CREATE TABLE resource_fetches (
    tenant_id  text NOT NULL REFERENCES tenants,
    host       text NOT NULL,
    set        int NOT NULL,
    fetched_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, host)
);
